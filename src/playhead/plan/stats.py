"""How good the batches of a window are, for reports and tests; nothing here decides a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.plan.batch_columns import BatchColumns
from playhead.plan.effort import Effort
from playhead.plan.permute import ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.deal import Dealt

__all__ = ["Amounts", "Costly", "Longest", "StepStats", "WindowStats"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Longest:
    """The longest sample above the limit."""

    leaf: str
    """Name of its leaf."""
    row: int
    """Its row."""
    duration_us: int
    """Its length (µs)."""
    tokens: int | None = None
    """Its length in tokens, where batches are made by these."""


class Amounts(NamedTuple):
    """What leaves of a roster have in stretches of steps; arrays have shape (S, L)."""

    samples: NDArray[np.float64]
    """Samples, repeated ones among them."""
    length_us: NDArray[np.float64]
    """Their audio (µs)."""
    tokens: NDArray[np.float64] | None
    """Their tokens; None where nothing counts them."""


class StepStats(NamedTuple):
    """What all ranks together train on in one step."""

    leaf: NDArray[np.int32]
    """Number in the roster of the leaf of each sample, but for repeated ones, shape (K,)."""
    length_us: int
    """Audio of all samples, as they are trained on (µs)."""
    tokens: int
    """Their tokens; 0 where nothing counts them."""
    batches: BatchColumns
    """The micro-batches, slot after slot."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Costly:
    """A batch that takes more memory than others."""

    bin: int | None
    """The bin of fixed size that takes all of it; None where batches have no fixed sizes."""
    step: int
    """Its step of the link."""
    slot: int
    """Its slot in the step."""
    samples: int
    """How many samples it has."""
    cost: int
    """What it counts against the limit, in the unit of `Effort`."""
    second: int = 1
    """Its longest second length, where bins have two."""

    def is_no_worse_than(self, other: Costly) -> bool:
        """Whether it has no more samples, no longer ones, and none with more of the second."""
        return (
            self.samples <= other.samples
            and self.cost * other.samples <= other.cost * self.samples
            and self.second <= other.second
        )

    def filled(self, samples: int) -> Costly:
        """The same with more samples."""
        return replace(self, samples=samples, cost=self.cost // self.samples * samples)


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
    read
        Samples of each leaf that links before this one handed out since the start of the window.
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
        read: NDArray[np.int64],
        dropped: Mapping[str, int],
    ) -> None:
        self._dealt = dealt
        self._batching = batching
        self._effort = Effort.of(batching)
        self._columns = columns
        self._names = names
        self._taken = taken
        self._read = read
        self.dropped: dict[str, int] = dict(dropped)

    @cached_property
    def batches(self) -> BatchColumns:
        """The batches as columns, step after step, slot after slot."""
        return BatchColumns.of(self._dealt, self._batching)

    @cached_property
    def _flat(self) -> NDArray[np.int64]:
        """Numbers of the samples, batch after batch as handed out."""
        return self._dealt.order[ranges(self._dealt.first, self._dealt.size)]

    def step(self, number: int) -> StepStats:
        """What all ranks train on in a step, at no more cost than its own samples."""
        step = self._dealt.only(number, number + 1)
        samples = step.order[ranges(step.first, step.size)]
        real = samples if not self.repeated else samples[samples < step.num_real]
        items, batches = step.items, BatchColumns.of(step, self._batching)
        tokens = items.tokens if items.size is None else items.size
        # At some thousand samples a step, every column that is read takes its time.
        in_tokens = self._batching.in_tokens
        lengths = np.maximum(items.length[samples], 0) if in_tokens else batches.total
        return StepStats(
            leaf=items.leaf[real],
            length_us=int(lengths.sum()),
            tokens=0 if tokens is None else int(tokens[samples].sum()),
            batches=batches,
        )

    def handed_out(self, step: int) -> NDArray[np.int64]:
        """Samples of each leaf since the start of the window, up to a step; no repeated ones."""
        handed = self._dealt.items.leaf[self._dealt.handed_out(step)]
        return self._read + np.bincount(handed, minlength=len(self._read))

    @property
    def given(self) -> NDArray[np.int64]:
        """Samples of each leaf in the whole window, as far as it is planned; no repeated ones."""
        dealt = self._dealt
        if int(dealt.size.sum()) < len(dealt.items):
            return self.handed_out(dealt.num_steps)
        real = dealt.items.leaf[: dealt.num_real]
        return self._read + np.bincount(real, minlength=len(self._read))

    @property
    def taken(self) -> NDArray[np.int64]:
        """Draws of each leaf of the roster since the start of the window."""
        return self._taken

    @property
    def costs(self) -> NDArray[np.int64]:
        """What each batch counts against the limit, in its unit, shape (steps, G)."""
        return self.batches.cost.reshape(-1, self._dealt.per_step)

    @property
    def num_samples(self) -> int:
        """Samples in all batches, repeated ones among them."""
        return int(self._dealt.size.sum())

    @property
    def padding(self) -> float:
        """Share of what is padded that is padding, of lengths in µs or tokens; 0 where packed."""
        return self.batches.padding

    @property
    def packing_efficiency(self) -> float | None:
        """Share of the batch limit that packed batches use; None where nothing is packed."""
        return 1.0 - self.unused_budget if self._batching.packed else None

    @property
    def unused_budget(self) -> float:
        """Share of what batches may hold that they leave unused."""
        return self.batches.unused_budget

    @property
    def small_batches(self) -> float:
        """Share of the batches that have less than half of what they could have."""
        return self.batches.small_batches

    def costliest(self, first_step: int, count: int) -> list[list[Costly]]:
        """The batches that are likely to take the most memory, from a step on.

        Parameters
        ----------
        first_step
            The first step that is looked at.
        count
            How many batches of each kind at most.

        Returns
        -------
        list[list[Costly]]
            For each bin of fixed size, from the longest on, its batches with the most of
            samples times longest length (in 2-D times the longest second length, too). Where
            batches have no fixed sizes: those of the most cost, those of the longest samples, and
            those of the most samples. The worst of a kind comes first.
        """
        places = np.arange(first_step * self._dealt.per_step, len(self._dealt.size))
        if not len(places):
            return []
        costs = self.costs.ravel()
        if self.has_fixed_sizes:
            weights = costs * self.batches.second.astype(np.float64)
            bins = self.batches.bins
            kinds = [
                _descending(weights, places[bins[places] == number])[:count]
                for number in np.unique(bins[places])[::-1]
            ]
        else:
            bins = None
            kinds = [
                _descending(values, places)[:count]
                for values in (costs, self.batches.longest, self._dealt.size)
            ]
        return [
            [self._costly(int(place), None if bins is None else int(bins[place])) for place in kind]
            for kind in kinds
        ]

    @property
    def has_fixed_sizes(self) -> bool:
        """Whether batches have the sizes of their bins."""
        return self.batches.has_fixed_sizes

    def _costly(self, place: int, number: int | None) -> Costly:
        step, slot = divmod(place, self._dealt.per_step)
        return Costly(
            bin=number,
            step=step,
            slot=slot,
            samples=int(self._dealt.size[place]),
            cost=int(self.costs[step, slot]),
            second=int(self.batches.second[place]),
        )

    @property
    def imbalance(self) -> float:
        """Cost of the dearest micro-batch of a step over the mean of the step, on average."""
        return self.batches.imbalance(self.batches.cost, self._dealt.per_step)

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
        longest = self._effort.longest
        if longest is None:
            return 0
        lengths = self._dealt.items.lengths(in_tokens=self._batching.in_tokens)
        return int(np.count_nonzero(lengths[: self._dealt.num_real] > longest))

    @cached_property
    def longest_oversize(self) -> Longest | None:
        """The longest of them."""
        if not self.oversize:
            return None
        items, in_tokens = self._dealt.items, self._batching.in_tokens
        lengths = items.lengths(in_tokens=in_tokens)
        at = int(lengths.argmax())
        return Longest(
            leaf=self._names[int(items.leaf[at])],
            row=int(items.row[at]),
            duration_us=int(items.length[at]),
            tokens=int(lengths[at]) if in_tokens else None,
        )

    def amounts(self, borders: Sequence[int]) -> Amounts:
        """What each leaf has in stretches of steps.

        Parameters
        ----------
        borders
            Steps at which stretches begin, and the step after the last of them, ascending,
            shape (S + 1,).
        """
        per_step = self._dealt.per_step
        ends = np.concatenate([[0], np.cumsum(self._dealt.size)])
        places = ends[np.asarray(borders, dtype=np.int64) * per_step]
        num_leaves, rows = len(self._columns), len(borders) - 1
        chosen = self._flat[places[0] : places[-1]]
        stretch = np.repeat(np.arange(rows), np.diff(places))
        items = self._dealt.items
        cell = stretch * num_leaves + items.leaf[chosen]

        def summed(weights: NDArray[np.int64] | None) -> NDArray[np.float64]:
            found = np.bincount(cell, weights, minlength=rows * num_leaves)
            return found.astype(np.float64).reshape(rows, num_leaves)

        tokens = items.tokens if items.size is None else items.size
        return Amounts(
            samples=summed(None),
            length_us=summed(np.maximum(items.length[chosen], 0)),
            tokens=None if tokens is None else summed(tokens[chosen]),
        )

    @cached_property
    def draws(self) -> dict[str, int]:
        """Draws of each leaf since the start of the window, by key of the leaf."""
        return {
            leaf.key: int(count)
            for leaf, count in zip(self._columns, self._taken, strict=True)
            if leaf is not None
        }


def _descending(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return places by their values, the greatest first; equal ones in their order."""
    return places[np.argsort(-values[places], kind="stable")]
