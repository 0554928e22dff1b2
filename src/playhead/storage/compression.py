"""Files from their start to their end, decompressed: nothing is cut off in silence.

What a name says of a file is said here too: whether it is compressed, whether it is an archive, and
whether one can read from its middle.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from playhead.errors import DataError, NotSupportedError, PlayheadError
from playhead.paths import scheme
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__all__ = [
    "SUFFIXES",
    "Readable",
    "has_middle",
    "is_archive",
    "is_compressed",
    "open_whole",
    "plain_name",
]

SUFFIXES: Final = (".gz", ".bz2", ".xz", ".lz4", ".zst")
"""What the names of compressed files end with; all but `.lz4` can be read."""

_PIECE = 1 << 16
_SHORT = ".tgz"
_ARCHIVE_IN_COMMAND = re.compile(r"\.(tar|tgz)(?![A-Za-z0-9])")


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


def is_compressed(uri: str) -> bool:
    """Whether a file is compressed, by its suffix; what comes out of a `pipe:` is not.

    Examples
    --------
    >>> is_compressed("cuts.jsonl.gz"), is_compressed("cuts.jsonl"), is_compressed("pipe:cat a.gz")
    (True, False, False)
    """
    return _name(uri).endswith((*SUFFIXES, _SHORT)) and scheme(uri) != "pipe"


def plain_name(uri: str) -> str:
    """What a file would be called if it were not compressed, without the query of a URL.

    Examples
    --------
    >>> plain_name("cuts.jsonl.gz"), plain_name("a.tgz"), plain_name("https://host/a.tar?key=1")
    ('cuts.jsonl', 'a.tar', 'https://host/a.tar')
    """
    name = _name(uri)
    if not is_compressed(uri):
        return name
    stem = name.rpartition(".")[0]
    return f"{stem}.tar" if name.endswith(_SHORT) else stem


def is_archive(uri: str) -> bool:
    """Whether a file is a tar, compressed or not, by its suffix; a `pipe:` by what it names.

    Examples
    --------
    >>> is_archive("a.tar"), is_archive("a.tar.gz"), is_archive("a.jsonl")
    (True, True, False)
    >>> is_archive("pipe:aws s3 cp s3://b/a.tar -"), is_archive("pipe:cat tar.jsonl")
    (True, False)
    """
    if scheme(uri) == "pipe":
        return _ARCHIVE_IN_COMMAND.search(uri) is not None
    return plain_name(uri).endswith(".tar")


def has_middle(uri: str) -> bool:
    """Whether bytes can be read from the middle of a file, as far as its name tells.

    Examples
    --------
    >>> has_middle("a.tar"), has_middle("a.tar.gz"), has_middle("pipe:cat a.tar")
    (True, False, False)
    """
    return scheme(uri) != "pipe" and not is_compressed(uri)


@contextmanager
def open_whole(uri: str) -> Generator[Readable]:
    """Open a file or object at its start, decompressed by its suffix.

    Several compressed streams in a row are one. Python's own readers of bzip2 and xz take damage
    at the start of a later stream for the end.

    Raises
    ------
    DataError
        If it is damaged or cut short, also while it is read; a file cut exactly between two
        streams is complete as far as anybody can tell.
    NotSupportedError
        If it is compressed in a way that is not known.
    SourceNotFoundError, StorageError, OSError
        If it is not there or cannot be read.
    """
    try:
        with _opened(uri) as file:
            yield _reader(uri, file) if is_compressed(uri) else file
    except PlayheadError:
        raise
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        # An error of the disk has a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(
            f"the file cannot be decompressed: {error}", where=uri, fix="Write it again"
        ) from None


def _name(uri: str) -> str:
    return uri.partition("?")[0] if scheme(uri) in ("http", "https") else uri


def _opened(uri: str) -> io.BufferedReader:
    if access.is_remote(uri):
        return io.BufferedReader(_Blocks(access.stream(uri)), _PIECE)
    return Path(uri).open("rb")


class _Blocks(io.RawIOBase):
    """A file made of blocks that come one after another."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks = blocks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  (the caller's is one)
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = memoryview(block)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def close(self) -> None:
        # What is not read to its end (a connection, a process) is let go of.
        if close := getattr(self._blocks, "close", None):
            close()
        super().close()


def _reader(uri: str, file: io.BufferedReader) -> Readable:
    name = _name(uri)
    if not file.peek(1):
        raise EOFError("it is empty, and even nothing has some bytes when it is compressed")
    if name.endswith((".gz", _SHORT)):
        return gzip.GzipFile(fileobj=file)
    if name.endswith(".bz2"):
        return _Streams(file, bz2.BZ2Decompressor)
    if name.endswith(".xz"):
        return _Streams(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))
    if name.endswith(".zst"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and only this needs it

        return pa.CompressedInputStream(file, "zstd")
    raise NotSupportedError(
        "files can be compressed by gzip, bzip2, xz or zstd only",
        where=uri,
        fix="Decompress it",
    )


class _Streams:
    """Streams one after another; what is between and behind them may only be zeros."""

    def __init__(self, file: io.BufferedReader, start: Callable[[], _Decompressor]) -> None:
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
