"""Writing a pack: one record batch, whole or not at all, in little memory."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from playhead.index.columns import COLUMNS, PART_COLUMNS, ColumnSpool
from playhead.index.pack_table import (
    COLUMNS_CHECK_KEY,
    DIGESTS_KEY,
    LEAVES_KEY,
    PACK_VERSION,
    VERSION_KEY,
    LeafEntry,
    ShardTable,
    encode_checksums,
    encode_leaves,
    encode_shards,
)
from playhead.storage.atomic import atomic_write, remove_stale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["rewrite_pack", "write_pack"]

_PIECE_BYTES = 4 << 20


def write_pack(
    path: Path,
    leaves: Sequence[LeafEntry],
    shards: Sequence[ShardTable],
    digests: Sequence[bytes],
    spool: ColumnSpool,
) -> None:
    """Write the rows of a spool as a pack.

    Parameters
    ----------
    path
        The file, replaced in one step.
    leaves
        Where each leaf lies, in the order of the rows.
    shards
        The files of each leaf.
    digests
        Content digests of all leaves' blocks, end to end.
    spool
        The rows of all leaves, end to end.
    """
    metadata = {
        VERSION_KEY: PACK_VERSION,
        LEAVES_KEY: encode_leaves(leaves),
        **encode_shards(shards),
        DIGESTS_KEY: b"".join(digests),
        COLUMNS_CHECK_KEY: encode_checksums(spool.checksums),
    }
    remove_stale(path.parent)
    with atomic_write(path) as file:
        sink = _Sink(file)
        rows = spool.num_rows
        arrays = [
            pa.Array.from_buffers(
                pa.from_numpy_dtype(dtype), rows, [None, sink.expect(spool.files[name])], 0
            )
            for name, dtype in COLUMNS.items()
        ]
        names = list(COLUMNS)
        if "row" in spool.files:
            buffers = [None, *(sink.expect(spool.files[name]) for name in ("row_end", "row"))]
            arrays.append(pa.Array.from_buffers(pa.large_binary(), rows, buffers, 0))
            names.append("row")
        if "part_end" in spool.files:
            arrays.append(_parts(spool, sink, rows))
            names.append("parts")
        batch = pa.record_batch(arrays, names=names).replace_schema_metadata(metadata)
        with pa.ipc.new_file(pa.PythonFile(sink, "w"), batch.schema) as out:
            out.write_batch(batch)


def rewrite_pack(
    path: Path, old: str, leaves: Sequence[LeafEntry], shards: Sequence[ShardTable]
) -> None:
    """Write a pack again with other leaves and files and the same rows.

    Parameters
    ----------
    path
        The file, replaced in one step.
    old
        The pack whose rows are taken.
    leaves, shards
        What it says of them now.
    """
    with pa.memory_map(old) as mapped:
        batch = pa.ipc.open_file(mapped).get_batch(0)
        said = {
            **(batch.schema.metadata or {}),
            LEAVES_KEY: encode_leaves(leaves),
            **encode_shards(shards),
        }
        batch = batch.replace_schema_metadata(said)
        with atomic_write(path) as file, pa.ipc.new_file(file, batch.schema) as out:
            out.write_batch(batch)


def _parts(spool: ColumnSpool, sink: _Sink, rows: int) -> pa.Array:
    count = spool.size_of("part_file") // PART_COLUMNS["file"].itemsize
    fields = [pa.field(name, pa.from_numpy_dtype(dtype)) for name, dtype in PART_COLUMNS.items()]
    children = [
        pa.Array.from_buffers(
            field.type, count, [None, sink.expect(spool.files[f"part_{name}"])], 0
        )
        for name, field in zip(PART_COLUMNS, fields, strict=True)
    ]
    values = pa.Array.from_buffers(pa.struct(fields), count, [None], 0, children=children)
    ends = sink.expect(spool.files["part_end"])
    return pa.Array.from_buffers(
        pa.large_list(pa.struct(fields)), rows, [None, ends], 0, children=[values]
    )


class _Sink:
    """A file for Arrow whose large buffers are copied from other files, piece by piece.

    Arrow is given maps of those files. It never looks into them, so their pages are never read:
    when it hands a map over to be written, the bytes are copied from the file instead.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sources: dict[int, tuple[IO[bytes], Any]] = {}

    def expect(self, source: IO[bytes]) -> pa.Buffer:
        """Return a buffer that stands for a file's bytes."""
        source.flush()
        size = os.fstat(source.fileno()).st_size
        if size == 0:
            return pa.py_buffer(b"")
        mapped = np.memmap(source, np.uint8, mode="r", shape=(size,))
        buffer = pa.py_buffer(mapped)
        self._sources[buffer.address] = (source, buffer)
        return buffer

    def write(self, data: Any) -> int:
        """Write bytes, or the file that a buffer stands for."""
        size = len(data)
        source = self._sources.get(data.address) if isinstance(data, pa.Buffer) else None
        if source is None:
            self._file.write(data)
            return size
        source[0].seek(0)
        left = size
        while left:
            left -= self._file.write(source[0].read(min(left, _PIECE_BYTES)))
        return size

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def flush(self) -> None:
        """Leave flushing to the file's owner."""

    def close(self) -> None:
        """Leave closing to the file's owner."""
