"""What a sample counts in a batch: its length, plus a quadratic part, in whole microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan.batching import Batching

__all__ = ["SHORTEST_US", "effective", "effective_one", "longest_allowed", "longest_within"]

SHORTEST_US = 10_000
"""What a sample counts at least (µs), so that no limit allows endlessly many of length zero."""

# Up to here (µs, 50 minutes) a square fits 63 bits.
_LONGEST_EXACT = 3_000_000_000
_ROUNDED_UP = 1.0 + 2.0**-50


def effective(length_us: NDArray[np.int64], quadratic_us: int | None) -> NDArray[np.int64]:
    """Effective lengths l + ⌈l² / q⌉ (µs), never below the exact ones.

    Parameters
    ----------
    length_us
        Lengths, shape (K,).
    quadratic_us
        Length that counts double, q; None counts every length once.
    """
    length = np.maximum(length_us, SHORTEST_US)
    if quadratic_us is None:
        return length
    exact = np.minimum(length, _LONGEST_EXACT)
    squared = (exact * exact + (quadratic_us - 1)) // quadratic_us
    if len(length) and int(length.max()) > _LONGEST_EXACT:
        wide = length.astype(np.float64)
        rough = np.ceil(wide * wide / float(quadratic_us) * _ROUNDED_UP)
        rough = np.minimum(rough, float(1 << 62))
        squared = np.where(length > _LONGEST_EXACT, rough.astype(np.int64), squared)
    return length + squared


def effective_one(length_us: int, quadratic_us: int | None) -> int:
    """Return the effective length of one sample (µs), exact at any length.

    Examples
    --------
    >>> effective_one(30_000_000, 30_000_000)
    60000000
    """
    length = max(length_us, SHORTEST_US)
    if quadratic_us is None:
        return length
    return length - (-(length * length) // quadratic_us)


def longest_within(limit_us: int, quadratic_us: int | None) -> int:
    """Return the longest length whose effective length is within a limit (µs); 0 where none is.

    Examples
    --------
    >>> longest_within(60_000_000, 30_000_000)
    30000000
    """
    low, high = 0, limit_us + 1
    while high - low > 1:
        middle = (low + high) // 2
        if effective_one(middle, quadratic_us) <= limit_us:
            low = middle
        else:
            high = middle
    return low


def longest_allowed(batching: Batching) -> int | None:
    """Return the longest length (µs) that the limit allows; None where nothing limits it."""
    if batching.batch_duration_us is None:
        return None
    return longest_within(batching.batch_duration_us, batching.quadratic_duration_us)
