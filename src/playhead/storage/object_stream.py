"""An object from some byte to its end: block by block a little ahead, or in one long answer."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playhead.errors import DataError, StorageError
from playhead.storage.calls import pause_before
from playhead.storage.failures import is_passing, said
from playhead.storage.limits import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

__all__ = ["Part", "streamed", "streamed_at_once", "version_of"]

# Blocks under way beside the one that is used.
_AHEAD: Final = 3


class Part(NamedTuple):
    """Some bytes of an object, and what the answer says of all of it."""

    data: bytes
    """The bytes."""
    size: int
    """Bytes of the whole object."""
    version: str
    """What `version_of` gives."""


def streamed(
    uri: str,
    start: int,
    block_bytes: int,
    one: Callable[[str, Callable[[], Part]], Part],
    part: Callable[[int, int], Part],
) -> Iterator[bytes]:
    """Give an object in blocks, each a request of its own, which is tried again by itself.

    Parameters
    ----------
    uri
        The object.
    start
        First byte.
    block_bytes
        Bytes of each block but the last.
    one
        Makes a request about an object, again where that may help.
    part
        Asks for so many bytes from some byte on; fewer come at the end of the object.

    Raises
    ------
    DataError
        If the object is replaced meanwhile.
    SourceNotFoundError, StorageError
        As requests do.
    """
    first = one(uri, lambda: part(start, block_bytes))
    if first.data:
        yield first.data

    def further(offset: int) -> bytes:
        count = min(block_bytes, first.size - offset)
        found = one(uri, lambda: part(offset, count))
        if found[1:] != first[1:]:
            raise _replaced(uri, offset)
        return found.data

    ahead: deque[Future[bytes]] = deque()
    pool = ThreadPoolExecutor(_AHEAD, "playhead-stream")
    try:
        for offset in range(start + block_bytes, first.size, block_bytes):
            ahead.append(pool.submit(further, offset))
            if len(ahead) > _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def streamed_at_once(
    uri: str,
    start: int,
    block_bytes: int,
    one: Callable[[str, Callable[[], Any]], Any],
    ask: Callable[[], Any],
) -> Iterator[bytes]:
    """Give an object of a server that knows no ranges; after a cut it is asked for anew.

    Parameters
    ----------
    uri, start, block_bytes, one
        As for `streamed`.
    ask
        Asks for the whole object, and returns the library's answer.

    Raises
    ------
    DataError, SourceNotFoundError, StorageError
        As `streamed`.
    """
    most = limits().tries
    version: tuple[int, str] | None = None
    kept = bytearray()
    at, tries, failure = start, 0, None
    while tries < most:
        if failure is not None:
            time.sleep(pause_before(tries))
        answer = one(uri, ask)
        if version is not None and version != (answer.meta["size"], version_of(answer.meta)):
            raise _replaced(uri, at)
        version = answer.meta["size"], version_of(answer.meta)
        failure, tries, passed = None, tries + 1, 0
        chunks = _Chunks(answer.stream(min_chunk_size=1), block_bytes)
        while chunk := one(uri, chunks.next):
            new = chunk[max(0, at - passed) :]
            passed += len(chunk)
            if not new:
                continue
            # What goes on at all may go on for as long as it needs.
            at, tries = at + len(new), 0
            kept += new
            while len(kept) >= block_bytes:
                yield bytes(kept[:block_bytes])
                del kept[:block_bytes]
        failure = chunks.failure
        if failure is None and passed == version[0]:
            if kept:
                yield bytes(kept)
            return
    raise StorageError(
        f"the answer was cut {most} times at the same place"
        f"{f': {said(failure)}' if failure is not None else ''}",
        where=f"{uri}, byte {at}",
        fix="Look at the server and the network",
    )


class _Chunks:
    """What comes of an answer, block by block; nothing more after a failure that may pass.

    An answer that trickles can be left between any two pieces of it. To wait for whole blocks would
    hold a thread, and with it the end of the process, for as long as it goes on.
    """

    def __init__(self, pieces: Iterator[bytes], block_bytes: int) -> None:
        self._pieces = pieces
        self._block_bytes = block_bytes
        self.failure: Exception | None = None

    def next(self) -> bytes:
        end = time.monotonic() + limits().deadline_seconds
        block = bytearray()
        try:
            while self.failure is None and len(block) < self._block_bytes:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                block += piece
                if time.monotonic() > end:
                    self.failure = TimeoutError()
        except Exception as error:
            if not is_passing(error):
                raise
            self.failure = error
        return bytes(block)


def version_of(meta: Any) -> str:
    """What changes when an object does: its ETag, else when it was last changed."""
    return str(meta["e_tag"] or meta["last_modified"])


def _replaced(uri: str, offset: int) -> DataError:
    return DataError(
        "the object was replaced while it was read",
        where=f"{uri}, byte {offset}",
        fix="Start again when nobody writes to it any more",
    )
