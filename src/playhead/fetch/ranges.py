"""Byte ranges of many files that are read together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.storage import access
from playhead.storage.base import ByteRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.fetch.kept import Kept
    from playhead.fetch.timings import Timings

__all__ = ["Ranges"]


class Ranges:
    """Byte ranges of many files, gathered from all leaves.

    Files of a disk are read one after another, all that lies elsewhere at once.

    Parameters
    ----------
    kept
        What reads the files of which there are whole copies.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
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

    def read(self, num_places: int, timings: Timings) -> list[bytes | None]:
        """Everything asked for, by place."""
        data: list[bytes | None] = [None] * num_places
        if not self._parts:
            return data
        files, offsets, sizes, places = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.argsort(files, kind="stable")
        borders = np.searchsorted(files[order], np.arange(len(self._numbers) + 1)).tolist()
        remote: list[NDArray[np.int64]] = []
        for path, number in self._numbers.items():
            chosen = order[borders[number] : borders[number + 1]]
            if len(chosen) == 0:
                continue
            if path not in self._whole and access.is_remote(path):
                remote.append(chosen)
                continue
            with timings.reading(path, int(sizes[chosen].sum()), len(chosen)):
                ranges = self._read(path, offsets[chosen], sizes[chosen])
            for place, part in zip(places[chosen].tolist(), ranges, strict=True):
                data[place] = part
        if remote:
            chosen = np.concatenate(remote)
            uris = list(self._numbers)
            columns = (column[chosen].tolist() for column in (files, offsets, sizes))
            asked = [ByteRange(uris[file], *span) for file, *span in zip(*columns, strict=True)]
            with timings.reading(asked[0].uri, int(sizes[chosen].sum()), len(asked)):
                parts = access.read_many(asked)
            for place, part in zip(places[chosen].tolist(), parts, strict=True):
                data[place] = part
        return data

    def _read(self, path: str, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[bytes]:
        found = self._kept.read(path, offsets, sizes) if path in self._whole else None
        return access.read_ranges(path, offsets, sizes) if found is None else found
