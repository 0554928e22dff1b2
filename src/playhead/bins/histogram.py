"""How much of a blend has which length: bounded in memory, however many samples there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Histogram", "Spectrum"]

# Up to here every length has a cell of its own: 42 s in units of 10 µs.
_EXACT = 1 << 22
# Longer ones share cells of 2**-17 of their length: the leading bits of a float64.
_SHIFT = 52 - 17
_BELOW = (1 << _SHIFT) - 1
_FIRST = int(np.float64(_EXACT).view(np.int64)) >> _SHIFT


class Spectrum(NamedTuple):
    """Distinct lengths of samples and what they weigh."""

    lengths: NDArray[np.int64]
    """The lengths, ascending, shape (K,)."""
    weights: NDArray[np.float64]
    """What the samples of each weigh together, shape (K,)."""
    counts: NDArray[np.int64]
    """How many samples have each, shape (K,)."""
    longest: int
    """The longest length of all, of samples that weigh nothing too; -1 where there is none."""

    @property
    def total(self) -> float:
        """Sum of the lengths, each as often as it weighs."""
        return float(np.dot(self.weights, self.lengths))

    def with_longest(self) -> Spectrum:
        """Return it with a cell of the longest length, if need be one that weighs nothing."""
        if self.longest < 0 or (len(self.lengths) and self.lengths[-1] == self.longest):
            return self
        return Spectrum(
            np.append(self.lengths, np.int64(self.longest)),
            np.append(self.weights, 0.0),
            np.append(self.counts, np.int64(0)),
            self.longest,
        )


class Histogram:
    """Lengths in whole units with their weights, added block by block.

    Lengths up to 4,194,304 units are kept as they are, longer ones rounded up by less than a part
    in 100,000, but never above the longest.

    Examples
    --------
    >>> histogram = Histogram()
    >>> histogram.add(np.array([7, 3, 7]), 0.5)
    >>> spectrum = histogram.spectrum()
    >>> spectrum.lengths.tolist(), spectrum.weights.tolist(), spectrum.longest
    ([3, 7], [0.5, 1.0], 7)
    """

    def __init__(self) -> None:
        self._weights = np.zeros(0)
        self._counts = np.zeros(0, dtype=np.int64)
        self._longest = -1

    def add(self, lengths: NDArray[np.int64], weight: float) -> None:
        """Add samples.

        Parameters
        ----------
        lengths
            Their lengths in units, from 0 to 2**52, shape (M,).
        weight
            What each of them weighs. Of what weighs nothing the longest alone is known.
        """
        if not len(lengths):
            return
        self._longest = max(self._longest, int(lengths.max()))
        if weight > 0:
            cells = _cells(lengths)
            self._grow(int(cells.max()) + 1)
            np.add.at(self._weights, cells, weight)
            np.add.at(self._counts, cells, 1)

    def spectrum(self) -> Spectrum:
        """Return what was added."""
        cells = np.flatnonzero(self._counts)
        lengths = _lengths(cells)
        if len(lengths):
            np.minimum(lengths, self._longest, out=lengths)
        return Spectrum(lengths, self._weights[cells], self._counts[cells], self._longest)

    def _grow(self, size: int) -> None:
        more = size - len(self._counts)
        if more > 0:
            # Half as much again, so that rising lengths do not copy everything at every block.
            more = max(more, len(self._counts) // 2)
            self._weights = np.append(self._weights, np.zeros(more))
            self._counts = np.append(self._counts, np.zeros(more, dtype=np.int64))


def _cells(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    if int(lengths.max()) < _EXACT:
        return lengths
    bits = lengths.astype(np.float64).view(np.int64)
    coarse = ((bits + _BELOW) >> _SHIFT) - _FIRST + _EXACT
    return np.where(lengths < _EXACT, lengths, coarse)


def _lengths(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    borders = ((np.maximum(cells - _EXACT, 0) + _FIRST) << _SHIFT).view(np.float64)
    return np.where(cells < _EXACT, cells, borders.astype(np.int64))
