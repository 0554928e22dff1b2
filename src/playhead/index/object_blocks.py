"""An object read from front to back in few requests, over stretches that nobody wants.

A request costs the time until its first byte, and its bytes. Where the next byte wanted lies close
by, what is between is cheaper to read than a request of its own; where it lies far off, it is
not. The border is what the link carries in the time that a request takes to begin.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.paths import scheme
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LEAST_BLOCK", "Link", "ObjectBlocks"]

LEAST_BLOCK: Final = 1 << 20
"""Bytes that one request asks for at least where a whole object is gone through."""

_MOST_BLOCK: Final = 8 << 20
_BLOCKS_AHEAD: Final = 4


class Link:
    """How long requests of a store take: a part that each costs, and a part for each byte.

    A straight line through what was seen, of which the latest counts most.
    """

    least = LEAST_BLOCK
    """A block is read at least, so a shorter gap is never hopped over."""
    most = 32 << 20
    default = 4 << 20
    """What 200 MB/s carry in 20 ms."""
    _fading = 0.95

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = (0.0,) * 5

    def add(self, size: int, seconds: float) -> None:
        """Note how long a request took."""
        seen = (1.0, size, seconds, size * size, size * seconds)
        with self._lock:
            self._sums = tuple(
                self._fading * old + new for old, new in zip(self._sums, seen, strict=True)
            )

    @property
    def gap(self) -> int:
        """Bytes that are read in the time in which a request begins.

        Examples
        --------
        >>> link = Link()
        >>> for size in (1_000_000, 2_000_000, 3_000_000):
        ...     link.add(size, 0.05 + size / 100e6)
        >>> round(link.gap / 1e6, 3)
        5.0
        """
        count, size, seconds, squares, products = self._sums
        spread = count * squares - size * size
        if spread <= 1e-9 * squares:
            return self.default
        per_byte = (count * products - size * seconds) / spread
        begin = (seconds - per_byte * size) / count
        if per_byte <= 0:
            return self.default
        return int(min(max(begin / per_byte, self.least), self.most))


@lru_cache(maxsize=64)
def _link_of(place: str) -> Link:
    del place
    return Link()


class _Block(NamedTuple):
    """Bytes that were asked for."""

    start: int
    size: int
    data: Future[bytes]


class ObjectBlocks:
    """The bytes of an object, asked for before they are wanted where that is sure to be.

    Blocks in a row are asked for side by side: at first one, then up to four times as much as was
    read in a row. After a hop over a gap it is one again.

    Parameters
    ----------
    uri
        The object.
    size
        Its bytes.
    least_block
        Bytes that one request asks for at least.
    """

    def __init__(self, uri: str, size: int, least_block: int = LEAST_BLOCK) -> None:
        self.size = size
        self._least = least_block
        self._uri = uri
        self._link = _link_of(f"{scheme(uri)}://{uri.partition('://')[2].partition('/')[0]}")
        self._threads = ThreadPoolExecutor(_BLOCKS_AHEAD, thread_name_prefix="playhead-blocks")
        self._start = 0
        self._data = b""
        self._asked: deque[_Block] = deque()
        self._end_asked = 0
        self._in_a_row = 0

    def pread(self, size: int, offset: int) -> bytes:
        """Read bytes from an offset; fewer only at the end.

        Raises
        ------
        SourceNotFoundError, DataError, StorageError
            If the object is gone, shorter by now, or cannot be read.
        """
        end = min(offset + size, self.size)
        if offset >= end:
            return b""
        if offset < self._start:
            self._hop(offset)
        while self._start + len(self._data) < end:
            self._advance(offset)
        return self._data[offset - self._start : end - self._start]

    def look_ahead(self, offset: int) -> None:
        """Do nothing: what will be wanted is seen from what was."""

    def close(self) -> None:
        """Let go of what was asked for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _advance(self, offset: int) -> None:
        """Take the next block; keep of the last one what lies behind an offset."""
        kept = self._data[max(0, offset - self._start) :]
        if not kept and offset - self._end_asked > self._link.gap:
            self._hop(offset)
        self._ask()
        block = self._asked.popleft()
        data = block.data.result()
        self._in_a_row += block.size
        self._start, self._data = block.start - len(kept), kept + data

    def _hop(self, offset: int) -> None:
        _cancel(block.data for block in self._asked)
        self._asked.clear()
        self._start = self._end_asked = offset
        self._data = b""
        self._in_a_row = 0

    def _ask(self) -> None:
        budget = _BLOCKS_AHEAD * self._in_a_row
        size = min(max(budget // _BLOCKS_AHEAD, self._least), _MOST_BLOCK)
        waiting = sum(block.size for block in self._asked)
        while self._end_asked < self.size and (
            not self._asked or (len(self._asked) < _BLOCKS_AHEAD and waiting + size <= budget)
        ):
            start, size = self._end_asked, min(size, self.size - self._end_asked)
            self._asked.append(_Block(start, size, self._threads.submit(self._read, start, size)))
            self._end_asked += size
            waiting += size

    def _read(self, start: int, size: int) -> bytes:
        begin = time.perf_counter()
        (data,) = access.read_ranges(self._uri, [start], [size])
        self._link.add(size, time.perf_counter() - begin)
        return data


def _cancel(requests: Iterable[Future[bytes]]) -> None:
    for request in requests:
        request.cancel()
