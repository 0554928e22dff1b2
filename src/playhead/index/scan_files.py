"""The rows of one manifest in a file, on their way from who reads it to who writes the pack."""

from __future__ import annotations

import os
import uuid
import zlib
from collections import Counter
from struct import Struct
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from playhead.errors import IndexFileError
from playhead.index.build_rows import Rows, ScanTask
from playhead.index.build_scan import scan
from playhead.index.columns import COLUMNS, PART_COLUMNS, Parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["SCAN_VERSION", "read_scan", "save_scan", "write_scan"]

SCAN_VERSION: Final = "1"
"""Version of the files' layout."""

# With the number of parts of each row.
_NUM_PARTS = 1 + len(PART_COLUMNS)
# Before each block: its bytes and whether it is the last one; then the CRC-32 of that and of it.
_HEAD = Struct("<Q?")
_CHECKSUM = Struct("<I")
# At the beginning of a block with rows: bytes of the table of its arrays, which follows.
_SIZE = Struct("<Q")


def save_scan(path: Path, task: ScanTask) -> None:
    """Read a manifest into a file that takes its name once it is whole.

    It is not flushed to the disk, as there may be very many and each of its bytes is checked.

    Parameters
    ----------
    path
        The file; its folder is made if it does not exist.
    task
        What to read.

    Raises
    ------
    DataError, BuildError
        If it cannot be used, or changes meanwhile.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A machine that was given up may write on: every copy is whole when it takes the name.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    with temporary.open("wb") as file:
        write_scan(file, task)
    temporary.replace(path)


def write_scan(file: IO[bytes], task: ScanTask) -> None:
    """Read a manifest, and write its rows and what was left out.

    Parameters
    ----------
    file
        Where to, from its position on.
    task
        What to read.

    Raises
    ------
    DataError, BuildError
        If it cannot be used, or changes meanwhile.
    """
    for rows in scan(task):
        arrays = [*(rows.columns[name] for name in COLUMNS), *_beside(rows)]
        said = msgspec.json.encode([(array.dtype.str, array.nbytes) for array in arrays])
        pieces = [_SIZE.pack(len(said)), said, *(array.tobytes() for array in arrays)]
        _write(file, b"".join(pieces), is_last=False)
    _write(file, msgspec.json.encode(task.dropped), is_last=True)


def read_scan(path: Path, task: ScanTask) -> Iterator[Rows]:
    """Read what `write_scan` wrote, a block of rows at a time.

    Parameters
    ----------
    path
        The file.
    task
        What was read; its counts are complete when the rows are used up.

    Raises
    ------
    IndexFileError
        If the file is damaged or cut short; it is removed then.
    """
    with path.open("rb") as file:
        while True:
            block, is_last = _read(file)
            if block is None:
                path.unlink(missing_ok=True)
                raise IndexFileError(
                    f"what was read of {task.pair.manifest} did not stay on disk as it was",
                    where=str(path),
                    fix="Look after the disk, and run the command again: it is read once more",
                )
            if is_last:
                break
            yield _rows(block)
    task.dropped = Counter(msgspec.json.decode(block, type=dict[str, int]))


def _write(file: IO[bytes], block: bytes, *, is_last: bool) -> None:
    head = _HEAD.pack(len(block), is_last)
    file.write(head + _CHECKSUM.pack(zlib.crc32(block, zlib.crc32(head))))
    file.write(block)


def _read(file: IO[bytes]) -> tuple[bytes | None, bool]:
    """Read a block, and say whether it is the last; None where it is not as it was written."""
    before = file.read(_HEAD.size + _CHECKSUM.size)
    left = os.fstat(file.fileno()).st_size - file.tell()
    if len(before) < _HEAD.size + _CHECKSUM.size:
        return None, False
    head = before[: _HEAD.size]
    size, is_last = _HEAD.unpack(head)
    block = file.read(min(size, left))
    (checksum,) = _CHECKSUM.unpack(before[_HEAD.size :])
    is_whole = len(block) == size and zlib.crc32(block, zlib.crc32(head)) == checksum
    return (block if is_whole else None), is_last


def _beside(rows: Rows) -> list[NDArray[Any]]:
    """What rows have beside their columns, as arrays."""
    data, parts = rows.data or [], rows.parts
    empty = np.zeros(0, np.int64)
    return [
        np.frombuffer(msgspec.json.encode([rows.statuses, rows.data is not None]), np.uint8),
        np.array(list(map(len, data)), np.int64),
        np.frombuffer(b"".join(data), np.uint8),
        np.array([rows.position, parts is not None], np.int64),
        *((empty,) * _NUM_PARTS if parts is None else parts),
    ]


def _rows(block: bytes) -> Rows:
    arrays = _arrays(block)
    columns = {name: next(arrays) for name in COLUMNS}
    head, sizes, content, facts, *parts = arrays
    statuses, is_embedded = msgspec.json.decode(head.tobytes())
    data = None
    if is_embedded:
        ends, whole = np.cumsum(sizes).tolist(), content.tobytes()
        data = [whole[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
    return Rows(columns, data, int(facts[0]), statuses, Parts(*parts) if facts[1] else None)


def _arrays(block: bytes) -> Iterator[NDArray[Any]]:
    (size,) = _SIZE.unpack_from(block)
    start = _SIZE.size + size
    for kind, length in msgspec.json.decode(block[_SIZE.size : start]):
        dtype = np.dtype(kind)
        yield np.frombuffer(block, dtype, length // dtype.itemsize, start)
        start += length
