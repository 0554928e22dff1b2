"""The stretches of a table's rows that are read as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.index.pack_table import LeafEntry

__all__ = ["Groups", "groups_of"]


class Groups(NamedTuple):
    """Which stretch each row of a leaf lies in."""

    of_row: NDArray[np.int32]
    """Number of the stretch of each row, shape (N,)."""
    num_bytes: NDArray[np.int64]
    """Bytes of each stretch, shape (G,)."""


def groups_of(
    entry: LeafEntry, shard: NDArray[np.int32], row_offset: NDArray[np.int64]
) -> Groups | None:
    """Return the stretches of a leaf; None where its rows are read one by one.

    Parameters
    ----------
    entry
        What the pack says of the leaf.
    shard, row_offset
        Place of each row's file in the leaf's shard table, and the row's number in that file, (N,).
    """
    if not entry.group_ends:
        return None
    of_row = np.zeros(len(shard), np.int32)
    before = 0
    for manifest, ends in zip(entry.manifests, entry.group_ends, strict=True):
        mine = np.flatnonzero(shard == manifest)
        of_row[mine] = np.searchsorted(np.array(ends, np.int64), row_offset[mine], "right") + before
        before += len(ends)
    return Groups(of_row, _joined(entry.group_bytes))


def _joined(sizes: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.array([size for some in sizes for size in some], np.int64)
