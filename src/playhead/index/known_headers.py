"""The headers of an archive whose members' places are known, asked for all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.storage import access
from playhead.storage.base import ByteRange
from playhead.storage.tarheader import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KnownHeaders"]

# An extension header with a long name, and the header that it belongs to.
_HEAD_BYTES = 4 * BLOCK
_AT_ONCE = 4_096


class KnownHeaders:
    """The bytes of an object as hopping over a tar asks for them.

    Whatever else is asked for is read by itself: offsets that are wrong cost time, never truth.

    Parameters
    ----------
    uri
        The archive.
    size
        Its bytes.
    offsets
        Where its members begin, extension headers included, ascending, shape (N,).
    """

    def __init__(self, uri: str, size: int, offsets: NDArray[np.int64]) -> None:
        self.size = size
        self._uri = uri
        self._offsets = offsets
        self._first = 0
        self._heads: list[bytes] = []

    def pread(self, size: int, offset: int) -> bytes:
        """Read so many bytes from an offset; fewer only at the end."""
        at = int(np.searchsorted(self._offsets, offset, "right")) - 1
        if at >= 0 and offset + size <= int(self._offsets[at]) + _HEAD_BYTES:
            if not self._first <= at < self._first + len(self._heads):
                self._ask(at)
            start = offset - int(self._offsets[at])
            found = self._heads[at - self._first][start : start + size]
            if len(found) == size:
                return found
        size = max(0, min(size, self.size - offset))
        return access.read_ranges(self._uri, [offset], [size])[0]

    def look_ahead(self, offset: int) -> None:
        """What follows is known, and comes when it is asked for."""

    def _ask(self, first: int) -> None:
        starts = self._offsets[first : first + _AT_ONCE].tolist()
        # No head reaches into the next one.
        ends = [*self._offsets[first + 1 : first + 1 + len(starts)].tolist(), self.size]
        ranges = [
            ByteRange(self._uri, start, min(_HEAD_BYTES, end - start, self.size - start))
            for start, end in zip(starts, ends, strict=False)
        ]
        self._first, self._heads = first, access.read_many(ranges)
