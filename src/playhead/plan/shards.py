"""Passes that use each shard of a leaf in one stretch: shards in keyed order, rows inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import Purpose, derive, key, stream
from playhead.plan.permute import Spans, permute_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rows_by_shard"]


def rows_by_shard(
    shard: NDArray[np.int32],
    first: int,
    count: int,
    *,
    seed: int,
    leaf: int,
    pass_: int,
) -> NDArray[np.int64]:
    """Elements first … first + count - 1 of a pass that goes from shard to shard.

    Parameters
    ----------
    shard
        Shard of each row that the pass is over, shape (N,).
    first, count
        Which of the N places of the pass.
    seed, leaf, pass_
        What the orders of shards and of the rows in each are keyed by.

    Returns
    -------
    NDArray[np.int64]
        Rows, shape (count,).
    """
    sizes = np.bincount(shard)
    starts = np.cumsum(sizes) - sizes
    hashes = stream(key(seed, Purpose.SHARDS, leaf, pass_), np.arange(len(sizes)))
    order = np.argsort(hashes, kind="stable")
    order = order[sizes[order] > 0]
    ends = np.cumsum(sizes[order])
    begin = int(np.searchsorted(ends, first, side="right"))
    end = int(np.searchsorted(ends, first + count - 1, side="right")) + 1
    touched = order[begin:end]
    inside_first = np.zeros(len(touched), dtype=np.int64)
    inside_first[0] = first - (ends[begin] - sizes[touched[0]])
    inside_count = sizes[touched] - inside_first
    inside_count[-1] -= ends[end - 1] - (first + count)
    inside = permute_spans(
        Spans(
            size=sizes[touched],
            key=derive(key(seed, Purpose.ROWS, leaf, pass_), touched),
            first=inside_first,
            count=inside_count,
        )
    )
    place = inside + np.repeat(starts[touched], inside_count)
    if np.all(shard[1:] >= shard[:-1]):
        return place
    return np.argsort(shard, kind="stable")[place]
