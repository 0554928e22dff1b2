"""Samples of a leaf that stand for all of it: spread over its shards, the same whenever asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan import MicroBatch
from playhead.plan.keyed import Purpose, derive, key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["in_batches", "in_runs", "spread"]


def spread(num_rows: int, count: int, seed: int) -> NDArray[np.int64]:
    """Choose rows, one out of each of `count` equal stretches, in keyed order.

    Parameters
    ----------
    num_rows
        How many there are; rows of a shard stand together.
    count
        How many to choose at most.
    seed
        What the choice follows from.

    Returns
    -------
    NDArray[np.int64]
        Shape (min(count, num_rows),): distinct rows.

    Examples
    --------
    >>> sorted(spread(5, 9, 0).tolist())
    [0, 1, 2, 3, 4]
    >>> (np.sort(spread(1000, 4, 0)) // 250).tolist()
    [0, 1, 2, 3]
    """
    count = min(count, num_rows)
    if not count:
        return np.zeros(0, np.int64)
    borders = np.arange(count + 1, dtype=np.int64) * num_rows // count
    words = derive(key(seed, Purpose.ROWS, num_rows), np.arange(count, dtype=np.uint64))
    within = (words % np.diff(borders).astype(np.uint64)).astype(np.int64)
    order = np.argsort(derive(key(seed, Purpose.ROWS, count), words), kind="stable")
    return (borders[:-1] + within)[order]


def in_runs(num_rows: int, count: int, runs: int, seed: int) -> list[NDArray[np.int64]]:
    """Choose rows that follow each other, from a few places: as a pass from shard to shard does.

    Parameters
    ----------
    num_rows
        How many there are; rows of a shard stand together.
    count
        How many to choose at most.
    runs
        From how many places at most.
    seed
        What the choice follows from.

    Examples
    --------
    >>> sorted(rows.tolist() for rows in in_runs(8, 8, 2, 0))
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    count = min(count, num_rows)
    starts = spread(num_rows, min(runs, count), seed)
    number = len(starts)
    sizes = np.diff(np.arange(number + 1) * count // max(1, number)).tolist()
    found: list[NDArray[np.int64]] = []
    for start, size in zip(starts.tolist(), sizes, strict=True):
        # Inside the stretch that it was chosen from, so that no row comes twice.
        stretch = int(np.searchsorted(np.arange(number) * num_rows // number, start, "right"))
        low, high = (stretch - 1) * num_rows // number, stretch * num_rows // number
        first = max(low, min(start, high - size))
        found.append(np.arange(first, min(first + size, high), dtype=np.int64))
    return found


def in_batches(
    leaf: int, rows: NDArray[np.int64], size: int, *, by_shard: bool = False
) -> Iterator[MicroBatch]:
    """Put rows of one leaf into micro-batches, as the plan would.

    Parameters
    ----------
    leaf
        Number of the leaf.
    rows
        The rows.
    size
        Rows of a micro-batch.
    by_shard
        Whether they are those of a pass that goes from shard to shard.
    """
    for step, first in enumerate(range(0, len(rows), size)):
        some = rows[first : first + size]
        number = len(some)
        yield MicroBatch(
            leaf=np.full(number, leaf, np.int32),
            pass_=np.zeros(number, np.int64),
            row=some,
            part=np.zeros(number, np.int32),
            repeated=np.zeros(number, np.bool_),
            step=step,
            slot=0,
            key=key(0, Purpose.ROWS, leaf, step),
            sample_keys=derive(key(0, Purpose.ROWS, leaf), some.astype(np.uint64)),
            by_shard=np.ones(number, np.bool_) if by_shard else None,
        )
