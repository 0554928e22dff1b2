"""Byte ranges of many files that are read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from playhead.fetch.access_mode import AccessMode
from playhead.storage import access
from playhead.storage.base import ByteRange
from playhead.storage.get_batch import served_by_aistore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.fetch.kept import Kept
    from playhead.fetch.timings import Timings
    from playhead.storage.aistore import AIStore

__all__ = ["FileRanges", "Ranges"]


class FileRanges(NamedTuple):
    """Byte ranges of one file; arrays have shape (K,)."""

    path: str
    """The file."""
    kept: bool
    """Whether it is read from a whole copy."""
    offsets: NDArray[np.int64]
    """First byte of each range."""
    sizes: NDArray[np.int64]
    """Bytes of each."""
    places: NDArray[np.int64]
    """Where each goes."""

    def ranges(self) -> list[ByteRange]:
        """The ranges, one by one."""
        spans = zip(self.offsets.tolist(), self.sizes.tolist(), strict=True)
        return [ByteRange(self.path, *span) for span in spans]


class Ranges:
    """Byte ranges of many files, gathered from all leaves.

    Files of a disk are read one after another, all that lies elsewhere at once.

    Parameters
    ----------
    kept
        What reads the files of which there are whole copies.
    access_mode
        How AIStore is asked: with one request for a batch, or one for each range.
    """

    def __init__(self, kept: Kept, access_mode: AccessMode = AccessMode.RANGES) -> None:
        self._kept = kept
        self._access = access_mode
        self._whole: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._parts: list[tuple[NDArray[np.int64], ...]] = []

    def number_of(self, path: str, *, kept: bool = False) -> int:
        """The number by which ranges name a file; `kept` files are read from a whole copy."""
        if kept:
            self._whole.add(path)
        return self._numbers.setdefault(path, len(self._numbers))

    def add(
        self,
        files: NDArray[np.int64],
        offsets: NDArray[np.int64],
        sizes: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        """Ask for ranges, each to be put in a place of its own."""
        self._parts.append((files, offsets, sizes, places))

    def by_file(self) -> Iterator[FileRanges]:
        """Everything asked for, file by file."""
        if not self._parts:
            return
        files, offsets, sizes, places = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.argsort(files, kind="stable")
        borders = np.searchsorted(files[order], np.arange(len(self._numbers) + 1)).tolist()
        for path, number in self._numbers.items():
            chosen = order[borders[number] : borders[number + 1]]
            if len(chosen):
                kept = path in self._whole
                yield FileRanges(path, kept, offsets[chosen], sizes[chosen], places[chosen])

    def read(self, num_places: int, timings: Timings) -> list[bytes | None]:
        """Everything asked for, by place."""
        data: list[bytes | None] = [None] * num_places
        far: list[ByteRange] = []
        places: list[int] = []
        for one in self.by_file():
            if not one.kept and access.is_remote(one.path):
                far += one.ranges()
                places += one.places.tolist()
                continue
            with timings.reading(one.path, int(one.sizes.sum()), len(one.places)):
                found = self._read(one)
            for place, part in zip(one.places.tolist(), found, strict=True):
                data[place] = part
        if far:
            with timings.reading(far[0].uri, sum(one.size for one in far), len(far)):
                found = self._read_far(far)
            for place, part in zip(places, found, strict=True):
                data[place] = part
        return data

    def _read_far(self, asked: Sequence[ByteRange]) -> list[bytes]:
        together = self._access is AccessMode.BATCH
        served = [one for one in asked if together and served_by_aistore(one.uri)]
        if not served:
            return access.read_many(asked)
        store = cast("AIStore", access.store_of(served[0].uri))
        near = iter(store.read_together(served))
        far = iter(access.read_many([one for one in asked if not served_by_aistore(one.uri)]))
        return [next(near if served_by_aistore(one.uri) else far) for one in asked]

    def _read(self, one: FileRanges) -> list[bytes]:
        found = self._kept.read(one.path, one.offsets, one.sizes) if one.kept else None
        return access.read_ranges(one.path, one.offsets, one.sizes) if found is None else found
