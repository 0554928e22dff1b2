"""How many rows each leaf gives to a window, in whole numbers and without state."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["remaining_windows", "shares_in_order", "shares_keyed", "systematic"]


def systematic(weights: Sequence[int], draws: int, offset: int) -> NDArray[np.int64]:
    """Split draws over leaves in proportion to weights: a systematic sample.

    Leaf l gets ⌊(C_l·W + u) / S⌋ - ⌊(C_(l-1)·W + u) / S⌋ draws, with C the running sums of the
    weights, S their total, W the draws and u the offset: within one of its share, and W in all.

    Parameters
    ----------
    weights
        One per leaf, not negative, not all 0; Python integers, so that nothing is rounded.
    draws
        How many draws there are.
    offset
        Where the sample starts, 0 ≤ offset < Σ weights.

    Examples
    --------
    >>> systematic([1, 2, 1], 8, 0).tolist()
    [2, 4, 2]
    """
    total = sum(weights)
    ends = [(running * draws + offset) // total for running in accumulate(weights)]
    return np.diff(np.array(ends, dtype=np.int64), prepend=np.int64(0))


def remaining_windows(remaining: int, draws: int) -> int:
    """Into how many windows of about so many draws the rest of a finite pass is cut.

    Examples
    --------
    >>> remaining_windows(1499, 1000), remaining_windows(1500, 1000)
    (1, 2)
    """
    return max(1, (2 * remaining + draws) // (2 * draws))


def shares_keyed(
    remaining: NDArray[np.int64], draws: int, hashes: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the same part of the rest of every leaf, rounded up or down by a keyed hash.

    Parameters
    ----------
    remaining
        Rows that each leaf has left, shape (L,).
    draws
        Draws per window.
    hashes
        A hash per leaf, shape (L,).
    """
    windows = remaining_windows(int(remaining.sum()), draws)
    return (remaining + (hashes % np.uint64(windows)).astype(np.int64)) // windows


def shares_in_order(remaining: NDArray[np.int64], draws: int) -> NDArray[np.int64]:
    """Return the next rows of the leaves laid end to end.

    Parameters
    ----------
    remaining
        Rows that each leaf has left, in declared order of the leaves, shape (L,).
    draws
        Draws per window.

    Examples
    --------
    >>> shares_in_order(np.array([5, 5]), 7).tolist()
    [5, 5]
    >>> shares_in_order(np.array([5, 5]), 5).tolist()
    [5, 0]
    """
    total = int(remaining.sum())
    take = -(-total // remaining_windows(total, draws))
    ends = np.minimum(np.cumsum(remaining), take)
    return np.diff(ends, prepend=np.int64(0))
