"""Bins of two lengths: buckets of the first, split by the second, without what stands out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.bins.decimals import rounded_up
from playhead.bins.equal_mass import equal_mass_edges
from playhead.bins.histogram import Spectrum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["Outliers", "Pairs", "TwoLengths", "split_by_second"]

_RADIX = 1 << 32
# A deviation below this share of the mean is the rounding of sums of squares.
_NO_DEVIATION = 1e-6
_RATIO_DECIMALS = 2
_LEAST_RATIO = 0.01


class Pairs:
    """Two lengths of samples with their weights, added block by block."""

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[np.int64], NDArray[np.uint32], float]] = []

    def add(self, first: NDArray[np.int64], second: NDArray[np.int64], weight: float) -> None:
        """Add samples.

        Parameters
        ----------
        first, second
            Their lengths, below 2**32 of the second, shape (M,).
        weight
            What each of them weighs; those that weigh nothing need a bin too.
        """
        if len(first):
            self._blocks.append((first, second.astype(np.uint32), weight))

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], float]]:
        for first, second, weight in self._blocks:
            yield first, second.astype(np.int64), weight


class Outliers(NamedTuple):
    """Samples that stand out, and are left out."""

    first: NDArray[np.int64]
    """Their first lengths, shape (M,)."""
    second: NDArray[np.int64]
    """Their second lengths, shape (M,)."""


class TwoLengths(NamedTuple):
    """Bins of two lengths."""

    bins: tuple[tuple[int, int], ...]
    """Inclusive borders of each bin: the first length in units, and the second; ascending."""
    ratios: tuple[float, ...]
    """Greatest ratio of the second to the first length in the group of each bin, rounded up."""
    outliers: Outliers
    """What is left out."""
    undecided: int
    """Groups in which everything stood out, so that nothing is left out of them."""
    from_nothing: int
    """Samples in the bins that have a second length above 0 and a first of 0."""


def split_by_second(
    pairs: Pairs,
    edges: Sequence[int],
    sub_buckets: int,
    *,
    unit: int,
    threshold: float,
    ratio: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]],
    adjusted: Callable[[Sequence[int]], list[int]] = list,
) -> TwoLengths:
    """Split each bucket of the first length by the second into parts of equal mass.

    Left out are the samples of which the ratio of the second to the first length is above the mean
    of their bucket by more than `threshold` standard deviations. The others all have a bin.

    Parameters
    ----------
    pairs
        Both lengths of the samples; the first may be in a finer unit than the edges.
    edges
        Inclusive edges of the first length, ascending, the last not below any. An edge that stands
        there n times gets n times as many parts.
    sub_buckets
        Into how many parts a bucket is split.
    unit
        How many units of the pairs make one of the edges.
    threshold
        See above.
    ratio
        Ratios of samples by their first and second lengths.
    adjusted
        Edges of second lengths as they are to be used; the last may not become less.
    """
    borders = np.unique(np.array(edges, dtype=np.int64))
    times = Counter(edges)
    groups = _Groups(pairs, borders * unit, ratio)
    most, undecided = groups.most_ratios(threshold)
    kept = groups.kept(most)
    bins: list[tuple[int, int]] = []
    ratios: list[float] = []
    for border, spectrum, highest in zip(
        borders.tolist(), kept.spectra, kept.greatest.tolist(), strict=True
    ):
        if spectrum.longest < 0:
            # An edge that lies between samples; the next one takes over.
            continue
        parts = equal_mass_edges(spectrum, sub_buckets * times[border])
        tokens = adjusted(sorted({max(1, part) for part in (*parts, spectrum.longest)}))
        bins += [(border, part) for part in tokens]
        ratios += [max(rounded_up(highest, _RATIO_DECIMALS), _LEAST_RATIO)] * len(tokens)
    return TwoLengths(tuple(bins), tuple(ratios), kept.outliers, undecided, kept.from_nothing)


class _Some(NamedTuple):
    """Some samples; every array has shape (M,)."""

    group: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    ratios: NDArray[np.float64]
    weight: float

    def chosen(self, which: NDArray[np.bool_]) -> _Some:
        if which.all():
            return self
        columns = (self.group[which], self.first[which], self.second[which], self.ratios[which])
        return _Some(*columns, self.weight)


class _Groups:
    """Samples by the bucket of their first length."""

    def __init__(
        self,
        pairs: Pairs,
        borders: NDArray[np.int64],
        ratio: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]],
    ) -> None:
        self._pairs, self._borders, self._ratio = pairs, borders, ratio
        self._count = len(borders)

    def most_ratios(self, threshold: float) -> tuple[NDArray[np.float64], int]:
        """Greatest ratio that does not stand out in each group, shape (G,)."""
        # Sums of what weighs something, and of what weighs nothing: the latter judge a group of
        # which nothing weighs.
        sums = np.zeros((2, 3, self._count))
        least = np.full(self._count, np.inf)
        for some in self._blocks():
            powers = (np.ones_like(some.ratios), some.ratios, some.ratios**2)
            found = [np.bincount(some.group, power, self._count) for power in powers]
            sums[int(not some.weight)] += np.array(found) * (some.weight or 1.0)
            np.minimum.at(least, some.group, some.ratios)
        total, first, second = np.where(sums[0, 0] > 0, sums[0], sums[1])
        total = np.maximum(total, np.finfo(np.float64).tiny)
        mean = first / total
        deviation = np.sqrt(np.maximum(second / total - mean**2, 0.0))
        even = deviation <= _NO_DEVIATION * mean
        with np.errstate(over="ignore"):
            most = np.where(even, np.inf, mean + threshold * np.where(even, 1.0, deviation))
        undecided = np.isfinite(least) & (least > most)
        return np.where(undecided, np.inf, most), int(np.count_nonzero(undecided))

    def kept(self, most: NDArray[np.float64]) -> _Kept:
        """What does not stand out in each group, and what does."""
        greatest = np.zeros(self._count)
        found: list[_Mass] = []
        left_out = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
        from_nothing = 0
        for some in self._blocks():
            stays = some.ratios <= most[some.group]
            inside = some.chosen(stays)
            if len(inside.group) < len(some.group):
                outside = some.chosen(~stays)
                left_out.append((outside.first, outside.second))
            from_nothing += int(np.count_nonzero((inside.first == 0) & (inside.second > 0)))
            np.maximum.at(greatest, inside.group, inside.ratios)
            keys, counts = np.unique(inside.group * _RADIX + inside.second, return_counts=True)
            # What weighs nothing is no sample of the mass.
            weighs = int(some.weight > 0)
            found.append(_Mass(keys, counts.astype(np.float64) * some.weight, counts * weighs))
        outliers = Outliers(*(np.concatenate(column) for column in zip(*left_out, strict=True)))
        return _Kept(self._spectra(found), greatest, outliers, from_nothing)

    def _blocks(self) -> Iterator[_Some]:
        for first, second, weight in self._pairs:
            group = np.searchsorted(self._borders, first)
            yield _Some(group, first, second, self._ratio(first, second), weight)

    def _spectra(self, found: Sequence[_Mass]) -> list[Spectrum]:
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        keys, places = np.unique(columns[0], return_inverse=True)
        weights = np.bincount(places, columns[1], len(keys)).astype(np.float64)
        counts = np.bincount(places, columns[2], len(keys)).astype(np.int64)
        starts = np.searchsorted(keys, np.arange(self._count + 1) * _RADIX)
        spectra: list[Spectrum] = []
        for begin, end in pairwise(starts.tolist()):
            lengths, weighs = keys[begin:end] % _RADIX, weights[begin:end] > 0
            spectra.append(
                Spectrum(
                    lengths[weighs],
                    weights[begin:end][weighs],
                    counts[begin:end][weighs],
                    int(lengths[-1]) if len(lengths) else -1,
                )
            )
        return spectra


class _Kept(NamedTuple):
    spectra: list[Spectrum]
    """Second lengths of each group."""
    greatest: NDArray[np.float64]
    """Greatest ratio of each group, shape (G,)."""
    outliers: Outliers
    from_nothing: int


class _Mass(NamedTuple):
    keys: NDArray[np.int64]
    """Group and second length in one number, ascending, shape (K,)."""
    weights: NDArray[np.float64]
    counts: NDArray[np.int64]
