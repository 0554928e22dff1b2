"""Byte ranges of many files that are read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from playhead.fetch.access_mode import AccessMode
from playhead.storage import access
from playhead.storage.base import ByteRange
from playhead.storage.get_batch import served_by_aistore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.fetch.kept import Kept
    from playhead.fetch.timings import Timings
    from playhead.storage.aistore import AIStore

__all__ = ["Ranges"]


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
                parts = self._read_far(asked)
            for place, part in zip(places[chosen].tolist(), parts, strict=True):
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

    def _read(self, path: str, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[bytes]:
        found = self._kept.read(path, offsets, sizes) if path in self._whole else None
        return access.read_ranges(path, offsets, sizes) if found is None else found
