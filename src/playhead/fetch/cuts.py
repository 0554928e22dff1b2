"""Samples as Lhotse cuts, as Lhotse's and NeMo's own readers give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from lhotse import MonoCut, MultiCut, Recording, SupervisionSegment
from lhotse.audio import AudioSource
from lhotse.serialization import deserialize_item

from playhead.errors import AudioError, ManifestError
from playhead.fetch.audio import read_header
from playhead.fetch.resampling import resample_cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lhotse.cut import Cut

    from playhead.formats.example import Audio, Example

__all__ = ["to_cut"]


def to_cut(example: Example, sample_rate: int | None, tags: Mapping[str, Any]) -> Cut:
    """Make a sample's cut; its audio stays encoded until it is loaded.

    A row that is a cut gives that cut. Any other gives a `MonoCut` (a `MultiCut` where several
    channels are kept) with one supervision that is as long as the cut, over the file or over its
    bytes; the file's header is read, its samples are not.

    Parameters
    ----------
    example
        The sample.
    sample_rate
        The rate in Hz that the audio is resampled to when it is loaded; None keeps its own.
    tags
        Become attributes of the cut; they win over what the row says.

    Raises
    ------
    AudioError
        If the audio's header cannot be read.
    ManifestError
        If the row is a cut that Lhotse refuses.
    """
    if example.cut_data is not None:
        cut = _deserialized(example)
    elif example.audio is not None:
        cut = _around(example.audio, example)
    else:
        raise ManifestError(
            "the sample has no audio", where=str(example.place), fix="Use a dataset that needs none"
        )
    for name, value in tags.items():
        setattr(cut, name, value)
    return cut if sample_rate is None else resample_cut(cut, sample_rate)


def _deserialized(example: Example) -> Cut:
    # Lhotse takes the dicts apart that it is given.
    data: Any = msgspec.to_builtins(example.cut_data)
    try:
        return deserialize_item(data)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ManifestError(
            f"Lhotse cannot read the cut: {type(error).__name__}: {error}",
            where=str(example.place),
            fix="Write the cut with the installed version of Lhotse",
        ) from error


def _around(audio: Audio, example: Example) -> Cut:
    header = read_header(audio, example.place)
    source = audio.source
    in_memory = isinstance(source, bytes)
    recording = Recording(
        id=example.id if isinstance(source, bytes) else source,
        sources=[
            AudioSource(
                type="memory" if in_memory else "file",
                channels=list(range(header.channels)),
                source=source,
            )
        ],
        sampling_rate=header.rate,
        num_samples=header.frames,
        duration=header.seconds,
    )
    if audio.start > recording.duration:
        raise AudioError(
            f"the sample begins at {audio.start} s of audio of {header.seconds:.3f} s",
            where=str(example.place),
            fix="Correct the row's offset",
        )
    duration = audio.duration
    if duration is None:
        duration = round(recording.duration - audio.start, ndigits=8)
    supervision = SupervisionSegment(
        id=example.id,
        recording_id=recording.id,
        start=0.0,
        duration=duration,
        text=example.text,
        language=example.language,
    )
    channel = 0 if header.channels == 1 else audio.channel
    cut_type: Any = MultiCut if channel is None else MonoCut
    return cut_type(
        id=example.id,
        start=audio.start,
        duration=duration,
        channel=list(range(header.channels)) if channel is None else channel,
        supervisions=[supervision],
        recording=recording,
        custom=dict(example.custom),
    )
