"""Random choices that are functions of a key and a name, and of nothing else."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from playhead.fetch.generators import derive

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["below", "between", "happens", "pick", "unit"]


def unit(key: int, purpose: str) -> float:
    """Draw from 0 to 1, 1 excluded; the top 53 bits of a hash.

    Examples
    --------
    >>> unit(7, "snr") == unit(7, "snr"), unit(7, "snr") == unit(8, "snr")
    (True, False)
    """
    return (derive(key, purpose) >> 11) * 2.0**-53


def between(key: int, purpose: str, bounds: Sequence[float]) -> float:
    """Draw evenly between two bounds.

    Examples
    --------
    >>> between(7, "snr", (10, 10))
    10.0
    """
    low, high = bounds
    return low + unit(key, purpose) * (high - low)


def happens(key: int, purpose: str, probability: float) -> bool:
    """Whether what has a probability happens: never at 0, always at 1."""
    return unit(key, purpose) < probability


def below(key: int, purpose: str, count: int) -> int:
    """Draw a whole number from 0 to below `count`.

    Examples
    --------
    >>> below(7, "row", 1)
    0
    """
    return (derive(key, purpose) * count) >> 64


def pick(key: int, purpose: str, weights: Sequence[int] | Sequence[float]) -> int:
    """Draw an index in proportion to weights, which are not negative and not all 0.

    Examples
    --------
    >>> pick(7, "codec", [0, 1, 0])
    1
    """
    ends = list(accumulate(weights))
    point = unit(key, purpose) * ends[-1]
    last = max(index for index, weight in enumerate(weights) if weight > 0)
    return next((index for index, end in enumerate(ends) if point < end), last)
