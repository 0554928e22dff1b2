"""The leaves of a window as arrays: where each stands, and how many rows each gives."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import Purpose, derive, key, stream, text_word
from playhead.plan.permute import permute
from playhead.plan.quotas import shares_in_order, shares_keyed, systematic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.position import Position

__all__ = ["Roster", "reduced"]

_leaf_word = lru_cache(maxsize=1 << 17)(text_word)


def reduced(weights: Sequence[int]) -> tuple[int, ...]:
    """Weights without their common divisor: the same blend in smaller numbers.

    Examples
    --------
    >>> reduced([4, 6, 0])
    (2, 3, 0)
    """
    common = gcd(*weights) or 1
    return tuple(weight // common for weight in weights)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Roster:
    """Where the leaves of a position stand; every array has shape (L,), in the order of keys."""

    seed: int
    """The seed of the window."""
    window: int
    """Number of the first window of the chain."""
    window_draws: int
    """Draws per window."""
    finite: bool
    """Whether the leaves end with their pass."""
    shuffle: bool
    """Whether rows are drawn in keyed order."""
    sequence: NDArray[np.int64]
    """The order in which leaves are laid end to end: that of their keys, or the declared one."""
    words: NDArray[np.uint64]
    """Hash of the key of each leaf."""
    weights: tuple[int, ...]
    """Weight of each leaf; 0 draws nothing."""
    pass_: NDArray[np.int64]
    """Pass that each leaf is in."""
    done: NDArray[np.int64]
    """Rows of it that were drawn."""
    rows: NDArray[np.int64]
    """Rows that it is over."""
    next_rows: NDArray[np.int64]
    """Rows that later passes are over."""

    @classmethod
    def of(cls, position: Position) -> Roster:
        """Return the leaves of the running window of a position."""
        leaves = position.leaves.values()
        size = len(position.leaves)
        in_order = position.order is not None and not position.shape.shuffle
        return cls(
            seed=position.seed,
            window=position.window,
            window_draws=position.window_draws,
            finite=position.shape.finite,
            shuffle=position.shape.shuffle,
            sequence=np.array(position.order if in_order else range(size), dtype=np.int64),
            words=np.fromiter(map(_leaf_word, position.leaves), np.uint64, size),
            weights=position.weights,
            pass_=np.fromiter((leaf.pass_ for leaf in leaves), np.int64, size),
            done=np.fromiter((leaf.done for leaf in leaves), np.int64, size),
            rows=np.fromiter((leaf.rows for leaf in leaves), np.int64, size),
            next_rows=np.fromiter((leaf.next_rows for leaf in leaves), np.int64, size),
        )

    def remaining(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of a finite pass that each leaf still has after some draws."""
        here = np.fromiter((weight > 0 for weight in self.weights), np.bool_, len(self.weights))
        return np.where(here, self.rows - self.done - taken, 0)

    def window_counts(self, number: int, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draws of each leaf in a window of the chain.

        Parameters
        ----------
        number
            Which window, counted from the first of the chain.
        taken
            Draws of each leaf since the start of the chain, shape (L,).
        """
        window = self.window + number
        if not self.finite:
            total = sum(self.weights)
            offset = key(self.seed, Purpose.QUOTA, window) % total
            return systematic(self.weights, self.window_draws, offset)
        remaining = self.remaining(taken)
        if self.shuffle:
            hashes = derive(key(self.seed, Purpose.SHARE, window), self.words)
            return shares_keyed(remaining, self.window_draws, hashes)
        counts = np.empty_like(remaining)
        counts[self.sequence] = shares_in_order(remaining[self.sequence], self.window_draws)
        return counts

    def further_leaves(
        self, link: int, taken: NDArray[np.int64], first: int, count: int
    ) -> NDArray[np.int64]:
        """Return the leaves of draws beyond the windows, from draw `first` on.

        Parameters
        ----------
        link
            Number of the link whose step they fill up.
        taken
            Draws of each leaf before any of these, shape (L,).
        first, count
            Which of these draws.

        Returns
        -------
        NDArray[np.int64]
            Shape (count,); shorter where a finite pass has no more rows.
        """
        base = key(self.seed, Purpose.FURTHER, self.window, link)
        if not self.finite:
            ends = list(accumulate(self.weights))
            hashes = stream(base, np.arange(first, first + count)).tolist()
            picked = [bisect_right(ends, (word * ends[-1]) >> 64) for word in hashes]
            return np.array(picked, dtype=np.int64)
        remaining = self.remaining(taken)[self.sequence]
        ends = np.cumsum(remaining)
        index = np.arange(first, min(first + count, int(ends[-1])))
        if self.shuffle and len(index):
            index = permute(index, int(ends[-1]), base)
        return self.sequence[np.searchsorted(ends, index, side="right")]

    def further_counts(self, link: int, taken: NDArray[np.int64], draws: int) -> NDArray[np.int64]:
        """How many of the first draws beyond the windows each leaf gives."""
        leaves = self.further_leaves(link, taken, 0, draws)
        return np.bincount(leaves, minlength=len(self.words)).astype(np.int64)
