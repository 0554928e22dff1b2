"""The columns of a pack, and what identifies their content."""

from __future__ import annotations

import hashlib
import os
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "COLUMNS",
    "DIGEST_ROWS",
    "PART_COLUMNS",
    "Block",
    "ColumnSpool",
    "Digester",
    "Parts",
    "prefix_fingerprint",
]

COLUMNS: Final[Mapping[str, np.dtype]] = {
    "duration_us": np.dtype("<i8"),
    "num_samples": np.dtype("<i8"),
    "rate": np.dtype("<i4"),
    "channels": np.dtype("<i2"),
    "shard": np.dtype("<i4"),
    "row_offset": np.dtype("<i8"),
    "row_size": np.dtype("<i4"),
    "row_crc": np.dtype("<u4"),
    "tar": np.dtype("<i4"),
    "audio_offset": np.dtype("<i8"),
    "audio_size": np.dtype("<i8"),
    "status": np.dtype("<i2"),
}
"""Name and type of every column, in the order of the file."""

PART_COLUMNS: Final[Mapping[str, np.dtype]] = {
    "field": np.dtype("<i2"),
    "file": np.dtype("<i4"),
    "offset": np.dtype("<i8"),
    "size": np.dtype("<i8"),
    "duration_us": np.dtype("<i8"),
}
"""Name and type of what is known of each part of a row."""

DIGEST_ROWS: Final = 65_536
"""Rows between two stored digests."""

Block = dict[str, "NDArray"]
"""Some rows: an array for each column."""

# Left out is what does not make other data when it is learnt later, or what the row itself says.
_CONTENT = tuple(name for name in COLUMNS if name not in ("rate", "channels", "status"))
_DIGEST_BYTES = 16
_END = np.dtype("<i8")


class Parts(NamedTuple):
    """What belongs to rows and lies elsewhere; all but `num_parts` have shape (P,)."""

    num_parts: NDArray[np.int64]
    """Parts of each row, shape (K,); those of the first row come first."""
    field: NDArray[np.int16]
    """Number of the field among the leaf's."""
    file: NDArray[np.int32]
    """Place of the file in the leaf's shard table; -1 where the row itself names a plain file."""
    offset: NDArray[np.int64]
    """First byte in that file."""
    size: NDArray[np.int64]
    """Bytes."""
    duration_us: NDArray[np.int64]
    """Length of what is audio; -1 where it is something else."""


class ColumnSpool:
    """Columns on their way to a pack, on disk, so that memory does not grow with their length.

    Parameters
    ----------
    folder
        Where the unnamed temporary files are made.
    embed
        Whether rows' bytes are kept too.
    with_parts
        Whether rows have parts.

    Attributes
    ----------
    num_rows
        Rows so far.
    files
        The file of each column, and where `embed` is true of `row` (the rows' bytes, end to end)
        and `row_end` (0, then where each row ends there); with parts also of `part_end` (0, then
        how many parts the rows up to each have) and of `part_field` and so on, part after part.
    checksums
        The CRC-32 of each file so far, but for `row`, whose rows have one each.
    """

    def __init__(self, folder: Path, *, embed: bool, with_parts: bool) -> None:
        names = [*COLUMNS]
        names += ["row", "row_end"] if embed else []
        names += [f"part_{name}" for name in ("end", *PART_COLUMNS)] if with_parts else []
        self.num_rows = 0
        self.files: dict[str, IO[bytes]] = {
            name: tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
            for name in names
        }
        self.checksums: dict[str, int] = {name: 0 for name in names if name != "row"}
        self._ends: dict[str, int] = {"row_end": 0, "part_end": 0}
        for name in self._ends:
            if name in self.files:
                self._write(name, bytes(_END.itemsize))

    def append(
        self,
        block: Mapping[str, NDArray],
        data: Sequence[bytes] | None = None,
        parts: Parts | None = None,
    ) -> None:
        """Add rows; `data` has the bytes of each, where those are embedded."""
        for name, dtype in COLUMNS.items():
            self._write(name, np.ascontiguousarray(block[name], dtype).data)
        num_rows = len(block["shard"])
        self.num_rows += num_rows
        if "row" in self.files:
            sizes = [0] * num_rows if data is None else list(map(len, data))
            self._append_ends("row_end", np.array(sizes, _END))
            self.files["row"].write(b"".join(data or ()))
        if "part_end" in self.files:
            self._append_ends(
                "part_end", np.zeros(num_rows, _END) if parts is None else parts.num_parts
            )
            for name, dtype in PART_COLUMNS.items() if parts is not None else ():
                column = np.ascontiguousarray(getattr(parts, name), dtype)
                self._write(f"part_{name}", column.data)

    def _write(self, name: str, data: Any) -> None:
        self.files[name].write(data)
        self.checksums[name] = crc32(data, self.checksums[name])

    def _append_ends(self, name: str, counts: NDArray[np.int64]) -> None:
        ends = np.cumsum(counts, dtype=_END) + self._ends[name]
        self._write(name, ends.data)
        self._ends[name] = int(ends[-1]) if len(ends) else self._ends[name]

    def read(self, name: str, start: int, stop: int) -> NDArray:
        """Read some rows of a column."""
        file, dtype = self.files[name], COLUMNS[name]
        file.flush()
        file.seek(start * dtype.itemsize)
        values = np.fromfile(file, dtype, stop - start)
        file.seek(0, 2)
        return values

    def size_of(self, name: str) -> int:
        """Bytes of a file so far."""
        file = self.files[name]
        file.flush()
        return os.fstat(file.fileno()).st_size

    def close(self) -> None:
        """Give the temporary files back."""
        for file in self.files.values():
            file.close()


class Digester:
    """The content of rows that come block by block.

    Attributes
    ----------
    digests
        One for the rows up to each multiple of `DIGEST_ROWS`, each from the one before.
    """

    def __init__(self) -> None:
        self.digests: list[bytes] = []
        self._tail: list[Mapping[str, NDArray]] = []
        self._tail_rows = 0

    def append(self, block: Mapping[str, NDArray]) -> None:
        """Add rows."""
        self._tail.append({name: block[name] for name in _CONTENT})
        self._tail_rows += len(block["shard"])
        if self._tail_rows < DIGEST_ROWS:
            return
        rows = self._joined()
        start = 0
        for start in range(DIGEST_ROWS, self._tail_rows + 1, DIGEST_ROWS):
            state = self.digests[-1] if self.digests else b""
            self.digests.append(_digest(state, rows, start - DIGEST_ROWS, start))
        self._tail = [{name: column[start:] for name, column in rows.items()}]
        self._tail_rows -= start

    def fingerprint(self) -> str:
        """Identify the rows so far, as `prefix_fingerprint` does."""
        n = len(self.digests) * DIGEST_ROWS + self._tail_rows
        state = self.digests[-1] if self.digests else b""
        return _fingerprint(_digest(state, self._joined(), 0, self._tail_rows), n)

    def _joined(self) -> dict[str, NDArray]:
        return {
            name: np.concatenate([np.zeros(0, COLUMNS[name]), *(part[name] for part in self._tail)])
            for name in _CONTENT
        }


def prefix_fingerprint(columns: Mapping[str, NDArray], digests: Sequence[bytes], n: int) -> str:
    """Identify the content of the first `n` rows: their number, lengths, places of bytes, and rows.

    Neither paths nor time stamps enter, so a copy of the data has the same fingerprint.

    Parameters
    ----------
    columns
        Arrays of shape (N,), N ≥ n.
    digests
        What a `Digester` found for them.
    n
        The number of rows.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    blocks = n // DIGEST_ROWS
    state = digests[blocks - 1] if blocks else b""
    return _fingerprint(_digest(state, columns, blocks * DIGEST_ROWS, n), n)


def _fingerprint(state: bytes, n: int) -> str:
    return hashlib.blake2b(b"%d:" % n + state, digest_size=8).hexdigest()


def _digest(state: bytes, columns: Mapping[str, NDArray], start: int, stop: int) -> bytes:
    digest = hashlib.blake2b(state, digest_size=_DIGEST_BYTES)
    for name in _CONTENT:
        digest.update(np.ascontiguousarray(columns[name][start:stop], COLUMNS[name]).data)
    return digest.digest()
