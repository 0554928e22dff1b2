"""Where batches begin in a row of samples, so that no batch exceeds the limit."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.plan.effort import Effort

__all__ = [
    "Costs",
    "Cut",
    "PackedCosts",
    "PaddedCosts",
    "RunningCut",
    "cut_by_class",
    "cut_evenly",
    "cut_fixed",
    "shrink",
    "split",
]

_NEARLY = 1.0 - 2.0**-40
# Costs above it are alike, so that sums of squares stay within 64 bits.
_LONG = 1 << 19


class Cut(NamedTuple):
    """Samples cut into batches."""

    order: NDArray[np.int64]
    """Numbers of the samples, batch after batch."""
    starts: list[int]
    """Where each batch begins in it."""


def cut_by_class(
    ends: Sequence[int], efforts: Sequence[int], limit: int, max_samples: int
) -> list[int]:
    """Slice samples that lie class after class from long to short.

    A batch takes as many samples as the longest of the class in which it starts allows, over class
    borders: those that follow are shorter, so the limit is a hard bound and nothing is left over.

    Parameters
    ----------
    ends
        Where each class ends.
    efforts
        Effective length of the longest sample of each class.
    limit
        Most that samples times longest effective length may be, in the same unit; one sample is
        always allowed.
    max_samples
        Most samples of a batch.

    Examples
    --------
    >>> cut_by_class([3, 9], [10, 5], 20, 4096)
    [0, 2, 4, 8]
    """
    starts: list[int] = []
    at = 0
    for end, effort in zip(ends, efforts, strict=True):
        if at >= end:
            continue
        size = max(1, min(limit // effort, max_samples))
        starts.extend(range(at, end, size))
        at = starts[-1] + size
    return starts


class RunningCut:
    """Slices samples in the order they come: a batch ends before it would exceed the limit.

    Parameters
    ----------
    effort
        Effective lengths, shape (M,).
    limit
        The highest limit that is asked for, in the same unit.
    max_samples
        Most samples of a batch.

    Examples
    --------
    >>> RunningCut(np.array([5, 10, 3, 3, 12]), 20, 4096)(20)
    [0, 2, 4]
    """

    def __init__(self, effort: NDArray[np.int64], limit: int, max_samples: int) -> None:
        # Above the limit all efforts mean the same: a batch of one.
        effort = np.minimum(effort, limit + 1)
        self._max_samples = max_samples
        self._longer: list[int] = _next_longer(effort, limit, max_samples).tolist()
        self._effort: list[int] = effort.tolist()

    def __call__(self, limit: int) -> list[int]:
        """Return where batches begin under a limit."""
        effort, longer, most = self._effort, self._longer, self._max_samples
        starts: list[int] = []
        at, samples = 0, len(effort)
        while at < samples:
            starts.append(at)
            longest = at
            # From one sample that is longer than all before it to the next.
            while True:
                end = at + min(limit // effort[longest], most)
                following = longer[longest]
                if end <= following or following >= samples:
                    break
                if (following - at + 1) * effort[following] > limit:
                    end = following
                    break
                longest = following
            at = max(end, at + 1)
        return starts


def _next_longer(effort: NDArray[np.int64], limit: int, max_samples: int) -> NDArray[np.int64]:
    """Where the first longer sample after each one is, or where no batch with it reaches."""
    samples = len(effort)
    number = np.arange(samples)
    longer = number + np.clip(limit // effort, 1, max_samples)
    searching = np.flatnonzero(longer > number + 1)
    distance = 1
    while len(searching):
        searching = searching[searching + distance < samples]
        found = effort[searching + distance] > effort[searching]
        longer[searching[found]] = searching[found] + distance
        distance += 1
        searching = searching[~found]
        searching = searching[longer[searching] > searching + distance]
    return longer


def cut_evenly(samples: int, batches: int) -> list[int]:
    """Slice samples into so many batches whose sizes differ by one at most."""
    return [number * samples // batches for number in range(batches)]


def cut_fixed(ends: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Slice samples that lie class after class from short to long into full batches per class.

    What does not fill a batch of its class goes to the front of the next, whose samples are longer
    and whose batches are not larger; only the very last batch may be smaller.

    Parameters
    ----------
    ends
        Where each class ends.
    sizes
        Samples of a batch of each class, not ascending.

    Examples
    --------
    >>> cut_fixed([5, 8], [3, 2])
    [0, 3, 5, 7]
    """
    starts: list[int] = []
    at = begin = 0
    for end, size in zip(ends, sizes, strict=True):
        full = (end - at) // size if end > begin else 0
        begin = end
        starts.extend(range(at, at + full * size, size))
        at += full * size
    if ends and at < ends[-1]:
        starts.append(at)
    return starts


def shrink(cut: Callable[[int], Cut], best: Cut, limit: int, batches: int, attempts: int) -> Cut:
    """Return the cut with the most batches up to a number, at the limit or a lower one.

    Lowering the limit a little spreads over all batches what it costs to make their number a
    multiple of the step.

    Parameters
    ----------
    cut
        Cuts under a limit; a lower limit hardly ever gives fewer batches.
    best
        The cut at the limit itself.
    limit
        The limit that must not be exceeded.
    batches
        How many batches are wanted; not fewer than the limit itself gives.
    attempts
        How many cuts are tried at most.
    """
    low, high, many = 0, limit, len(best.starts)
    for attempt in range(attempts):
        if many == batches or high - low < 2:
            break
        # The number of batches goes about as one over the limit; halving is the safe way.
        guess = high * many // batches if attempt % 2 == 0 else (low + high) // 2
        guess = min(max(guess, low + 1), high - 1)
        found = cut(guess)
        if len(found.starts) > batches:
            low = guess
        else:
            best, high, many = found, guess, len(found.starts)
    return best


class Costs(Protocol):
    """What batches cost, and what makes them alike, as slices of an order."""

    def one(self, start: int, end: int) -> int:
        """Return what one batch costs."""
        ...

    def many(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what all batches cost, by where they begin, shape (K,)."""
        ...

    def likeness(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for each batch that is like that of batches of like samples."""
        ...


@dataclass(frozen=True, slots=True)
class PaddedCosts:
    """Samples times the longest effective length."""

    length: NDArray[np.int64]
    """Lengths of the samples in the order that is cut, shape (M,)."""
    effort: Effort
    """What they count."""

    def one(self, start: int, end: int) -> int:
        """Return what one batch costs."""
        return (end - start) * self.effort.one(int(self.length[start:end].max()))

    def many(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what all batches cost, by where they begin, shape (K,)."""
        return np.diff(first, append=np.int64(len(self.length))) * self.likeness(first)

    def likeness(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the longest effective length of each batch."""
        return self.effort(np.maximum.reduceat(self.length, first))


@dataclass(frozen=True, slots=True)
class PackedCosts:
    """The sum of what samples count."""

    cost: NDArray[np.int64]
    """What each counts, in the order that is cut, shape (M,)."""

    def one(self, start: int, end: int) -> int:
        """Return what one batch costs."""
        return int(self.cost[start:end].sum())

    def many(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what all batches cost, by where they begin, shape (K,)."""
        return np.add.reduceat(self.cost, first)

    def likeness(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of squares of each batch: sums are alike, but not what attention costs."""
        return np.add.reduceat(np.minimum(self.cost, _LONG) ** 2, first)


def split(starts: list[int], samples: int, costs: Costs, batches: int) -> list[int]:
    """Halve the costliest batch of two samples or more until there are so many batches.

    Parameters
    ----------
    starts
        Where batches begin.
    samples
        How many samples are cut; at least `batches` many.
    costs
        What batches cost.
    batches
        How many batches are wanted.
    """
    heap = [(-costs.one(*ends), *ends) for ends in _costliest(starts, samples, costs, batches)]
    heapq.heapify(heap)
    found = list(starts)
    while len(found) < batches:
        _, start, end = heapq.heappop(heap)
        middle = start + (end - start + 1) // 2
        found.append(middle)
        for part in ((start, middle), (middle, end)):
            if part[1] - part[0] > 1:
                heapq.heappush(heap, (-costs.one(*part), *part))
    return sorted(found)


def _costliest(
    starts: list[int], samples: int, costs: Costs, batches: int
) -> list[tuple[int, int]]:
    """Return where the batches that halving can come to begin and end, and perhaps a few more."""
    first = np.array(starts, dtype=np.int64)
    size = np.diff(first, append=np.int64(samples))
    many = np.flatnonzero(size > 1)
    halvings = batches - len(starts)
    if 0 < halvings < len(many):
        cost = costs.many(first)[many].astype(np.float64)
        least = np.partition(cost, len(many) - halvings)[len(many) - halvings]
        # Costs of very long samples are off by less than this: none that belongs here is left out.
        many = many[cost >= least * _NEARLY]
    return list(zip(first[many].tolist(), (first + size)[many].tolist(), strict=True))
