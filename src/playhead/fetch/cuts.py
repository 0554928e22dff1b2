"""Samples as Lhotse cuts, as Lhotse's and NeMo's own readers give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from lhotse import MonoCut, MultiCut, Recording, SupervisionSegment
from lhotse.audio import AudioSource
from lhotse.cut import MixedCut
from lhotse.serialization import deserialize_item
from lhotse.utils import fastcopy

from playhead.errors import AudioError, ManifestError, PlayheadError
from playhead.fetch.audio import read_header
from playhead.fetch.joined import joined_cut
from playhead.fetch.resampling import resample_cut
from playhead.formats.shar_fields import fill_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lhotse.cut import Cut

    from playhead.formats.example import Audio, Example, Place

__all__ = ["select_channel", "to_cut"]


def to_cut(
    example: Example,
    sample_rate: int | None,
    tags: Mapping[str, Any],
    channel_selector: int | str | None = None,
) -> Cut:
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
    channel_selector
        As for `select_channel`; rows of other types have chosen already.

    Raises
    ------
    AudioError
        If the audio's header cannot be read, or it has no such channel.
    ManifestError
        If the row is a cut that Lhotse refuses, or does not say its channel.
    """
    if example.members:
        rows = [to_cut(member, None, {}, channel_selector) for member in example.members]
        cut = joined_cut(rows, example.gap, example.id)
    elif example.cut_data is not None:
        cut = _deserialized(example)
        if channel_selector is not None:
            cut = select_channel(cut, channel_selector, example.place)
    elif example.audio is not None:
        cut = _around(example.audio, example)
    else:
        raise ManifestError(
            "the sample has no audio", where=str(example.place), fix="Use a dataset that needs none"
        )
    for step in example.cut_steps:
        cut = _stepped(cut, step, example)
    for name, value in tags.items():
        setattr(cut, name, value)
    return cut if sample_rate is None else resample_cut(cut, sample_rate)


def _stepped(cut: Cut, step: Callable[[Any], Any], example: Example) -> Cut:
    """What a step of a transform makes of a cut; some have to hear it."""
    try:
        return step(cut)
    except (PlayheadError, MemoryError):
        raise
    except Exception as error:
        said = next(iter(str(error).splitlines()), "")
        raise AudioError(
            f"Lhotse cannot make the cut: {type(error).__name__}: {said}",
            where=str(example.place),
            fix="Restore its audio, or mark its row with _skipme",
        ) from error


def select_channel(cut: Any, selector: int | str, place: Place) -> Cut:
    """Keep one channel of a cut; the cut keeps its id.

    Supervisions of other channels are dropped, as Lhotse does.

    Parameters
    ----------
    cut
        A cut of one channel or several.
    selector
        The channel's index in the cut, from 0, or the custom field that holds it.
    place
        For messages.

    Raises
    ------
    AudioError
        If the cut has no such channel.
    ManifestError
        If it has no such field, or no index in it.
    """
    index: Any = selector
    if isinstance(selector, str):
        custom: Mapping[str, Any] = getattr(cut, "custom", None) or {}
        if selector not in custom:
            raise ManifestError(
                f"the cut has no custom field {selector!r}, which channel_selector names",
                where=str(place),
                fix="Add the field, or give channel_selector an index",
            )
        index = custom[selector]
    if not isinstance(index, int) or isinstance(index, bool):
        raise ManifestError(
            f"the channel is {index!r}", where=str(place), fix="Write the channel's index, from 0"
        )
    _check_channel(index, cut.num_channels, place)
    return _one_channel(cut, index)


def _check_channel(index: int, count: int, place: Place) -> None:
    if not 0 <= index < count:
        raise AudioError(
            f"the sample has {count} channels and channel {index} is wanted",
            where=str(place),
            fix="Count channels from 0 in channel_selector",
        )


def _one_channel(cut: Cut, index: int) -> Cut:
    if isinstance(cut, MultiCut):
        return cut.with_channels(cut.channel[index]).with_id(cut.id)
    if isinstance(cut, MixedCut):
        tracks = [fastcopy(track, cut=_one_channel(track.cut, index)) for track in cut.tracks]
        return fastcopy(cut, tracks=tracks)
    return cut


def _deserialized(example: Example) -> Cut:
    # Lhotse takes the dicts apart that it is given.
    data: Any = fill_memory(msgspec.to_builtins(example.cut_data), example.in_memory)
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
    channel = audio.channel
    if channel is None and header.channels == 1:
        channel = 0
    if channel is not None:
        _check_channel(channel, header.channels, example.place)
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
