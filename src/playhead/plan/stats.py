"""How good the batches of a window are, for reports and tests; nothing here decides a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.bins import bins_by_length, bins_in_2d
from playhead.plan.effort import effective, longest_allowed
from playhead.plan.permute import ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.deal import Dealt

__all__ = ["Longest", "WindowStats"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Longest:
    """The longest sample above the limit."""

    leaf: str
    """Name of its leaf."""
    row: int
    """Its row."""
    duration_us: int
    """Its length (µs)."""


class WindowStats:
    """Figures of the running link of a window, each computed when it is asked for.

    Parameters
    ----------
    dealt
        The batches.
    batching
        What they were cut with.
    columns
        Columns of each leaf of the roster.
    names
        Name of each leaf of the roster.
    taken
        Draws of each leaf since the start of the window.
    dropped
        Samples dropped so far, by reason.
    """

    def __init__(
        self,
        *,
        dealt: Dealt,
        batching: Batching,
        columns: Sequence[LeafColumns | None],
        names: Sequence[str],
        taken: NDArray[np.int64],
        dropped: Mapping[str, int],
    ) -> None:
        self._dealt = dealt
        self._batching = batching
        self._columns = columns
        self._names = names
        self._taken = taken
        self.dropped: dict[str, int] = dict(dropped)

    @cached_property
    def _flat(self) -> NDArray[np.int64]:
        """Numbers of the samples, batch after batch as handed out."""
        return self._dealt.order[ranges(self._dealt.first, self._dealt.size)]

    @cached_property
    def _longest(self) -> NDArray[np.int64]:
        """Longest length of each batch (µs), shape (K,)."""
        if not len(self._dealt.size):
            return np.empty(0, dtype=np.int64)
        starts = np.cumsum(self._dealt.size) - self._dealt.size
        return np.maximum.reduceat(self._dealt.items.length[self._flat], starts)

    @cached_property
    def costs(self) -> NDArray[np.int64]:
        """Samples times longest effective length of each batch (µs), shape (steps, G)."""
        effort = effective(self._longest, self._batching.quadratic_duration_us)
        return (effort * self._dealt.size).reshape(-1, self._dealt.per_step)

    @cached_property
    def num_samples(self) -> int:
        """Samples in all batches, repeated ones among them."""
        return len(self._flat)

    @cached_property
    def padding(self) -> float:
        """Share of the padded audio that is padding."""
        padded = float((self._longest * self._dealt.size).sum())
        real = float(self._dealt.items.length[self._flat].sum())
        return 1.0 - real / padded if padded else 0.0

    @cached_property
    def unused_budget(self) -> float:
        """Share of the batch limit that batches leave unused; 0 where no duration limits them."""
        limit = self._batching.batch_duration_us
        if limit is None or not self.costs.size:
            return 0.0
        return 1.0 - float(np.minimum(self.costs, limit).mean()) / limit

    @cached_property
    def small_batches(self) -> float:
        """Share of the batches that have less than half of the samples they could have."""
        if not len(self._dealt.size):
            return 0.0
        most = np.full(len(self._dealt.size), self._batching.max_samples)
        limit = self._batching.batch_duration_us
        if limit is not None:
            effort = effective(self._longest, self._batching.quadratic_duration_us)
            most = np.clip(limit // effort, 1, most)
        if self._batching.sizes:
            most = np.minimum(most, np.array(self._batching.sizes)[self._bins])
        return float((2 * self._dealt.size < most).mean())

    @property
    def _bins(self) -> NDArray[np.int64]:
        """First bin of fixed size that takes all of each batch, shape (K,)."""
        bins_us, bins_tokens = self._batching.bins_us or (), self._batching.bins_tokens
        tokens = self._dealt.items.tokens
        if bins_tokens is None or tokens is None:
            return bins_by_length(self._longest, bins_us)
        starts = np.cumsum(self._dealt.size) - self._dealt.size
        most = np.maximum.reduceat(tokens[self._flat], starts)
        return bins_in_2d(self._longest, most, bins_us, bins_tokens, strict=False)

    @cached_property
    def imbalance(self) -> float:
        """Cost of the dearest micro-batch of a step over the mean of the step, on average."""
        if not self.costs.size:
            return 1.0
        return float((self.costs.max(axis=1) / self.costs.mean(axis=1)).mean())

    @cached_property
    def most_copies(self) -> int:
        """The most copies of one row in one batch."""
        if not self.num_samples:
            return 0
        batch = np.repeat(np.arange(len(self._dealt.size)), self._dealt.size)
        leaf, row = self._dealt.items.leaf[self._flat], self._dealt.items.row[self._flat]
        order = np.lexsort((row, leaf, batch))
        same = np.ones(len(order), dtype=np.bool_)
        for column in (batch, leaf, row):
            ordered = column[order]
            same[1:] &= ordered[1:] == ordered[:-1]
        same[0] = False
        starts = np.flatnonzero(~same)
        return int(np.diff(starts, append=np.int64(len(order))).max())

    @cached_property
    def repeated(self) -> int:
        """Samples that fill up the last step of a finite pass."""
        return len(self._dealt.items) - self._dealt.num_real

    @cached_property
    def oversize(self) -> int:
        """Samples above the limit, each a batch of its own."""
        longest = longest_allowed(self._batching)
        if longest is None:
            return 0
        return int(np.count_nonzero(self._dealt.items.length[: self._dealt.num_real] > longest))

    @cached_property
    def longest_oversize(self) -> Longest | None:
        """The longest of them."""
        if not self.oversize:
            return None
        items = self._dealt.items
        at = int(items.length.argmax())
        return Longest(
            leaf=self._names[int(items.leaf[at])],
            row=int(items.row[at]),
            duration_us=int(items.length[at]),
        )

    @cached_property
    def draws(self) -> dict[str, int]:
        """Draws of each leaf since the start of the window, by key of the leaf."""
        return {
            leaf.key: int(count)
            for leaf, count in zip(self._columns, self._taken, strict=True)
            if leaf is not None
        }
