"""Edges that need the least padding, and how much padding edges need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.bins.histogram import Spectrum

__all__ = ["MOST_OPTIMIZED", "least_padding_edges", "padding_share"]

MOST_OPTIMIZED = 1_000
"""The most buckets that edges of least padding are looked for."""

_MOST_CANDIDATES = 1 << 14


def padding_share(spectrum: Spectrum, edges: Sequence[int]) -> float:
    """Return the share of padding where every sample is padded to the edge of its bucket.

    Parameters
    ----------
    spectrum
        Lengths and weights.
    edges
        Inclusive edges, ascending; the last is not below the longest length.

    Examples
    --------
    >>> from playhead.bins.histogram import Histogram
    >>> histogram = Histogram()
    >>> histogram.add(np.array([1, 3]), 1.0)
    >>> padding_share(histogram.spectrum(), [4]), padding_share(histogram.spectrum(), [1, 3])
    (0.5, 0.0)
    """
    if not len(spectrum.lengths):
        return 0.0
    borders = np.array(edges, dtype=np.int64)
    padded = borders[np.searchsorted(borders, spectrum.lengths)]
    room = float(np.dot(spectrum.weights, padded))
    return max(0.0, 1.0 - spectrum.total / room) if room else 0.0


def least_padding_edges(spectrum: Spectrum, num_buckets: int) -> list[int]:
    """Return the edges for which samples, padded to the edge of their bucket, are least padded.

    With v the lengths and U the running sums of weights, the padded length of k buckets that end at
    cell i is f(k, i) = min over j of f(k - 1, j) + v(i) (U(i) - U(j)). The best j never falls as i
    rises, so each layer is found by halving: O(K n log n) for n lengths and K buckets. Among more
    than 16,384 lengths the edges are first looked for in as many that have equal weight between
    them, then among all lengths near those found.

    Parameters
    ----------
    spectrum
        Lengths and weights.
    num_buckets
        How many buckets there may be, at most `MOST_OPTIMIZED`.

    Returns
    -------
    list[int]
        The edges but for the last, which is the longest length; at most `num_buckets` - 1.

    Examples
    --------
    >>> from playhead.bins.histogram import Histogram
    >>> histogram = Histogram()
    >>> histogram.add(np.array([10, 11, 12, 30, 31]), 1.0)
    >>> least_padding_edges(histogram.spectrum(), 2)
    [12]
    """
    lengths = spectrum.lengths
    if not len(lengths):
        return []
    until = np.cumsum(spectrum.weights)
    candidates = _candidates(until)
    best = candidates[_solved(lengths[candidates], until[candidates], num_buckets)]
    if len(candidates) < len(lengths):
        near = _near(candidates, best)
        best = near[_solved(lengths[near], until[near], num_buckets)]
    return lengths[best[:-1]].tolist()


def _candidates(until: NDArray[np.float64]) -> NDArray[np.int64]:
    """Cells that may be edges, ascending, the last cell among them."""
    if len(until) <= _MOST_CANDIDATES:
        return np.arange(len(until))
    marks = np.arange(1, _MOST_CANDIDATES) * (until[-1] / _MOST_CANDIDATES)
    cells = np.minimum(np.searchsorted(until, marks), len(until) - 1)
    return np.unique(np.append(cells, len(until) - 1))


def _near(candidates: NDArray[np.int64], best: NDArray[np.int64]) -> NDArray[np.int64]:
    """All cells between the candidates beside those chosen; every n-th where they are many."""
    places = np.searchsorted(candidates, best)
    before = candidates[np.maximum(places - 1, 0)]
    behind = candidates[np.minimum(places + 1, len(candidates) - 1)]
    cells = np.unique(
        np.concatenate([np.arange(a, b + 1) for a, b in zip(before, behind, strict=True)])
    )
    every = -(-len(cells) // _MOST_CANDIDATES)
    return np.unique(np.concatenate([cells[::every], best, candidates[-1:]]))


def _solved(
    lengths: NDArray[np.int64], until: NDArray[np.float64], num_buckets: int
) -> NDArray[np.int64]:
    """Cells that end buckets, ascending; the last cell is one of them."""
    last = len(lengths) - 1
    if num_buckets > last:
        return np.arange(len(lengths))
    values = lengths.astype(np.float64)
    cost = values * until
    begins: list[NDArray[np.int32]] = []
    for _ in range(num_buckets - 1):
        cost, begin = _layer(cost, values, until)
        begins.append(begin.astype(np.int32))
    ends = [last]
    for begin in reversed(begins):
        ends.append(int(begin[ends[-1]]))
    return np.unique(np.array(ends))


def _layer(
    before: NDArray[np.float64], values: NDArray[np.float64], until: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Least cost with one bucket more, and where that bucket begins, for each cell, shape (K,).

    A bucket that begins where it ends is empty: fewer buckets are allowed.
    """
    count = len(before)
    cost, begin = np.empty(count), np.zeros(count, dtype=np.int64)
    step = 1 << (count - 1).bit_length()
    while step:
        # Cells of which the number, from 1, is an odd multiple of the step: those at even ones are
        # done, and lie on both sides.
        cells = np.arange(step - 1, count, 2 * step)
        low = np.where(cells >= step, begin[cells - step], 0)
        beyond = cells + step
        done = beyond < count
        high = np.where(done, begin[np.where(done, beyond, 0)], cells)
        high = np.minimum(high, cells)
        sizes = high - low + 1
        starts = np.cumsum(sizes) - sizes
        owner = np.repeat(np.arange(len(cells)), sizes)
        tried = np.arange(len(owner)) + (low - starts)[owner]
        mine = cells[owner]
        costs = before[tried] + values[mine] * (until[mine] - until[tried])
        least = np.minimum.reduceat(costs, starts)
        hits = np.flatnonzero(costs == least[owner])
        first = hits[np.diff(owner[hits], prepend=-1) > 0]
        cost[cells], begin[cells] = least, tried[first]
        step >>= 1
    return cost, begin
