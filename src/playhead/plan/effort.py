"""What a sample counts in a batch: its length, plus a quadratic part, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan.batching import Batching

__all__ = ["SHORTEST_US", "Effort", "effective", "effective_one"]

SHORTEST_US = 10_000
"""What a sample counts at least (µs), so that no limit allows endlessly many of length zero."""

_SHORTEST_TOKENS = 1
# Up to here (µs, 50 minutes; or tokens) a square fits 63 bits.
_LONGEST_EXACT = 3_000_000_000
_ROUNDED_UP = 1.0 + 2.0**-50
# Above it a sample of tokens is above every limit, and its square still fits.
_MOST_TOKENS = 1 << 30


def effective(
    length: NDArray[np.int64], quadratic: int | None, shortest: int = SHORTEST_US
) -> NDArray[np.int64]:
    """Effective lengths l + ⌈l² / q⌉, never below the exact ones.

    Parameters
    ----------
    length
        Lengths (µs, or tokens), shape (K,).
    quadratic
        Length that counts double, q; None counts every length once.
    shortest
        What a length counts at least.
    """
    length = np.maximum(length, shortest)
    if quadratic is None:
        return length
    exact = np.minimum(length, _LONGEST_EXACT)
    squared = (exact * exact + (quadratic - 1)) // quadratic
    if len(length) and int(length.max()) > _LONGEST_EXACT:
        wide = length.astype(np.float64)
        rough = np.ceil(wide * wide / float(quadratic) * _ROUNDED_UP)
        rough = np.minimum(rough, float(1 << 62))
        squared = np.where(length > _LONGEST_EXACT, rough.astype(np.int64), squared)
    return length + squared


def effective_one(length: int, quadratic: int | None, shortest: int = SHORTEST_US) -> int:
    """Return the effective length of one sample, exact at any length.

    Examples
    --------
    >>> effective_one(30_000_000, 30_000_000)
    60000000
    """
    length = max(length, shortest)
    if quadratic is None:
        return length
    return length - (-(length * length) // quadratic)


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """What samples count in a batch: effective lengths, and the limit in the same unit.

    The unit is a µs or a token. Where tokens count quadratically in batches that are padded, it is
    the q-th part of a token, in which l + l² / q is a whole number: a batch that reaches the limit
    exactly is allowed, whatever the fractions are. What is packed counts in whole tokens, rounded
    up.

    Examples
    --------
    >>> from playhead.plan.batching import Batching
    >>> effort = Effort.of(Batching(in_tokens=True, batch_tokens=4, quadratic_tokens=3))
    >>> effort(np.array([1])) * 3, effort.limit
    (array([12]), 12)
    >>> effort.longest
    2
    """

    quadratic: int | None
    """Length that counts double (µs, or tokens)."""
    limit: int | None
    """The limit of a batch, in units; None where nothing limits it."""
    shortest: int
    """What a length counts at least (µs, or tokens)."""
    exact: bool = False
    """Whether the unit is the q-th part of a token."""

    @classmethod
    def of(cls, batching: Batching) -> Effort:
        """Return what samples count in the batches of a batching."""
        limit, quadratic = batching.limit, batching.quadratic
        if not batching.in_tokens:
            return cls(quadratic=quadratic, limit=limit, shortest=SHORTEST_US)
        exact = quadratic is not None and limit is not None and not batching.packed
        if exact:
            limit = (limit or 0) * (quadratic or 0)
        return cls(quadratic=quadratic, limit=limit, shortest=_SHORTEST_TOKENS, exact=exact)

    def __call__(self, length: NDArray[np.int64]) -> NDArray[np.int64]:
        """Effective lengths in units, shape (K,); never below the exact ones."""
        if not self.exact:
            return effective(length, self.quadratic, self.shortest)
        length = np.clip(length, self.shortest, _MOST_TOKENS)
        return length * ((self.quadratic or 0) + length)

    def one(self, length: int) -> int:
        """Return the effective length of one sample in units."""
        if not self.exact:
            return effective_one(length, self.quadratic, self.shortest)
        length = min(max(length, self.shortest), _MOST_TOKENS)
        return length * ((self.quadratic or 0) + length)

    @property
    def longest(self) -> int | None:
        """The longest length (µs, or tokens) that the limit allows; None where nothing limits it.

        It is -1 where not even the shortest is allowed.
        """
        return None if self.limit is None else _longest(self, self.limit)


@lru_cache(maxsize=64)
def _longest(effort: Effort, limit: int) -> int:
    # Asked for every leaf, of which there may be many thousands.
    if effort.one(0) > limit:
        return -1
    low, high = 0, min(limit, _MOST_TOKENS if effort.exact else limit) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if effort.one(middle) <= limit:
            low = middle
        else:
            high = middle
    return low
