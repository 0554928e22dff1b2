"""Samples whose audio cannot be used: what is kept of each, and what is left of their batch."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from playhead.errors import AudioError, SourceNotFoundError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

    from playhead.formats.example import Example, Place
    from playhead.plan.batch import MicroBatch

__all__ = ["BadAudio", "BadSample", "Holes", "beside", "chosen", "is_about_audio", "without"]

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


def beside(path: str, place: Place) -> str | None:
    """Return where a relative path lies beside its manifest; None for others."""
    if path.startswith("/") or scheme(path) or "\0" in path:
        return None
    return os.path.join(os.path.dirname(place.shard), path)  # noqa: PTH118, PTH120 - it may be a URL


def without(micro_batch: MicroBatch, places: Sequence[int]) -> MicroBatch:
    """Return a micro-batch without the samples in some places."""
    return chosen(micro_batch, np.delete(np.arange(len(micro_batch.row)), np.array(places, int)))


def chosen(micro_batch: MicroBatch, places: Sequence[int] | NDArray[np.int64]) -> MicroBatch:
    """Return a micro-batch of the samples in some places."""
    kept = np.array(places, np.int64)
    columns = {
        field.name: getattr(micro_batch, field.name)[kept]
        for field in dataclasses.fields(micro_batch)
        if isinstance(getattr(micro_batch, field.name), np.ndarray)
    }
    return dataclasses.replace(micro_batch, **columns)
