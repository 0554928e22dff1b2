"""Edges between which the samples of each bucket last equally long together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from playhead.bins.histogram import Spectrum

__all__ = ["equal_mass_edges"]


def equal_mass_edges(spectrum: Spectrum, num_buckets: int) -> list[int]:
    """Return the lengths at which buckets end, as Lhotse's estimate has them.

    Samples are taken from short to long. Where those since the last edge sum up to more than the
    total by the number of buckets, the next sample is an edge; it counts to the bucket that begins
    there. In cells of several lengths all samples are taken to weigh the same.

    Parameters
    ----------
    spectrum
        Lengths and weights.
    num_buckets
        How many buckets there should be.

    Returns
    -------
    list[int]
        At most `num_buckets` - 1 edges, ascending; one that fills several buckets comes as often.
        What is longer than the last edge is the last bucket.

    Examples
    --------
    >>> from playhead.bins.histogram import Histogram
    >>> histogram = Histogram()
    >>> histogram.add(np.array([1, 2, 3, 4, 5, 6]), 1.0)
    >>> equal_mass_edges(histogram.spectrum(), 3)
    [5]
    """
    lengths, counts = spectrum.lengths, spectrum.counts
    masses = spectrum.weights * lengths
    until = np.cumsum(masses)
    if not len(until) or until[-1] <= 0:
        return []
    target = until[-1] / num_buckets
    edges: list[int] = []
    begin = 0.0
    while len(edges) < num_buckets - 1:
        limit = begin + target
        cell = int(np.searchsorted(until, limit, side="right"))
        if cell >= len(until):
            break
        before = float(until[cell - 1]) if cell else 0.0
        each = float(masses[cell]) / int(counts[cell])
        taken = _samples_above(limit, before, each)
        if taken >= counts[cell]:
            cell += 1
            begin = float(until[cell - 1])
        else:
            begin = before + taken * each
        if cell == len(until):
            break
        edges.append(int(lengths[cell]))
    return edges


def _samples_above(limit: float, before: float, each: float) -> int:
    """How many samples it takes to get from `before` to above `limit`."""
    taken = int((limit - before) / each) + 1
    # The quotient is rounded, and must not decide.
    if taken > 1 and before + (taken - 1) * each > limit:
        return taken - 1
    return taken if before + taken * each > limit else taken + 1
