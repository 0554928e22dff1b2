"""How many samples have which length, and what they amount to: for bars that people look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Bars", "LengthCounts"]

# Longer samples share the last cell: 1,000 s, or 100,000 tokens.
_CELLS = 100_000
_MOST_BARS = 40
# What lies above this share of the amount is one bar, so that others are not pressed together.
_TAIL = 0.002


class Bars(NamedTuple):
    """Bars of one width, but for the last, which takes all that is longer."""

    edges: NDArray[np.int64]
    """Borders in the unit of lengths, ascending, shape (B + 1,)."""
    samples: NDArray[np.float64]
    """Samples from one border on, up to the next, shape (B,)."""
    amount: NDArray[np.float64]
    """Sum of their lengths, shape (B,)."""


class LengthCounts:
    """Counts by length, added block by block.

    Parameters
    ----------
    unit
        Lengths of one cell: bars begin at multiples of it.

    Examples
    --------
    >>> counts = LengthCounts(unit=1)
    >>> counts.add(np.array([3, 7, 7]), np.ones(3))
    >>> bars = counts.bars()
    >>> bars.edges.tolist(), bars.samples.tolist(), bars.amount.tolist()
    ([3, 4, 5, 6, 7, 8], [1.0, 0.0, 0.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0, 14.0])
    """

    def __init__(self, *, unit: int) -> None:
        self._unit = unit
        self._counts = np.zeros(_CELLS)
        self._amounts = np.zeros(_CELLS)
        self._longest = -1

    def add(self, lengths: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        """Add samples.

        Parameters
        ----------
        lengths
            Their lengths, at least 0, shape (M,).
        weights
            How often each counts, shape (M,).
        """
        counted = weights > 0
        if not counted.any():
            return
        cells = np.minimum(lengths // self._unit, _CELLS - 1)
        size = int(cells.max()) + 1
        self._counts[:size] += np.bincount(cells, weights)
        self._amounts[:size] += np.bincount(cells, weights * lengths)
        self._longest = max(self._longest, int(lengths[counted].max()))

    def below(self, part: float) -> int:
        """Return the length below which a share of all samples is, to a cell.

        Parameters
        ----------
        part
            The share, above 0 and up to 1.

        Examples
        --------
        >>> counts = LengthCounts(unit=10)
        >>> counts.add(np.array([3, 47, 71]), np.ones(3))
        >>> counts.below(0.5), counts.below(1.0)
        (50, 72)
        """
        return self._border(self._counts, part)

    def amount_below(self, part: float) -> int:
        """Return the length below which samples have a share of the sum of all lengths, to a cell.

        Parameters
        ----------
        part
            The share, above 0 and up to 1.

        Examples
        --------
        >>> counts = LengthCounts(unit=10)
        >>> counts.add(np.array([3, 7, 71]), np.ones(3))
        >>> counts.amount_below(0.1), counts.amount_below(0.5)
        (10, 72)
        """
        return self._border(self._amounts, part)

    def _border(self, cells: NDArray[np.float64], part: float) -> int:
        sums = np.cumsum(cells)
        cell = int(np.searchsorted(sums, part * sums[-1]))
        longest = self._longest + 1
        return longest if cell >= _CELLS - 1 else min((cell + 1) * self._unit, longest)

    def bars(self) -> Bars | None:
        """Return at most some 40 bars; None where there is no sample."""
        if self._longest < 0:
            return None
        some = np.flatnonzero(self._counts)
        first = int(some[0])
        amount = np.cumsum(self._amounts)
        last = int(np.searchsorted(amount, amount[-1] * (1 - _TAIL)))
        last = max(last, first)
        width = _nice(-(-(last + 1 - first) // _MOST_BARS))
        begin = first // width * width
        starts = np.arange(begin, last + 1, width)
        samples = np.add.reduceat(self._counts, starts)
        amounts = np.add.reduceat(self._amounts, starts)
        end = max((int(starts[-1]) + width) * self._unit, self._longest + 1)
        return Bars(np.append(starts * self._unit, end), samples, amounts)


def _nice(width: int) -> int:
    """Return the next width out of 1, 2, 5, 10, 20, 50 and so on.

    Examples
    --------
    >>> [_nice(width) for width in (1, 3, 6, 11, 400)]
    [1, 5, 10, 20, 500]
    """
    scale = 1
    while True:
        for step in (1, 2, 5):
            if step * scale >= width:
                return step * scale
        scale *= 10
