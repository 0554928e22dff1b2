"""The `.idx` sidecar: where the records of a file begin, as Lhotse 2 and NeMo write it.

A bare array of little-endian uint64: the first byte of every record, then a sentinel that is the
size of the source. No header, no version, no checksum.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO
from typing import IO, TYPE_CHECKING

import numpy as np

from playhead.errors import IndexFileError, IndexMissingError
from playhead.storage import access
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["IdxSummary", "read_idx", "summarize_idx", "write_idx", "write_idx_blocks"]

_DTYPE = np.dtype("<u8")
_BLOCK = 1 << 17
_REBUILD = "Rebuild it with `playhead index --force`"


@dataclass(frozen=True, kw_only=True, slots=True)
class IdxSummary:
    """What one knows of an `.idx` after one pass over it."""

    records: int
    """The number of records."""
    head: tuple[int, ...]
    """The first two entries; one if there are no records."""
    sentinel: int
    """The last entry: the size of the source when it was indexed."""


def write_idx(path: str | os.PathLike[str], offsets: NDArray[np.uint64]) -> None:
    """Write an `.idx`, whole or not at all.

    Parameters
    ----------
    path
        The file or object to make or to replace.
    offsets
        Shape (N + 1,): the first byte of each record, then the size of the source.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "a.jsonl.idx")
    >>> write_idx(path, np.array([0, 7, 12], np.uint64))
    >>> read_idx(path).tolist()
    [0, 7, 12]
    """
    write_idx_blocks(path, [offsets])


def write_idx_blocks(path: str | os.PathLike[str], blocks: Iterable[NDArray[np.uint64]]) -> int:
    """Write an `.idx` from pieces, so that a source of any size takes bounded memory.

    Parameters
    ----------
    path
        The file or object to make or to replace. It stays as it is if `blocks` raises.
    blocks
        The offsets in order; the last entry of the last block is the sentinel.

    Returns
    -------
    int
        The number of records.
    """
    where = os.fspath(path)
    if access.is_remote(where):
        file = BytesIO()
        records = _write_entries(file, blocks, where)
        access.write(where, file.getvalue())
        return records
    with atomic_write(where) as file:
        return _write_entries(file, blocks, where)


def _write_entries(file: IO[bytes], blocks: Iterable[NDArray[np.uint64]], where: str) -> int:
    entries = 0
    for block in blocks:
        file.write(np.ascontiguousarray(block, _DTYPE).data)
        entries += len(block)
    if entries == 0:
        raise IndexFileError("an index needs at least its sentinel", where=where)
    return entries - 1


def read_idx(path: str | os.PathLike[str]) -> NDArray[np.uint64]:
    """Read a whole `.idx`.

    Parameters
    ----------
    path
        The file or object.

    Returns
    -------
    NDArray[np.uint64]
        Shape (N + 1,): the first byte of each record, then the size of the source.

    Raises
    ------
    IndexMissingError
        There is no such file.
    IndexFileError
        The file is not an `.idx`: empty, cut short, or its entries decrease.
    """
    return np.concatenate(list(_read_blocks(path)))


def summarize_idx(path: str | os.PathLike[str]) -> IdxSummary:
    """Check an `.idx` in bounded memory and say what it holds.

    Parameters
    ----------
    path
        The file or object.

    Raises
    ------
    IndexMissingError
        There is no such file.
    IndexFileError
        The file is not an `.idx`: empty, cut short, or its entries decrease.
    """
    head: list[int] = []
    entries, sentinel = 0, 0
    for block in _read_blocks(path):
        head.extend(block[: 2 - len(head)].tolist())
        entries += len(block)
        sentinel = int(block[-1])
    return IdxSummary(records=entries - 1, head=tuple(head), sentinel=sentinel)


def _read_blocks(path: str | os.PathLike[str]) -> Iterator[NDArray[np.uint64]]:
    where = os.fspath(path)
    entries, last = 0, 0
    for raw in _pieces(where):
        if len(raw) % 8:
            raise IndexFileError(
                f"the index is cut short: {entries * 8 + len(raw):,} bytes are not whole "
                "8-byte entries",
                where=where,
                fix=_REBUILD,
            )
        block = np.frombuffer(raw, _DTYPE).astype(np.uint64, copy=False)
        if int(block[0]) < last or bool((block[1:] < block[:-1]).any()):
            raise IndexFileError(
                "the index is damaged: its offsets do not increase",
                where=where,
                fix=_REBUILD,
            )
        last = int(block[-1])
        entries += len(block)
        yield block
    if entries == 0:
        raise IndexFileError("the index is empty", where=where, fix=_REBUILD)


def _pieces(path: str) -> Iterator[bytes]:
    """Give the bytes of a file or object, whole entries at a time but for the last."""
    try:
        yield from access.stream(path, block_bytes=_BLOCK * 8)
    except FileNotFoundError as error:
        raise IndexMissingError(
            "there is no index", where=path, fix="Build it with `playhead index`"
        ) from error
