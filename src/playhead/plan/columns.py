"""What the plan knows of a leaf: its columns, and figures of them that are computed once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["LeafColumns", "LeafFacts"]

_CENTISECOND = 10_000
# Longer rows count as 1,000 s in estimates, so that sums of squares stay within 64 bits.
_LONGEST_CS = 100_000
_BLOCK = 1 << 18


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafFacts:
    """Figures of the rows of a leaf that its filters accept."""

    accepted: int
    """How many rows."""
    total_cs: int
    """Sum of their lengths (1/100 s)."""
    squares_cs: int
    """Sum of the squares of their lengths (1/100 s squared)."""
    longest_us: int
    """The longest length (µs); -1 where there is no row."""
    longest_row: int
    """The first row of that length."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafColumns:
    """The columns of one leaf, row by row in declared order."""

    key: str
    """Stable identity of the leaf; progress is kept under it."""
    name: str
    """What people call it; named in messages."""
    weight: int
    """Share of an infinite blend, relative to the other leaves; 0 draws nothing."""
    duration_us: NDArray[np.int64]
    """Lengths (µs), shape (N,)."""
    fingerprint: Callable[[int], str]
    """Digest of the content of the first n rows."""
    explain_change: Callable[[str, int], str] | None = None
    """Says what differs in the first n rows from those of an older digest, and in which file."""
    shard: NDArray[np.int32] | None = None
    """Shard of each row, shape (N,); None where rows have no shards."""
    shard_bytes: NDArray[np.int64] | None = None
    """Size of each shard (bytes), indexed by the values of `shard`."""
    _facts: dict[tuple[int | None, int | None], LeafFacts] = field(
        default_factory=dict, init=False, repr=False
    )
    _prints: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    @property
    def num_rows(self) -> int:
        """How many rows the leaf has now."""
        return len(self.duration_us)

    def digest(self, rows: int) -> str:
        """`fingerprint` of the first rows, computed once per number of rows."""
        if rows not in self._prints:
            self._prints[rows] = self.fingerprint(rows)
        return self._prints[rows]

    def facts(self, low_us: int | None, high_us: int | None) -> LeafFacts:
        """Figures of the rows from one length to another (µs, inclusive); computed once each."""
        if (low_us, high_us) not in self._facts:
            self._facts[low_us, high_us] = _facts_of(self.duration_us, low_us, high_us)
        return self._facts[low_us, high_us]


def _facts_of(duration_us: NDArray[np.int64], low: int | None, high: int | None) -> LeafFacts:
    accepted = total = squares = 0
    longest, longest_row = -1, -1
    for start in range(0, len(duration_us), _BLOCK):
        lengths = duration_us[start : start + _BLOCK]
        rows: NDArray[np.int64] | None = None
        if low is not None or high is not None:
            least = 0 if low is None else low
            kept = lengths >= least if high is None else (lengths >= least) & (lengths <= high)
            rows = np.flatnonzero(kept)
            lengths = lengths[rows]
        if not len(lengths):
            continue
        top = int(lengths.argmax())
        if int(lengths[top]) > longest:
            longest = int(lengths[top])
            longest_row = start + (top if rows is None else int(rows[top]))
        centiseconds = np.minimum(lengths // _CENTISECOND, _LONGEST_CS)
        accepted += len(centiseconds)
        total += int(centiseconds.sum())
        squares += int(np.dot(centiseconds, centiseconds))
    return LeafFacts(
        accepted=accepted,
        total_cs=total,
        squares_cs=squares,
        longest_us=longest,
        longest_row=longest_row,
    )
