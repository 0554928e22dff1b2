"""The files that an index is made from: whether they changed, and their lines in blocks."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import (
    BuildError,
    ConfigError,
    DataError,
    PlayheadError,
    SourceNotFoundError,
)
from playhead.storage import access
from playhead.storage.compression import open_whole
from playhead.storage.local import forget_replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "BLOCK_BYTES",
    "LineBlock",
    "Stamp",
    "check_unchanged",
    "read_lines",
    "stamp",
    "stamps",
]

BLOCK_BYTES: Final = 4 << 20
"""Bytes of lines that are held at a time."""

_MAX_LINE_BYTES = 64 << 20
_BOM = b"\xef\xbb\xbf"
_MANY_FILES = 256
_STAT_THREADS = 16


class Stamp(NamedTuple):
    """What tells that a file or object changed."""

    size: int
    """Bytes, as they are stored; 0 for what a command writes (`pipe:`), of which nobody knows."""
    mtime_ns: int
    """Time of the last change of a file, in nanoseconds since 1970; the `Stat.version` of an
    object."""


class LineBlock(NamedTuple):
    """Whole lines of a file, in order."""

    data: bytes
    """Their bytes; only the file's last line may lack its end."""
    offset: int
    """Byte of the first one in the file, decompressed."""
    first_line: int
    """Number of lines before it."""


def stamp(path: str) -> Stamp:
    """Read the size and time of a file, or the size and version of an object.

    Raises
    ------
    SourceNotFoundError
        If it does not exist.
    StorageError
        If it is an object that cannot be looked at.
    ConfigError
        If it is a folder or a pipe, cannot be a path, or may not be looked at.
    BuildError
        If the system fails to look at it.
    """
    if access.is_remote(path):
        return Stamp(*access.stats([path])[0])
    try:
        found = os.stat(path)  # noqa: PTH116 - there are a hundred thousand of them
    except (FileNotFoundError, NotADirectoryError):
        fix = "Correct the path in the config"
        if any(char in path for char in "*?"):
            fix = "Write a range, such as shard_{0..9}.tar: * and ? are no patterns here"
        raise SourceNotFoundError("the file does not exist", where=path, fix=fix) from None
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None
    # A pipe would be waited for, maybe for ever, once it is opened.
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise ConfigError(
            f"this is {what}, not a file", where=path, fix="Name the file in the config"
        )
    # What is read from here on belongs to this stamp.
    forget_replaced(path, found)
    return Stamp(found.st_size, found.st_mtime_ns)


def _unusable(path: str, error: OSError | ValueError) -> PlayheadError:
    """Say what the system says of a path, with what helps against it."""
    if not isinstance(error, OSError):
        said, fix = f"this cannot be a path: {error}", "Correct the path in the config"
    elif error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
        said, fix = f"this cannot be a path: {error.strerror}", "Correct the path in the config"
    elif error.errno in (errno.EACCES, errno.EPERM):
        said = f"the file may not be looked at: {error.strerror}"
        fix = "Give the right to read it and the folders above it"
    else:
        said = f"the file cannot be looked at: {error.strerror}"
        return BuildError(said, where=path, fix="Look after the disk, and start again")
    return ConfigError(said, where=path, fix=fix)


def stamps(paths: Sequence[str]) -> list[Stamp]:
    """Look at many files and objects, side by side where they are very many or not local."""
    remote = [place for place, path in enumerate(paths) if access.is_remote(path)]
    if not remote:
        return _local_stamps(paths)
    looked = dict(zip(remote, access.stats([paths[place] for place in remote]), strict=True))
    rest = iter(_local_stamps([path for place, path in enumerate(paths) if place not in looked]))
    return [Stamp(*looked[place]) if place in looked else next(rest) for place in range(len(paths))]


def _local_stamps(paths: Sequence[str]) -> list[Stamp]:
    if len(paths) < _MANY_FILES:
        return _stamp_all(paths)
    chunks = [paths[i : i + _MANY_FILES] for i in range(0, len(paths), _MANY_FILES)]
    with ThreadPoolExecutor(_STAT_THREADS) as pool:
        return [one for some in pool.map(_stamp_all, chunks) for one in some]


def _stamp_all(paths: Sequence[str]) -> list[Stamp]:
    return [stamp(path) for path in paths]


def check_unchanged(path: str, before: Stamp) -> None:
    """Compare a file with what it was when its reading began.

    Raises
    ------
    BuildError
        If it changed.
    """
    after = stamp(path)
    if after != before:
        raise BuildError(
            f"the file changed while it was read ({before.size} bytes, then {after.size})",
            where=path,
            fix="Index it again when nobody writes to it",
        )


def read_lines(path: str, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    r"""Read a file's lines in blocks of about `block_bytes`, without its byte order mark.

    Lines end with ``\n`` alone; a ``\r`` before it stays.

    Raises
    ------
    DataError
        If a line is longer than 64 MiB, or the file cannot be decompressed to its end.
    NotSupportedError
        If it is compressed in a way that is not known.
    """
    pending, offset, lines = b"", 0, 0
    for piece in _pieces(path, block_bytes):
        if offset == 0 and piece == _BOM:
            offset = len(_BOM)
            continue
        end = piece.rfind(b"\n") + 1
        if not end:
            pending += piece
        else:
            whole = pending + piece[:end]
            yield LineBlock(whole, offset, lines)
            offset += len(whole)
            lines += whole.count(b"\n")
            pending = piece[end:]
        if len(pending) > _MAX_LINE_BYTES:
            raise DataError(
                f"the line is longer than {_MAX_LINE_BYTES >> 20} MiB",
                where=f"{path}:{lines + 1}, byte {offset}",
                fix="Write one JSON object on each line",
            )
    if pending:
        yield LineBlock(pending, offset, lines)


def _pieces(path: str, block_bytes: int) -> Iterator[bytes]:
    """Give a file's first three bytes, where a byte order mark would be, then the rest."""
    with open_whole(path) as file:
        head = b""
        while len(head) < len(_BOM) and (piece := file.read(len(_BOM) - len(head))):
            head += piece
        if head:
            yield head
        while piece := file.read(block_bytes):
            yield piece
