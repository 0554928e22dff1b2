"""Reading what is compressed to its end, or not at all: nothing is cut off in silence."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from playhead.errors import DataError, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from io import BufferedReader

__all__ = ["SUFFIXES", "Readable", "open_compressed"]

SUFFIXES: Final = (".gz", ".bz2", ".xz", ".lz4", ".zst")
"""What the names of compressed files end with; all but `.lz4` can be read."""

_PIECE = 1 << 16


class Readable(Protocol):
    """Bytes that come one piece after another."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` of the next bytes; none only at the end."""
        ...


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@contextmanager
def open_compressed(path: str) -> Generator[Readable]:
    """Open a file that is compressed, by its suffix; several streams in a row are one.

    Python's own readers of bzip2 and xz take damage at the start of a later stream for the end.

    Raises
    ------
    DataError
        If it is damaged or cut short, also while it is read; a file cut exactly between two
        streams is complete as far as anybody can tell.
    NotSupportedError
        If it is compressed in a way that is not known.
    """
    try:
        with Path(path).open("rb") as file:
            yield _reader(path, file)
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        # An error of the disk has a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(
            f"the file cannot be decompressed: {error}", where=path, fix="Write it again"
        ) from None


def _reader(path: str, file: BufferedReader) -> Readable:
    if not file.peek(1):
        raise EOFError("it is empty, and even nothing has some bytes when it is compressed")
    if path.endswith(".gz"):
        return gzip.GzipFile(fileobj=file)
    if path.endswith(".bz2"):
        return _Streams(file, bz2.BZ2Decompressor)
    if path.endswith(".xz"):
        return _Streams(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))
    if path.endswith(".zst"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and only this needs it

        return pa.CompressedInputStream(file, "zstd")
    raise NotSupportedError(
        "a manifest can be compressed by gzip, bzip2, xz or zstd only",
        where=path,
        fix="Decompress it",
    )


class _Streams:
    """Streams one after another; what is between and behind them may only be zeros."""

    def __init__(self, file: BufferedReader, start: Callable[[], _Decompressor]) -> None:
        self._file = file
        self._start = start
        self._stream = start()
        self._next = b""

    def read(self, size: int, /) -> bytes:
        while True:
            if self._stream.eof and not self._begin_another():
                return b""
            data = b""
            if self._stream.needs_input:
                data, self._next = self._next or self._file.read(_PIECE), b""
                if not data:
                    raise EOFError("it ends before its end mark")
            if piece := self._stream.decompress(data, size):
                return piece

    def _begin_another(self) -> bool:
        data = self._stream.unused_data or self._file.read(_PIECE)
        while data:
            begin = data.lstrip(b"\0")
            if begin:
                self._stream, self._next = self._start(), begin
                return True
            data = self._file.read(_PIECE)
        return False
