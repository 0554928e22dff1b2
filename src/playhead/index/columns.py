"""The columns of a pack, and what identifies their content."""

from __future__ import annotations

import hashlib
import tempfile
from typing import IO, TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["COLUMNS", "DIGEST_ROWS", "Block", "ColumnSpool", "block_digests", "prefix_fingerprint"]

COLUMNS: Final[Mapping[str, np.dtype]] = {
    "duration_us": np.dtype("<i8"),
    "num_samples": np.dtype("<i8"),
    "rate": np.dtype("<i4"),
    "channels": np.dtype("<i2"),
    "shard": np.dtype("<i4"),
    "row_offset": np.dtype("<i8"),
    "row_size": np.dtype("<i4"),
    "tar": np.dtype("<i4"),
    "audio_offset": np.dtype("<i8"),
    "audio_size": np.dtype("<i8"),
}
"""Name and type of every column, in the order of the file."""

DIGEST_ROWS: Final = 65_536
"""Rows between two stored digests."""

Block = dict[str, "NDArray"]
"""Some rows: an array for each column."""

# Rate and channels are left out: to learn them later does not make other data.
_CONTENT = tuple(name for name in COLUMNS if name not in ("rate", "channels"))
_DIGEST_BYTES = 16


class ColumnSpool:
    """Columns on their way to a pack, on disk, so that memory does not grow with their length.

    Parameters
    ----------
    folder
        Where the unnamed temporary files are made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.num_rows = 0
        self._files: dict[str, IO[bytes]] = {
            name: tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
            for name in (*COLUMNS, "row")
        }

    def append(self, block: Mapping[str, NDArray], data: bytes | None = None) -> None:
        """Add rows; `data` is their bytes, end to end, where those are embedded."""
        for name, dtype in COLUMNS.items():
            self._files[name].write(np.ascontiguousarray(block[name], dtype).data)
        self.num_rows += len(block["shard"])
        if data is not None:
            self._files["row"].write(data)

    def column(self, name: str) -> NDArray:
        """Return a column as a map of its file."""
        return self._map(name, COLUMNS[name])

    def row_bytes(self) -> NDArray[np.uint8]:
        """Return the embedded rows, end to end."""
        return self._map("row", np.dtype("u1"))

    def close(self) -> None:
        """Give the temporary files back."""
        for file in self._files.values():
            file.close()

    def _map(self, name: str, dtype: np.dtype) -> NDArray:
        file = self._files[name]
        file.flush()
        size = file.seek(0, 2)
        if size == 0:
            return np.zeros(0, dtype)
        return np.memmap(file, dtype, mode="r", shape=(size // dtype.itemsize,))


def block_digests(columns: Mapping[str, NDArray]) -> list[bytes]:
    """Digest the rows up to each multiple of `DIGEST_ROWS`, each digest from the one before."""
    digests: list[bytes] = []
    state = b""
    for stop in range(DIGEST_ROWS, len(columns["shard"]) + 1, DIGEST_ROWS):
        state = _digest(state, columns, stop - DIGEST_ROWS, stop)
        digests.append(state)
    return digests


def prefix_fingerprint(columns: Mapping[str, NDArray], digests: Sequence[bytes], n: int) -> str:
    """Identify the content of the first `n` rows: their number, lengths, and places of bytes.

    Neither paths nor time stamps enter, so a copy of the data has the same fingerprint.

    Parameters
    ----------
    columns
        Arrays of shape (N,), N ≥ n.
    digests
        What `block_digests` gave for them.
    n
        The number of rows.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    blocks = n // DIGEST_ROWS
    state = digests[blocks - 1] if blocks else b""
    state = _digest(state, columns, blocks * DIGEST_ROWS, n)
    return hashlib.blake2b(b"%d:" % n + state, digest_size=8).hexdigest()


def _digest(state: bytes, columns: Mapping[str, NDArray], start: int, stop: int) -> bytes:
    digest = hashlib.blake2b(state, digest_size=_DIGEST_BYTES)
    for name in _CONTENT:
        digest.update(np.ascontiguousarray(columns[name][start:stop], COLUMNS[name]).data)
    return digest.digest()
