"""A stretch of a file or object as a file of its own, read as libraries read files."""

from __future__ import annotations

import io

from playhead.storage import access

__all__ = ["RangeFile"]


class RangeFile(io.RawIOBase):
    """Bytes that are read where they lie: again after a hiccup, and never short.

    Parameters
    ----------
    uri
        The file or object.
    start
        First byte of the stretch.
    size
        Its bytes; all that follow if None.
    least_bytes
        Bytes that are read at a time at least; those that nobody asked for are kept until the next
        time.
    """

    def __init__(
        self, uri: str, start: int = 0, size: int | None = None, *, least_bytes: int = 0
    ) -> None:
        super().__init__()
        self._uri = uri
        self._start = start
        self._size = access.size(uri) - start if size is None else size
        self._least = least_bytes
        self._at = 0
        self._held = b""
        self._held_from = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Where the next byte is read, from the stretch's first."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes; fewer only at the end.

        Raises
        ------
        SourceNotFoundError, DataError, StorageError, OSError
            As `read_ranges`.
        """
        left = max(0, self._size - self._at)
        count = left if size < 0 else min(size, left)
        if count == 0:
            return b""
        at = self._at - self._held_from
        if not 0 <= at <= at + count <= len(self._held):
            wanted = min(max(count, self._least), left)
            (self._held,) = access.read_ranges(self._uri, [self._start + self._at], [wanted])
            self._held_from, at = self._at, 0
        self._at += count
        data = self._held[at : at + count]
        if len(self._held) > self._least:
            self._held = b""
        return data

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  (the caller's is one)
        """Read the next bytes into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
