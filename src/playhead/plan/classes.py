"""Length classes: samples of like length, from long to short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.effort import SHORTEST_US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["class_by_bins", "class_by_mass", "set_apart"]

# The leading bits of a float64 (11 of the exponent, 10 of the mantissa) are cells of 0.1 %.
_CELL_SHIFT = 42
_CELLS_PER_QUARTER = 256
_MASS_UNIT_BITS = 10
# Samples above 71 minutes weigh no more than this, so that sums stay within 64 bits.
_HEAVIEST_US = 1 << 32


def class_by_mass(length_us: NDArray[np.int64], num_classes: int) -> NDArray[np.uint16]:
    """Classes of about equal total length; none spans more than a quarter of an octave.

    The second rule keeps one very long sample from making its whole class as expensive as itself.

    Parameters
    ----------
    length_us
        Lengths (µs), shape (M,), at least one.
    num_classes
        Into how many classes of equal total length they fall.

    Returns
    -------
    NDArray[np.uint16]
        Class of each, shape (M,); class 0 is the longest. Some classes may be empty.
    """
    length = np.maximum(length_us, SHORTEST_US)
    cell = length.astype(np.float64).view(np.int64) >> _CELL_SHIFT
    base = int(cell.min())
    cell -= base
    counts = np.bincount(cell)
    number = np.arange(len(counts)) + base
    edge = (number << _CELL_SHIFT).view(np.float64).astype(np.int64)
    mass = np.cumsum(counts * (np.minimum(edge, _HEAVIEST_US) >> _MASS_UNIT_BITS))
    share = mass * num_classes // max(int(mass[-1]), 1)
    borders = np.diff(share, prepend=np.int64(0)) > 0
    borders |= number % _CELLS_PER_QUARTER == _CELLS_PER_QUARTER - 1
    below = np.cumsum(borders) - borders
    return (below[-1] - below).astype(np.uint16)[cell]


def class_by_bins(length: NDArray[np.int64], bins: Sequence[int]) -> NDArray[np.uint16]:
    """Classes by inclusive upper borders; above the last, a class per quarter of an octave.

    Parameters
    ----------
    length
        Lengths, shape (M,), at least one.
    bins
        Borders in the same unit, ascending.

    Returns
    -------
    NDArray[np.uint16]
        Class of each, shape (M,); class 0 is the longest. Some classes may be empty.
    """
    borders = list(bins)
    longest = int(length.max())
    while borders[-1] < longest:
        borders.append(borders[-1] + (borders[-1] >> 2) + 1)
    ascending = np.searchsorted(np.array(borders, dtype=np.int64), length, side="left")
    return (len(borders) - 1 - ascending).astype(np.uint16)


def set_apart(
    classes: NDArray[np.uint16], length: NDArray[np.int64], longest: int | None
) -> NDArray[np.uint16]:
    """Return the classes, with samples that no batch may share in a class before all others."""
    if longest is None:
        return classes
    above = length > longest
    if not above.any():
        return classes
    return np.where(above, 0, classes + np.uint16(1)).astype(np.uint16)
