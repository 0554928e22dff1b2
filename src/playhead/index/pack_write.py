"""Writing a pack: one record batch, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from playhead.index.columns import COLUMNS, ColumnSpool
from playhead.index.pack_table import (
    DIGESTS_KEY,
    LEAVES_KEY,
    PACK_VERSION,
    SHARDS_KEY,
    VERSION_KEY,
    LeafEntry,
    ShardTable,
    encode_leaves,
    encode_shards,
)
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["write_pack"]


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
    arrays = [_array(spool.column(name)) for name in COLUMNS]
    names = list(COLUMNS)
    if any(leaf.embedded for leaf in leaves):
        arrays.append(_embedded(leaves, spool))
        names.append("row")
    metadata = {
        VERSION_KEY: PACK_VERSION,
        LEAVES_KEY: encode_leaves(leaves),
        SHARDS_KEY: encode_shards(shards),
        DIGESTS_KEY: b"".join(digests),
    }
    batch = pa.record_batch(arrays, names=names).replace_schema_metadata(metadata)
    with atomic_write(path) as file, pa.ipc.new_file(pa.PythonFile(file, "w"), batch.schema) as out:
        out.write_batch(batch)


def _array(values: NDArray) -> pa.Array:
    """Wrap an array without a copy, which would be as large as the column."""
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)]
    )


def _embedded(leaves: Sequence[LeafEntry], spool: ColumnSpool) -> pa.Array:
    """Wrap the embedded rows; rows of leaves that embed none are empty."""
    sizes = spool.column("row_size").astype(np.int64)
    for leaf in leaves:
        if not leaf.embedded:
            sizes[leaf.start : leaf.start + leaf.num_rows] = 0
    ends = np.concatenate([[0], np.cumsum(sizes)])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(spool.row_bytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)
