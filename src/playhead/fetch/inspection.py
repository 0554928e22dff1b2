"""Which samples of a batch cannot be decoded: the same answer whatever else is in the batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import AudioError, SourceNotFoundError
from playhead.fetch.audio import decode
from playhead.fetch.augment import Augmenter
from playhead.fetch.bad import BadAudio, beside
from playhead.fetch.missing_audio import missing
from playhead.formats.example import audio_turns
from playhead.paths import exists
from playhead.storage import local

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lhotse import Recording
    from lhotse.cut import Cut

    from playhead.fetch.fetcher import FetchSpec
    from playhead.formats.example import Example, Place
    from playhead.plan.batch import MicroBatch

__all__ = ["Inspection", "Look", "Sample", "check_turn"]


class Sample(NamedTuple):
    """A sample of a batch, by itself."""

    at: int
    """Its place in the batch."""
    example: Example
    """What was read of it."""
    micro_batch: MicroBatch
    """What the plan says of it: a micro-batch of one."""
    tags: Mapping[str, Any]
    """The tags of its leaf."""
    channel: int | str | None
    """The `channel_selector` of its leaf."""


Look = Callable[[Sequence[Sample]], list[BadAudio]]
"""A way to look at samples: gives those that cannot be used, in order.

It raises what says nothing of the data:

- SourceNotFoundError if audio is missing together with all else in its folder: a disk is gone;
- PermissionError if audio may not be read;
- OSError if a disk fails, and goes on failing.
"""


class Inspection:
    """Decodes samples one by one, as the dataset would have them and as far as it would.

    What is found is a function of the bytes: they are read by what retries, and decoded from
    memory. Of a row only the stretch is decoded that the plan wants, and noise is left out, so that
    nothing but the sample itself decides.

    Parameters
    ----------
    spec
        Where samples come from, and what is done to them.
    takes_examples
        Whether the dataset takes examples; cuts otherwise, which Lhotse decodes.
    """

    def __init__(self, spec: FetchSpec, *, takes_examples: bool) -> None:
        self._spec = spec
        self._takes_examples = takes_examples
        augmentation = spec.augmentation
        self._as_cuts = not takes_examples or not (
            augmentation is None or augmentation.only_stretches
        )
        self._shaping: Augmenter | None = None
        if augmentation is not None:
            # What the plan decided, and nothing else.
            bare = replace(
                augmentation,
                noise_path=None,
                concatenate_samples=False,
                lowpass_enabled=False,
                clipping_enabled=False,
                rir_enabled=False,
                compression_enabled=False,
            )
            self._shaping = Augmenter(bare, None, spec.sample_rate)

    @property
    def looks(self) -> list[Look]:
        """The ways to look, in order: each is needed only if the ones before were not enough."""
        if self._takes_examples:
            return [self._find_main]
        return [self._find_main, self._find_custom]

    def _find_main(self, samples: Sequence[Sample]) -> list[BadAudio]:
        """Find samples whose audio cannot be decoded."""
        return list(_bad(samples, self._decode))

    def _find_custom(self, samples: Sequence[Sample]) -> list[BadAudio]:
        """Find samples of which a further recording, such as a target, cannot be decoded."""
        return list(_bad(samples, self._decode_custom))

    def _decode(self, sample: Sample) -> None:
        example = sample.example
        if example.kind != "cut":
            for turn in audio_turns(example):
                self._decode_turn(turn.audio, sample)
            return
        if self._as_cuts:
            try:
                _load(self._cut(sample), example)
            except AudioError:
                if example.audio is not None:
                    # What Lhotse refuses, we can often say better.
                    decode(example.audio, self._spec.sample_rate, example.place)
                raise
            return
        if self._shaping is not None:
            shaped = self._shaping.of_examples(
                [example], sample.micro_batch, [sample.tags], [sample.channel]
            )
            example = shaped.examples[0]
        if example.cut is not None:
            _load(example.cut, example)
        elif example.audio is not None and not example.cut_steps:
            decode(example.audio, self._spec.sample_rate, example.place)
        elif example.audio is None and example.cut_data is None and not example.members:
            raise _no_audio(example.place)
        else:
            from playhead.fetch.cuts import to_cut  # noqa: PLC0415 - imports Lhotse, 2 s

            _load(to_cut(example, self._spec.sample_rate, {}), example)

    def _decode_turn(self, audio: Example | None, sample: Sample) -> None:
        if audio is None:
            return
        check_turn(audio)
        if self._takes_examples and audio.audio is not None and not audio.cut_steps:
            decode(audio.audio, self._spec.sample_rate, audio.place)
            return
        from playhead.fetch.cuts import to_cut  # noqa: PLC0415 - imports Lhotse, 2 s

        _load(to_cut(audio, self._spec.sample_rate, {}, sample.channel), audio)

    def _decode_custom(self, sample: Sample) -> None:
        if sample.example.kind != "cut":
            return
        for name, cut in _with_custom_bytes(self._cut(sample), sample.example):
            _loaded(partial(cut.load_custom, name), sample.example.place)

    def _cut(self, sample: Sample) -> Cut:
        from playhead.fetch.cuts import to_cut  # noqa: PLC0415 - imports Lhotse, 2 s

        example, channel = sample.example, sample.channel
        if example.audio is None and example.cut_data is None and not example.members:
            raise _no_audio(example.place)
        if self._shaping is None:
            return to_cut(example, self._spec.sample_rate, sample.tags, channel)
        return self._shaping.prepare([example], sample.micro_batch, [sample.tags], [channel])[0]


class _UnusableFileError(Exception):
    """A file that is missing, or whose name can be none: no matter of the moment.

    Parameters
    ----------
    error
        What to say of it.
    example
        The row that names it.
    """

    def __init__(self, error: AudioError | SourceNotFoundError, example: Example) -> None:
        super().__init__(str(error))
        self.error = error
        self.example = example


def _bad(samples: Sequence[Sample], decode_one: Callable[[Sample], None]) -> Iterator[BadAudio]:
    for sample in samples:
        example = sample.example
        try:
            # Outside of the inner clause: what reading raises is no matter of the sample.
            example = _in_memory(example)
            decode_one(sample._replace(example=example))
        except _UnusableFileError as found:
            yield BadAudio(sample.at, found.example, found.error)
        except AudioError as error:
            yield BadAudio(sample.at, _culprit(example, error), error)


def _culprit(example: Example, error: AudioError) -> Example:
    """The row that an error names, of those that were joined."""
    said = str(error)
    turns = [turn.audio.place for turn in audio_turns(example) if turn.audio is not None]
    named = [place for place in turns if str(place) in said]
    if named:
        # All of the conversation is bad; where it is bad, its audio knows. One place may be how
        # another begins.
        return replace(example, place=max(named, key=lambda place: len(str(place))))
    return next((one for one in example.members if str(one.place) in said), example)


def _in_memory(example: Example) -> Example:
    """Return a sample whose file is read already; errors about it name the file."""
    if example.missing is not None:
        raise _UnusableFileError(example.missing, example)
    if example.members:
        return replace(example, members=tuple(map(_in_memory, example.members)))
    if example.turns:
        turns = tuple(
            turn if turn.audio is None else replace(turn, audio=_in_memory(turn.audio))
            for turn in example.turns
        )
        return replace(example, turns=turns)
    audio = example.audio
    if audio is None or isinstance(audio.source, bytes):
        return example
    path = _found_path(audio.source, example.place)
    example = replace(example, place=replace(example.place, member=path))
    data = _read_file(path, example)
    return replace(example, audio=replace(audio, source=data))


def _found_path(path: str, place: Place) -> str:
    """Look once more for a relative path beside its manifest.

    When the row was read, a disk that failed may have made it look as if nothing were there.
    """
    near = beside(path, place)
    if near is None:
        return path
    try:
        local.size(near)
    except SourceNotFoundError:
        return path if exists(path) else near
    return near


def _read_file(path: str, example: Example) -> bytes:
    where = _where(path, example.place)
    try:
        size = local.size(path)
        if Path(path).is_file():
            return local.read_ranges(path, [0], [size])[0]
    except SourceNotFoundError:
        gone = missing(path, example.place)
        # An empty folder is what is left of a disk that is gone.
        if _is_populated(Path(path).absolute().parent):
            raise _UnusableFileError(gone, example) from None
        raise gone from None
    said = "the path of the audio is a folder or a device, not a file"
    unusable = AudioError(said, where=where, fix="Correct the row's path")
    raise _UnusableFileError(unusable, example)


def _where(path: str, place: Place) -> str:
    return str(place) if place.member == path else f"{place}, audio {path}"


def _is_populated(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def check_turn(audio: Example) -> None:
    """Look whether there is anything to decode of an audio turn: a member may have no bytes.

    Raises
    ------
    AudioError
        If there is not.
    """
    if audio.audio is None and audio.cut_data is None:
        raise AudioError(
            "the audio is empty",
            where=str(audio.place),
            fix="Restore it, or mark its row with _skipme",
        )


def _no_audio(place: Place) -> AudioError:
    return AudioError(
        "the sample has no audio", where=str(place), fix="Use a dataset that needs none"
    )


def _load(cut: Cut, example: Example) -> None:
    """Load the audio of a cut, as Lhotse does it."""
    cut = _with_bytes(cut, example)
    if not cut.has_recording:
        raise AudioError(
            "the cut has no recording", where=str(example.place), fix="Attach one to the cut"
        )
    _loaded(cut.load_audio, example.place)


def _loaded(load: Callable[[], Any], place: Place) -> None:
    from playhead.fetch.backend import quick_audio_backend  # noqa: PLC0415 - imports Lhotse, 2 s

    try:
        with quick_audio_backend():
            load()
    except Exception as error:
        said = next(iter(str(error).splitlines()), "")
        raise AudioError(
            f"Lhotse cannot load the cut: {type(error).__name__}: {said}",
            where=str(place),
            fix="Restore its audio, or mark its row with _skipme",
        ) from error


def _with_bytes(cut: Any, example: Example) -> Any:
    """Return a cut whose files are read already."""
    from lhotse.utils import fastcopy  # noqa: PLC0415 - imports Lhotse, 2 s

    if hasattr(cut, "tracks"):
        tracks = [fastcopy(track, cut=_with_bytes(track.cut, example)) for track in cut.tracks]
        return fastcopy(cut, tracks=tracks)
    recording = getattr(cut, "recording", None)
    if recording is None:
        return cut
    return fastcopy(cut, recording=_read_recording(recording, example))


def _read_recording(recording: Recording, example: Example) -> Recording:
    from lhotse.utils import fastcopy  # noqa: PLC0415 - imports Lhotse, 2 s

    sources: list[Any] = []
    for source in recording.sources:
        if source.type in ("file", "url"):
            path = _found_path(str(source.source), example.place)
            sources.append(fastcopy(source, type="memory", source=_read_file(path, example)))
        else:
            sources.append(source)
    return fastcopy(recording, sources=sources)


def _with_custom_bytes(cut: Any, example: Example) -> Iterator[tuple[str, Any]]:
    """Each further recording of a cut, by name, with a cut in which it is read already."""
    from lhotse import Recording  # noqa: PLC0415 - imports Lhotse, 2 s
    from lhotse.utils import fastcopy  # noqa: PLC0415 - same

    for track in getattr(cut, "tracks", ()):
        yield from _with_custom_bytes(track.cut, example)
    if hasattr(cut, "tracks") or not cut.custom:
        return
    for name, value in cut.custom.items():
        if isinstance(value, Recording):
            read = _read_recording(value, example)
            yield name, fastcopy(cut, custom={**cut.custom, name: read})
