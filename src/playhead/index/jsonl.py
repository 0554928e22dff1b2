r"""Where the records of a JSON-lines file begin.

A record ends with the byte 0x0A and nothing else, as Lhotse 2 counts: `\r` stays inside its
record, a blank line is a record of one byte, a byte order mark belongs to the first record, and
a last line without its newline is a record too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import SourceNotFoundError
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["iter_jsonl_offsets", "scan_jsonl"]

_BLOCK = 1 << 20
_NEWLINE = 0x0A


def scan_jsonl(path: str | os.PathLike[str]) -> NDArray[np.uint64]:
    r"""Find every record of a JSON-lines file.

    Parameters
    ----------
    path
        A file or object that is not compressed.

    Returns
    -------
    NDArray[np.uint64]
        Shape (N + 1,): the first byte of each record, then the size of the file.

    Raises
    ------
    SourceNotFoundError
        There is no such file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = path.write_bytes(b'{"a":1}\n\n{}')
    >>> scan_jsonl(path).tolist()
    [0, 8, 9, 11]
    """
    return np.concatenate(list(iter_jsonl_offsets(path)))


def iter_jsonl_offsets(path: str | os.PathLike[str]) -> Iterator[NDArray[np.uint64]]:
    """Give what `scan_jsonl` gives, in pieces: memory does not grow with the file.

    Parameters
    ----------
    path
        A file or object that is not compressed.

    Yields
    ------
    NDArray[np.uint64]
        The next offsets; the last entry of the last piece is the size of the file.

    Raises
    ------
    SourceNotFoundError
        There is no such file.
    """
    is_newline = np.empty(_BLOCK, np.bool_)
    position = 0
    # The start of a record is known only once there is a byte after the newline.
    pending = True
    for codes in _blocks(os.fspath(path)):
        count = len(codes)
        np.equal(codes, _NEWLINE, out=is_newline[:count])
        starts = np.flatnonzero(is_newline[:count])
        starts += position + 1
        if pending:
            starts = np.concatenate([np.array([position], starts.dtype), starts])
        position += count
        pending = bool(starts.size) and int(starts[-1]) == position
        yield (starts[:-1] if pending else starts).astype(np.uint64)
    yield np.array([position], np.uint64)


def _blocks(path: str) -> Iterator[NDArray[np.uint8]]:
    """Give the bytes of a file, at most `_BLOCK` at a time; each is gone when the next comes."""
    if access.is_remote(path):
        for block in access.stream(path, block_bytes=_BLOCK):
            yield np.frombuffer(block, np.uint8)
        return
    buffer = bytearray(_BLOCK)
    codes = np.frombuffer(buffer, np.uint8)
    try:
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115  (closed below)
    except FileNotFoundError as error:
        raise SourceNotFoundError("there is no such file", where=path) from error
    with file:
        while count := file.readinto(memoryview(buffer)):
            yield codes[:count]
