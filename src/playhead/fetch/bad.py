"""Samples whose audio cannot be used: finding them, and the record that is kept of each."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from playhead.errors import AudioError, SourceNotFoundError
from playhead.fetch.audio import decode
from playhead.paths import scheme
from playhead.storage import local

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from playhead.formats.example import Example, Place
    from playhead.plan.batch import MicroBatch

__all__ = ["BadAudio", "BadSample", "Holes", "find_bad", "is_about_audio", "without"]

_MOST_CAUSES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class BadSample:
    """The record of a sample that was left out of its batch; one line of `bad_samples.jsonl`."""

    leaf: str
    """Key of its leaf."""
    name: str
    """Name of the leaf."""
    shard: str
    """Path of the manifest that holds the row."""
    row: int
    """Row of the leaf, from 0."""
    byte: int
    """Where the row begins in its manifest."""
    row_crc: int
    """CRC-32 of the row."""
    member: str | None
    """The audio: `archive.tar/member`, or a file; None where the row does not say."""
    id: str
    """What the sample is called."""
    reason: str
    """What is wrong with it."""
    step: int
    """The step that it was left out of."""
    slot: int
    """The slot of that step."""

    def to_line(self) -> bytes:
        """Return it as JSON with a line feed.

        Examples
        --------
        >>> BadSample(
        ...     leaf="a1", name="train", shard="/data/m.json", row=7, byte=812, row_crc=99,
        ...     member=None, id="u7", reason="the sample is empty", step=3, slot=0,
        ... ).to_line()[:44]
        b'{"leaf":"a1","name":"train","shard":"/data/m'
        """
        return msgspec.json.encode(self) + b"\n"


@dataclass(frozen=True, slots=True)
class Holes:
    """A batch that lacks samples, on its way out of the process that made it."""

    batch: Any
    """The batch without them."""
    bad: tuple[BadSample, ...]
    """What was left out."""
    places: tuple[int, ...]
    """Where those stood in the micro-batch, ascending."""
    empty: bool = False
    """Whether nothing is left; then there is no batch."""

    def pin_memory(self) -> Holes:
        """Return it with tensors in page-locked memory; torch's `DataLoader` asks for it."""
        from torch.utils.data._utils.pin_memory import pin_memory  # noqa: PLC0415 - only for GPUs

        return dataclasses.replace(self, batch=pin_memory(self.batch))


class BadAudio(NamedTuple):
    """A sample of a batch that cannot be used."""

    at: int
    """Its place in the batch."""
    example: Example
    """The sample; of rows that are joined, the one that is bad."""
    error: AudioError | SourceNotFoundError
    """What is wrong with it, with its place."""

    @property
    def reason(self) -> str:
        """What is wrong with it, without its place."""
        said = str(self.error).partition(f" ({self.example.place}")[0]
        return said[:1].lower() + said[1:]

    @property
    def audio(self) -> str | None:
        """The member or the file."""
        place, audio = self.example.place, self.example.audio
        if place.member is None and audio is not None and isinstance(audio.source, str):
            # A relative path that is nowhere is most likely beside the manifest.
            return _beside(audio.source, place) or audio.source
        return place.member


class _MissingAudioError(SourceNotFoundError):
    """A file that a cut names and that is not there."""

    def __init__(self, path: str, place: Place) -> None:
        super().__init__(
            "the audio file does not exist",
            where=f"{place}, audio {path}",
            fix="Restore it, or correct the row's path",
        )
        self.path = path

    def __reduce__(self) -> tuple[type[SourceNotFoundError], tuple[str]]:
        return SourceNotFoundError, (str(self),)


def is_about_audio(error: BaseException) -> bool:
    """Whether an error may come from audio: ours, Lhotse's or libsndfile's, or a missing file.

    What caused an error counts as well. A wrong yes costs some decoding, no more.
    """
    seen: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if seen is None:
            return False
        if isinstance(seen, (AudioError, FileNotFoundError)) or _is_of_audio(type(seen).__module__):
            return True
        if any(map(_is_of_audio, _modules(seen.__traceback__))):
            return True
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return False


def _is_of_audio(module: str) -> bool:
    return module.startswith("lhotse.audio") or module.partition(".")[0] == "soundfile"


def _modules(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        yield str(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next


def find_bad(
    examples: Sequence[Example],
    sample_rate: int | None,
    channels: Sequence[int | str | None],
    *,
    as_cuts: bool,
) -> list[BadAudio]:
    """Decode the samples of a batch, and return those that cannot be, in order.

    What is found is a function of the bytes alone: they are read from the disk by what retries,
    and decoded from memory.

    Parameters
    ----------
    examples
        The samples, as they were read.
    sample_rate
        The rate in Hz that they are resampled to; None keeps each file's own.
    channels
        For each sample the `channel_selector` of its leaf.
    as_cuts
        Also let Lhotse decode them, which may refuse more.

    Raises
    ------
    SourceNotFoundError
        If audio is missing together with its folder: then a disk is gone, not a file.
    AudioError
        If audio may not be read: rights are no matter of the data.
    OSError
        If a disk fails, and goes on failing.
    """
    bad: list[BadAudio] = []
    for at, (example, channel) in enumerate(zip(examples, channels, strict=True)):
        for row in example.members or (example,):
            try:
                _check(row, sample_rate, channel, as_cuts=as_cuts)
            except SourceNotFoundError as error:
                _check_folder(row, error)
                bad.append(BadAudio(at, row, error))
            except AudioError as error:
                _check_rights(row)
                bad.append(BadAudio(at, row, error))
            else:
                continue
            break
    return bad


def _check(
    example: Example, sample_rate: int | None, channel: int | str | None, *, as_cuts: bool
) -> None:
    place = example.place
    if example.audio is not None:
        audio = example.audio
        if isinstance(audio.source, str):
            audio = replace(audio, source=_found_path(audio.source, place))
        decode(audio, sample_rate, place)
        if not as_cuts:
            return
    elif example.cut_data is None:
        raise AudioError(
            "the sample has no audio", where=str(place), fix="Use a dataset that needs none"
        )
    from playhead.fetch.backend import quick_audio_backend  # noqa: PLC0415 - imports Lhotse, 2 s
    from playhead.fetch.cuts import to_cut  # noqa: PLC0415 - same

    with quick_audio_backend():
        cut = _with_bytes(to_cut(example, sample_rate, {}, channel), place)
        try:
            samples: Any = cut.load_audio() if cut.has_recording else None
        except Exception as error:
            said = next(iter(str(error).splitlines()), "")
            raise AudioError(
                f"Lhotse cannot load the cut: {type(error).__name__}: {said}",
                where=str(place),
                fix="Restore its audio, or mark its row with _skipme",
            ) from error
    if samples is None:
        raise AudioError("the cut has no recording", where=str(place), fix="Attach one to the cut")


def _with_bytes(cut: Any, place: Place) -> Any:
    """Return a cut whose files are read already, by what tells errors of a disk from their end."""
    from lhotse.cut import MixedCut, PaddingCut  # noqa: PLC0415 - imports Lhotse, 2 s
    from lhotse.utils import fastcopy  # noqa: PLC0415 - same

    if isinstance(cut, PaddingCut):
        return cut
    if isinstance(cut, MixedCut):
        tracks = [fastcopy(track, cut=_with_bytes(track.cut, place)) for track in cut.tracks]
        return fastcopy(cut, tracks=tracks)
    if not cut.has_recording:
        return cut
    sources: list[Any] = []
    for source in cut.recording.sources:
        if source.type == "file":
            data = _read_file(str(source.source), place)
            source = fastcopy(source, type="memory", source=data)  # noqa: PLW2901 - the same, read
        sources.append(source)
    return fastcopy(cut, recording=fastcopy(cut.recording, sources=sources))


def _found_path(path: str, place: Place) -> str:
    """Look once more for a relative path beside its manifest.

    When the row was read, a disk that fails made it look as if nothing were there.
    """
    beside = _beside(path, place)
    if beside is None:
        return path
    try:
        local.size(beside)
    except (SourceNotFoundError, NotADirectoryError):
        return path
    return beside


def _beside(path: str, place: Place) -> str | None:
    """Where a relative path lies beside its manifest; None for others."""
    if path.startswith("/") or scheme(path) or "\0" in path:
        return None
    return os.path.join(os.path.dirname(place.shard), path)  # noqa: PTH118, PTH120 - it may be a URL


def _read_file(path: str, place: Place) -> bytes:
    path = _found_path(path, place)
    try:
        return local.read_ranges(path, [0], [local.size(path)])[0]
    except SourceNotFoundError:
        raise _MissingAudioError(path, place) from None
    except IsADirectoryError:
        raise AudioError(
            "the path of the audio is a folder",
            where=f"{place}, audio {path}",
            fix="Correct the row's path",
        ) from None


def _check_folder(example: Example, error: SourceNotFoundError) -> None:
    """Let a missing file be one only if its folder is there: an empty one is a mount that is gone.

    Raises
    ------
    SourceNotFoundError
        The error, if it is not.
    """
    path = error.path if isinstance(error, _MissingAudioError) else None
    if path is None and example.audio is not None and isinstance(example.audio.source, str):
        path = example.audio.source
    if path is not None:
        for one in (_beside(path, example.place), path):
            if one is not None and _is_populated(Path(one).absolute().parent):
                return
    raise error


def _is_populated(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _check_rights(example: Example) -> None:
    """Let the error that is being handled pass if nobody may read the file.

    Raises
    ------
    AudioError
        The error.
    """
    if example.audio is None or isinstance(example.audio.source, bytes):
        return
    path = example.audio.source
    try:
        forbidden = not scheme(path) and Path(path).exists() and not os.access(path, os.R_OK)
    except PermissionError:
        forbidden = True
    except (OSError, ValueError):
        forbidden = False
    if forbidden:
        raise  # noqa: PLE0704 - it is called by the handler


def without(micro_batch: MicroBatch, places: Sequence[int]) -> MicroBatch:
    """Return a micro-batch without the samples in some places."""
    kept = np.delete(np.arange(len(micro_batch.row)), np.array(places, np.int64))
    columns = {
        field.name: getattr(micro_batch, field.name)[kept]
        for field in dataclasses.fields(micro_batch)
        if isinstance(getattr(micro_batch, field.name), np.ndarray)
    }
    return dataclasses.replace(micro_batch, **columns)
