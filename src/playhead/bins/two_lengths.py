"""Bins of two lengths: buckets of the first, split by the second, without what stands out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.bins.decimals import rounded_up
from playhead.bins.equal_mass import equal_mass_edges
from playhead.bins.histogram import Spectrum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    _Pair: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]

__all__ = ["Outliers", "Pairs", "TwoLengths", "split_by_second"]

_RADIX = 1 << 32
# A deviation below this share of the mean is the rounding of equal numbers.
_NO_DEVIATION = 1e-9
_RATIO_DECIMALS = 2
_LEAST_RATIO = 0.01


class Pairs:
    """Two lengths of samples with their weights, added block by block."""

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]] = []

    def add(
        self,
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        weight: float | NDArray[np.float64],
    ) -> None:
        """Add samples.

        Parameters
        ----------
        first, second
            Their lengths, below 2**32 of the second, shape (M,).
        weight
            What each of them weighs, or all the same, shape (M,).
        """
        if len(first):
            # One number for all stays one number.
            weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), first.shape)
            self._blocks.append((first, second.astype(np.uint32), weights))

    def __iter__(self) -> Iterator[_Pair]:
        for first, second, weights in self._blocks:
            yield first, second.astype(np.int64), weights


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
    weights: NDArray[np.float64]

    def chosen(self, which: NDArray[np.bool_]) -> _Some:
        return _Some(
            self.group[which],
            self.first[which],
            self.second[which],
            self.ratios[which],
            self.weights[which],
        )


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
        # A group of which nothing weighs is judged as if all of it weighed the same.
        alike = self._sum(lambda some: some.weights) == 0

        def weights(some: _Some) -> NDArray[np.float64]:
            return np.where(alike[some.group], 1.0, some.weights)

        total = np.maximum(self._sum(weights), np.finfo(np.float64).tiny)
        mean = self._sum(lambda some: weights(some) * some.ratios) / total
        squares = self._sum(lambda some: weights(some) * (some.ratios - mean[some.group]) ** 2)
        deviation = np.sqrt(squares / total)
        least = np.full(self._count, np.inf)
        for some in self._blocks():
            np.minimum.at(least, some.group, some.ratios)
        even = deviation <= _NO_DEVIATION * mean
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
            outside = some.chosen(~stays)
            left_out.append((outside.first, outside.second))
            inside = some.chosen(stays)
            from_nothing += int(np.count_nonzero((inside.first == 0) & (inside.second > 0)))
            np.maximum.at(greatest, inside.group, inside.ratios)
            keys = inside.group * _RADIX + inside.second
            found.append(_summed(keys, inside.weights, np.ones(len(keys), dtype=np.int64)))
        outliers = Outliers(*(np.concatenate(column) for column in zip(*left_out, strict=True)))
        return _Kept(self._spectra(found), greatest, outliers, from_nothing)

    def _blocks(self) -> Iterator[_Some]:
        for first, second, weights in self._pairs:
            group = np.searchsorted(self._borders, first)
            yield _Some(group, first, second, self._ratio(first, second), weights)

    def _sum(self, of: Callable[[_Some], NDArray[np.float64]]) -> NDArray[np.float64]:
        total = np.zeros(self._count)
        for some in self._blocks():
            total += np.bincount(some.group, weights=of(some), minlength=self._count)
        return total

    def _spectra(self, found: Sequence[_Mass]) -> list[Spectrum]:
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        keys, weights, counts = _summed(*columns)
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


def _summed(keys: NDArray[np.int64], weights: NDArray[Any], counts: NDArray[Any]) -> _Mass:
    """Sum up what has the same key."""
    distinct, places = np.unique(keys, return_inverse=True)
    size = len(distinct)
    return _Mass(
        distinct,
        np.bincount(places, weights, size).astype(np.float64),
        np.bincount(places, counts, size).astype(np.int64),
    )
