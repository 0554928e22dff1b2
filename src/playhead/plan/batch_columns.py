"""The batches of a link as columns, and how good they are; nothing here decides a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.bins import batch_sizes, bins_by_length, bins_in_2d
from playhead.plan.effort import Effort
from playhead.plan.permute import ranges
from playhead.plan.refusals import both_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.deal import Dealt

__all__ = ["BatchColumns"]

_COLUMNS = ("size", "longest", "total", "squares", "cost", "first", "second")


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchColumns:
    """Batches in the order in which they are handed out; every array has shape (K,).

    Lengths are in µs or in tokens, whichever batches are made by; of what has none they are 0.
    """

    batching: Batching
    """What they were cut with."""
    size: NDArray[np.int64]
    """Samples of each."""
    longest: NDArray[np.int64]
    """Its longest sample."""
    total: NDArray[np.int64]
    """Sum of the lengths of its samples."""
    squares: NDArray[np.float64]
    """Sum of the squares of their lengths."""
    cost: NDArray[np.int64]
    """What it counts against the limit, in the unit of `Effort`: samples times longest effective
    length; of packed batches, the sum of effective lengths."""
    first: NDArray[np.int64]
    """Its longest first length, where bins have two; else its longest sample."""
    second: NDArray[np.int64]
    """Its longest second length; 1 where bins have one length."""

    @classmethod
    def of(cls, dealt: Dealt, batching: Batching) -> BatchColumns:
        """Return the batches of a link.

        Parameters
        ----------
        dealt
            The batches.
        batching
            What they were cut with.
        """
        starts = np.cumsum(dealt.size) - dealt.size
        samples = dealt.order[ranges(dealt.first, dealt.size)]

        def reduced(reduce: np.ufunc, values: NDArray[np.int64]) -> NDArray[np.int64]:
            return reduce.reduceat(values, starts) if len(starts) else values[:0]

        lengths = np.maximum(dealt.items.lengths(in_tokens=batching.in_tokens)[samples], 0)
        effort = Effort.of(batching)
        longest = reduced(np.maximum, lengths)
        exact = lengths.astype(np.float64)
        first, second = longest, np.ones(len(starts), dtype=np.int64)
        if batching.bins_tokens is not None:
            first, second = (
                reduced(np.maximum, one[samples]) for one in both_lengths(dealt.items, batching)
            )
            second = np.maximum(second, 1)
        return cls(
            batching=batching,
            size=dealt.size,
            longest=longest,
            total=reduced(np.add, lengths),
            squares=np.add.reduceat(exact * exact, starts) if len(starts) else exact[:0],
            cost=(
                reduced(np.add, effort(lengths))
                if batching.packed
                else effort(longest) * dealt.size
            ),
            first=first,
            second=second,
        )

    @staticmethod
    def joined(parts: Sequence[BatchColumns]) -> BatchColumns:
        """Return the batches of several links that were cut with one batching, at least one."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        return BatchColumns(batching=parts[0].batching, **columns)

    def chosen(self, which: slice | NDArray[np.bool_]) -> BatchColumns:
        """Return some of the batches."""
        columns: dict[str, Any] = {name: getattr(self, name)[which] for name in _COLUMNS}
        return BatchColumns(batching=self.batching, **columns)

    def __len__(self) -> int:
        return len(self.size)

    @property
    def has_fixed_sizes(self) -> bool:
        """Whether batches have the sizes of their bins."""
        batching = self.batching
        return bool(batching.sizes) and batching.bucketing and not batching.packed

    @cached_property
    def bins(self) -> NDArray[np.int64]:
        """First bin of fixed size that takes all of each batch."""
        batching = self.batching
        borders = batching.bins or ()
        if batching.bins_tokens is None:
            return bins_by_length(self.longest, borders)
        return bins_in_2d(self.first, self.second, borders, batching.bins_tokens, strict=False)

    @cached_property
    def linear(self) -> NDArray[np.float64]:
        """What each costs where cost is length alone."""
        padded = self.total if self.batching.packed else self.size * self.longest
        return padded.astype(np.float64)

    @cached_property
    def quadratic(self) -> NDArray[np.float64]:
        """What each costs where cost is length squared."""
        if self.batching.packed:
            return self.squares
        return self.size * self.longest.astype(np.float64) ** 2

    @cached_property
    def padding(self) -> float:
        """Share of what is padded that is padding; 0 where packed."""
        padded = float(self.linear.sum())
        return 1.0 - float(self.total.sum()) / padded if padded else 0.0

    @cached_property
    def fill(self) -> NDArray[np.float64]:
        """Share of what each may hold that it uses, 0 to 1: its size, or the limit if more of it.

        Where neither a size nor a limit is asked for, that is the most that any batch may have.
        """
        batching = self.batching
        if self.has_fixed_sizes:
            most = np.array(batch_sizes(batching))[self.bins]
            return np.minimum(self.size / most, 1.0)
        limit = Effort.of(batching).limit
        used = np.zeros(len(self)) if limit is None else self.cost / limit
        if not batching.packed and (limit is None or batching.batch_size is not None):
            used = np.maximum(used, self.size / batching.max_samples)
        return np.minimum(used, 1.0)

    @cached_property
    def unused_budget(self) -> float:
        """Share of what batches may hold that they leave unused, on average."""
        return 1.0 - float(self.fill.mean()) if len(self) else 0.0

    @cached_property
    def small_batches(self) -> float:
        """Share of the batches that have less than half of what they could have."""
        if not len(self):
            return 0.0
        batching, limit = self.batching, Effort.of(self.batching).limit
        full = self.size >= batching.max_samples / 2
        if batching.packed:
            full |= 2 * self.cost >= (limit or 0)
        elif limit is not None:
            full |= 2 * self.size >= np.maximum(limit // (self.cost // self.size), 1)
        if batching.sizes:
            full |= 2 * self.size >= np.array(batching.sizes)[self.bins]
        return float((~full).mean())

    def by_rank(
        self, cost: NDArray[np.int64] | NDArray[np.float64], world_size: int
    ) -> NDArray[np.float64]:
        """What each rank has of every step, shape (steps, world size).

        Parameters
        ----------
        cost
            What each batch costs, shape (K,).
        world_size
            How many ranks share a step; divides its micro-batches.
        """
        per_step = self.batching.micro_batches_per_step
        slots = cost.astype(np.float64).reshape(-1, per_step // world_size, world_size)
        return slots.sum(axis=1)

    def imbalance(self, cost: NDArray[np.int64] | NDArray[np.float64], world_size: int) -> float:
        """Cost of the slowest rank of a step over the mean of its ranks, on average over steps."""
        ranks = self.by_rank(cost, world_size)
        mean = ranks.mean(axis=1) if len(ranks) else np.ones(1)
        most = ranks.max(axis=1) if len(ranks) else np.ones(1)
        return float(np.where(mean > 0, most / np.maximum(mean, 1e-300), 1.0).mean())
