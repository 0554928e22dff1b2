"""How many items were read, out of the places that the processes of a run stand at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.inspect.nemo_state import LeafState

__all__ = ["consumed_items", "position_in_pass", "shard_length"]


def shard_length(total: int, shard_id: int, num_shards: int) -> int:
    """Return how many of `total` items one of several processes reads, who take turns.

    Examples
    --------
    >>> [shard_length(10, shard, 4) for shard in range(4)], shard_length(2, 3, 4)
    ([3, 3, 2, 2], 0)
    """
    return max(0, -(-(total - shard_id) // num_shards))


def consumed_items(
    leaf: LeafState, total: int | None, shard_lengths: Sequence[int] = ()
) -> int | None:
    """Return how many items of a source one process has read since the start of training.

    `epoch · shard_length + position`; without a total only what the first pass has read.

    Parameters
    ----------
    leaf
        Where the process stands.
    total
        Items of a pass, over all processes together; None if unknown.
    shard_lengths
        Items of each file of a sequence of files; empty if unknown.

    Returns
    -------
    int or None
        None where it cannot be told.
    """
    own = _own_length(leaf, total, shard_lengths)
    position = position_in_pass(leaf, total, shard_lengths)
    if position is None:
        return None
    if own is None:
        return position if leaf.epoch == 0 else None
    # A pass that nothing follows is counted among the finished ones, and its place stays full.
    is_counted = leaf.may_have_ended and leaf.epoch > 0 and position >= own
    return leaf.epoch * own + (0 if is_counted else position)


def position_in_pass(
    leaf: LeafState, total: int | None, shard_lengths: Sequence[int] = ()
) -> int | None:
    """Return how many items of the present pass one process has read; None if it is unknown.

    Parameters
    ----------
    leaf, total, shard_lengths
        As for `consumed_items`.
    """
    if leaf.is_read:
        return _own_length(leaf, total, shard_lengths)
    if leaf.current_shard is None or leaf.position is None:
        return leaf.position
    if leaf.current_shard == 0:
        return leaf.position
    parts = _parts(leaf, shard_lengths)
    return None if parts is None else sum(parts[: leaf.current_shard]) + leaf.position


def _own_length(leaf: LeafState, total: int | None, shard_lengths: Sequence[int]) -> int | None:
    """Items of a pass that are this process's own."""
    if leaf.current_shard is not None:
        parts = _parts(leaf, shard_lengths)
        return None if parts is None else sum(parts)
    if total is None or leaf.shard_id is None or leaf.num_shards is None:
        return None
    return shard_length(total, leaf.shard_id, leaf.num_shards)


def _parts(leaf: LeafState, shard_lengths: Sequence[int]) -> list[int] | None:
    """Items of each file that are this process's own, in the order in which they are read."""
    if not shard_lengths or leaf.shard_id is None or leaf.num_shards is None:
        return None
    order = range(len(shard_lengths)) if leaf.shard_order is None else leaf.shard_order
    if len(order) != len(shard_lengths):
        return None
    shard, shards = leaf.shard_id, leaf.num_shards
    return [shard_length(shard_lengths[file], shard, shards) for file in order]
