"""Samples packed into batches by the sum of what they count: the oldest first, gaps filled."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Caps", "pack"]

# A batch takes one sample per round; one that still has room after so many is nearly full.
_MOST_ROUNDS = 64
# Batches keep room for a sample that is longer than one in so many, so that gaps can be filled.
_ONE_IN = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Caps:
    """How many samples a batch may have, by the one that counts most in it."""

    borders: Sequence[int]
    """What samples of each class count at most, ascending; the last is the limit or more."""
    sizes: Sequence[int]
    """Most samples of a batch whose dearest is of that class, not ascending."""

    def dearest(self, count: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """What a sample of a batch of so many may count at most; 0 where none may be so large."""
        classes = np.searchsorted(-np.array(self.sizes), -np.asarray(count), side="right")
        return np.concatenate([[0], self.borders])[classes].astype(np.int64)


def pack(cost: NDArray[np.int64], limit: int, caps: Caps) -> tuple[NDArray[np.int64], list[int]]:
    """Put samples into batches whose sums do not exceed the limit.

    A batch begins with the oldest sample that has no place yet and those that follow it, until the
    next does not fit. The rest of it is filled with younger ones from the second half of all that
    have no place: in every round the roomiest batch takes the largest sample that fits it, the next
    the largest of those left, and so on. What then has no place is packed in the same way. All of a
    round is a few array operations, and every time half of the samples are done.

    Parameters
    ----------
    cost
        What each sample counts, from the oldest to the youngest, shape (M,).
    limit
        Most that the sum of a batch may be; a single sample that counts more is a batch of its own.
    caps
        Most samples of a batch.

    Returns
    -------
    order, starts
        Numbers of the samples, batch after batch, and where each begins in it.

    Examples
    --------
    >>> pack(np.array([6, 7, 3, 4, 1]), 10, Caps(borders=[10], sizes=[4]))
    (array([0, 3, 1, 2, 4]), [0, 2, 4])
    """
    left = np.arange(len(cost))
    orders: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    while len(left):
        costs = cost[left]
        starts, end = _heads(costs, limit, caps)
        batch, younger = _fill(costs, starts, end, limit, caps)
        # Samples of a batch from the oldest to the youngest: those it began with come first.
        batch, younger = np.divmod(np.sort(batch * len(left) + younger), len(left))
        member = np.insert(np.arange(end), np.append(starts[1:], end)[batch], younger)
        orders.append(left[member])
        sizes.append(_sizes(starts, end) + np.bincount(batch, minlength=len(starts)))
        rest = np.ones(len(left), dtype=np.bool_)
        rest[member] = False
        left = left[rest]
    if not orders:
        return left, []
    size = np.concatenate(sizes)
    return np.concatenate(orders), (np.cumsum(size) - size).tolist()


def _sizes(starts: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    return np.diff(starts, append=np.int64(end))


def _heads(costs: NDArray[np.int64], limit: int, caps: Caps) -> tuple[NDArray[np.int64], int]:
    """Cut the older half of samples into the heads of batches.

    Returns
    -------
    starts, end
        Where each head begins, and where the last of them ends.
    """
    place = len(costs) // _ONE_IN
    spare = min(int(np.partition(costs, place)[place]), limit // 2)
    total = np.cumsum(costs)
    half = int(total[-1]) // 2
    # No head begins after the half, and none reaches further than the limit from where it begins.
    samples = min(int(np.searchsorted(total, half + limit, side="right")) + 1, len(costs))
    sums: list[int] = [0, *total[:samples].tolist()]
    largest = int(caps.sizes[0])
    # Where samples are that only smaller batches may hold, by class.
    dearer = [np.flatnonzero(costs > border).tolist() for border in caps.borders[:-1]]
    starts: list[int] = []
    at = 0
    while at < samples and (not at or sums[at] < half):
        starts.append(at)
        end = bisect_right(sums, sums[at] + limit - spare, at + 1, min(at + largest, samples) + 1)
        end = max(end - 1, at + 1)
        for places, size in zip(dearer, caps.sizes[1:], strict=True):
            if at + size < end:
                found = bisect_left(places, at)
                first = places[found] if found < len(places) else samples
                end = min(end, max(first, at + size))
        at = end
    return np.array(starts, dtype=np.int64), at


def _fill(
    costs: NDArray[np.int64], starts: NDArray[np.int64], end: int, limit: int, caps: Caps
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give batches that have begun what fits of the samples after the heads.

    Returns
    -------
    batch, younger
        The batches that are given a sample, and its place; shape (F,) both.
    """
    gap = limit - np.add.reduceat(costs[:end], starts)
    dearest = np.maximum.reduceat(costs[:end], starts)
    count = _sizes(starts, end)
    # From small to large; among equals the oldest comes last, and is taken first.
    youngest_first = np.arange(len(costs) - 1, end - 1, -1)
    spare = youngest_first[_ascending(costs[youngest_first], limit)]
    batches: list[NDArray[np.int64]] = []
    taken: list[NDArray[np.int64]] = []
    open_ = np.arange(len(starts))
    for _ in range(_MOST_ROUNDS):
        if not len(spare):
            break
        sizes = costs[spare]
        most = caps.dearest(count[open_] + 1)
        room = np.where(dearest[open_] <= most, np.minimum(gap[open_], most), 0)
        open_, room = open_[room >= sizes[0]], room[room >= sizes[0]]
        if not len(open_):
            break
        order = _ascending(room, limit)
        open_, room = open_[order], room[order]
        # The roomiest takes the largest that fits, every other one a smaller than the next.
        number = np.arange(len(open_))
        fitting = np.searchsorted(sizes, room, side="right") - 1 - number
        which = np.minimum.accumulate(fitting[::-1])[::-1] + number
        takes = open_[which >= 0]
        which = which[which >= 0]
        found = spare[which]
        batches.append(takes)
        taken.append(found)
        gap[takes] -= costs[found]
        dearest[takes] = np.maximum(dearest[takes], costs[found])
        count[takes] += 1
        open_ = np.sort(open_)
        spare = np.delete(spare, which)
    empty = np.empty(0, dtype=np.int64)
    return np.concatenate([empty, *batches]), np.concatenate([empty, *taken])


def _ascending(counts: NDArray[np.int64], limit: int) -> NDArray[np.intp]:
    """Sort counts, equal ones in their order; those above the limit come last, in any order."""
    # NumPy sorts numbers of 16 bits by radix, several times as fast.
    if limit < np.iinfo(np.uint16).max:
        return np.argsort(np.minimum(counts, limit + 1).astype(np.uint16), kind="stable")
    return np.argsort(counts, kind="stable")
