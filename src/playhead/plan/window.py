"""The plan of a window: what every slot of every step trains on, and the position after it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from playhead.errors import PlanError, PositionError
from playhead.plan.batch import MicroBatch
from playhead.plan.chain import running_link, source_of
from playhead.plan.keyed import Purpose, derive, key
from playhead.plan.opening import open_window
from playhead.plan.permute import ranges
from playhead.plan.places import Places
from playhead.plan.progress import advanced
from playhead.plan.stats import WindowStats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.chain import Running
    from playhead.plan.columns import LeafColumns
    from playhead.plan.items import Items
    from playhead.plan.position import Position
    from playhead.plan.roster import Roster
    from playhead.plan.settings import Shape

_Number = TypeVar("_Number", np.int16, np.int64)

__all__ = ["HandedOut", "WindowPlan", "count_steps", "plan_window"]


class HandedOut(NamedTuple):
    """Samples in the order in which they are handed out; arrays have shape (K,)."""

    step: NDArray[np.int64]
    """The step of the link."""
    leaf: NDArray[np.int32]
    """Index of the leaf in the list that the plan was given."""
    row: NDArray[np.int64]
    """Row of the leaf's columns."""
    by_shard: NDArray[np.bool_] | None
    """As `MicroBatch.by_shard`."""


class WindowPlan:
    """The running link of a window, planned.

    Parameters
    ----------
    running
        The link, dealt out.
    leaves
        The leaves as given.
    shape, batching
        The settings that the next window is drawn and cut with.
    skipped
        Samples that windows before this one dropped which had no step at all, by reason.

    Attributes
    ----------
    num_steps
        Steps of the link; they are numbered from 0.
    first_step
        The first of them that was not handed out yet.
    """

    def __init__(
        self,
        running: Running,
        leaves: Sequence[LeafColumns],
        shape: Shape,
        batching: Batching,
        skipped: Mapping[str, int],
    ) -> None:
        self._running = running
        self._leaves = leaves
        self._shape = shape
        self._batching = batching
        self._skipped = skipped
        self._position = running.source.position
        self.num_steps: int = running.dealt.num_steps
        self.first_step: int = self._position.chain[-1].steps
        self._sample_key = key(self._position.seed, Purpose.SAMPLE)

    @property
    def position(self) -> Position:
        """Where the window was planned from."""
        return self._position

    @property
    def roster(self) -> Roster:
        """The leaves of the window as arrays, where they stood when it began."""
        return self._running.source.roster

    @property
    def is_end(self) -> bool:
        """Whether a finite pass ends with this window."""
        running = self._running
        return (
            running.source.roster.finite
            and not running.source.roster.remaining(running.pool.taken).any()
        )

    @cached_property
    def given(self) -> NDArray[np.int32]:
        """Number of each leaf of the roster in the list that was given; -1 for absent ones."""
        number = {leaf.key: place for place, leaf in enumerate(self._leaves)}
        columns = self._running.source.columns
        return np.array(
            [-1 if leaf is None else number[leaf.key] for leaf in columns], dtype=np.int32
        )

    def micro_batch(self, step: int, slot: int) -> MicroBatch:
        """Return the rows of one slot of one step.

        Parameters
        ----------
        step
            0 ≤ step < `num_steps`.
        slot
            0 ≤ slot < micro-batches per step.
        """
        dealt, link = self._running.dealt, self._running.key
        if not (0 <= step < dealt.num_steps and 0 <= slot < dealt.per_step):
            raise IndexError(f"there is no slot {slot} of step {step} in this window")
        numbers = dealt.batch(step, slot)
        items = dealt.items.chosen(numbers)
        part = items.part
        if part is None:
            part = np.zeros(len(numbers), dtype=np.int32)
        words = self._running.source.roster.words[items.leaf]
        return MicroBatch(
            leaf=self.given[items.leaf],
            pass_=items.pass_,
            row=items.row,
            part=part,
            repeated=numbers >= dealt.num_real,
            step=self._position.step + step - self.first_step,
            slot=slot,
            key=link.of(Purpose.BATCH, step, slot),
            sample_keys=derive(self._sample_key, words, items.pass_, items.row, part),
            speed=_unless_all(items.speed, 1000),
            start_us=_unless_all(items.start, 0),
            span_us=_unless_all(items.span, -1),
            text_window=self._text_windows(items.leaf),
            by_shard=self._by_shard(items.leaf, items.pass_),
        )

    def items(self, step: int, slot: int) -> Items:
        """Return the samples of one slot of one step with their lengths.

        Parameters
        ----------
        step, slot
            As for `micro_batch`.

        Returns
        -------
        Items
            In the order of the micro-batch; leaves are numbers of the list that was given.
        """
        dealt = self._running.dealt
        items = dealt.items.chosen(dealt.batch(step, slot))
        return replace(items, leaf=self.given[items.leaf])

    def places(self, step: int, slot: int) -> NDArray[np.int64]:
        """Return which draw of its pass each sample of a slot comes of, counted from 0.

        Parameters
        ----------
        step, slot
            As for `micro_batch`.
        """
        dealt = self._running.dealt
        return self._places.of(dealt.items.chosen(dealt.batch(step, slot)))

    @cached_property
    def _places(self) -> Places:
        return Places(self._running.source, self._running.pool.taken)

    @cached_property
    def cut_numbers(self) -> NDArray[np.int64]:
        """Where each batch stands among all as they were cut, before they are dealt into steps.

        Shape (steps, G). With classes, batches are cut from the longest on.
        """
        dealt = self._running.dealt
        numbers = np.empty(len(dealt.first), dtype=np.int64)
        numbers[np.argsort(dealt.first)] = np.arange(len(dealt.first))
        return numbers.reshape(-1, dealt.per_step)

    def samples_from(self, step: int) -> HandedOut:
        """Return what is handed out from a step on, by all ranks together.

        Parameters
        ----------
        step
            0 ≤ step ≤ `num_steps`.
        """
        dealt = self._running.dealt
        batches = slice(step * dealt.per_step, None)
        size = dealt.size[batches]
        numbers = dealt.order[ranges(dealt.first[batches], size)]
        leaf = dealt.items.leaf[numbers]
        return HandedOut(
            step=np.repeat(step + np.arange(len(size)) // dealt.per_step, size),
            leaf=self.given[leaf],
            row=dealt.items.row[numbers],
            by_shard=self._by_shard(leaf, dealt.items.pass_[numbers]),
        )

    def _by_shard(
        self, leaf: NDArray[np.int32], pass_: NDArray[np.int64]
    ) -> NDArray[np.bool_] | None:
        """Whether passes of leaves of the roster go from shard to shard; None where none does."""
        running, later = self._shard_passes
        if not (running.any() or later.any()):
            return None
        is_running = pass_ == self._running.source.roster.pass_[leaf]
        found = np.where(is_running, running[leaf], later[leaf])
        return found if found.any() else None

    @cached_property
    def _shard_passes(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether the running pass of each leaf goes from shard to shard, and those after it."""
        by_shards = self._position.shape.locality == "shards"
        columns = self._running.source.columns
        has_shards = np.array([one is not None and one.shard is not None for one in columns])
        orders = [leaf.order for leaf in self._position.leaves.values()]
        # The declared order says nothing of how it is read.
        running = [one == "shards" or (one == "declared" and by_shards) for one in orders]
        return has_shards & np.array(running), has_shards & by_shards

    def _text_windows(self, leaf: NDArray[np.int32]) -> NDArray[np.int32] | None:
        """Tokens of the windows of each sample's text, as the window was drawn."""
        tokens = self._position.shape.text_window
        if tokens is None:
            return None
        columns = self._running.source.columns
        has = np.array([one is not None and one.windows for one in columns], dtype=np.bool_)
        return np.where(has[leaf], tokens, 0).astype(np.int32) if has[leaf].any() else None

    def position_at(self, step: int) -> Position:
        """Return the position after so many steps of the link were handed out.

        After the last step, that is the start of the next window, or the end of a finite pass.

        Parameters
        ----------
        step
            `first_step` ≤ step ≤ `num_steps`.
        """
        if not self.first_step <= step <= self.num_steps:
            raise IndexError(f"step {step} of this window is not ahead of the position")
        if step == self.num_steps:
            return self._next
        position = self._position
        read = self.stats.handed_out(step)
        further = self._running.pool.further if step else 0
        link = replace(position.chain[-1], steps=step, further=further)
        return replace(
            position,
            step=position.step + step - self.first_step,
            read=tuple(read.tolist()) if read.any() else None,
            chain=(*position.chain[:-1], link),
        )

    @cached_property
    def _next(self) -> Position:
        position = self._position
        if self.is_end and not self.num_steps:
            return position
        entries = {
            name: advanced(
                progress,
                draws,
                seed=position.seed,
                order=position.order_of_passes,
                finite=position.shape.finite,
            )
            for (name, progress), draws in zip(
                position.leaves.items(), self._running.pool.taken.tolist(), strict=True
            )
        }
        return open_window(
            entries,
            self._leaves,
            self._shape,
            self._batching,
            seed=position.latest_seed,
            step=position.step + self.num_steps - self.first_step,
            window=position.window + self._running.pool.windows,
            moved=position.moved,
            pass_=position.pass_ if position.shape.finite else 0,
        )

    @cached_property
    def stats(self) -> WindowStats:
        """How good the batches are."""
        running = self._running
        dropped = dict(self._skipped)
        for reason, count in running.pool.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
        columns = running.source.columns
        return WindowStats(
            dealt=running.dealt,
            batching=self._position.chain[-1].batching,
            columns=columns,
            names=[
                name if leaf is None else leaf.name
                for name, leaf in zip(self._position.leaves, columns, strict=True)
            ],
            taken=running.pool.taken,
            read=running.pool.read,
            dropped=dropped,
        )


def _unless_all(column: NDArray[_Number] | None, usual: int) -> NDArray[_Number] | None:
    """Return a column; None where it holds nothing but the usual value."""
    return None if column is None or np.all(column == usual) else column


def plan_window(
    position: Position, leaves: Sequence[LeafColumns], shape: Shape, batching: Batching
) -> WindowPlan:
    """Plan the window that a position lies in: a pure function of its arguments.

    Windows that turn out to have no step (everything in them was filtered) are passed over.

    Parameters
    ----------
    position
        Where training stands, from `start`, `resume` or `WindowPlan.position_at`.
    leaves
        The leaves of the blend; batches refer to them by their place in this list.
    shape, batching
        The settings; the running window keeps the shape that it began with.

    Raises
    ------
    PositionError
        When the position was cut with another batching: it has to pass through `resume` first.
    PlanError
        When the filters accept next to nothing.
    """
    if position.chain[-1].batching != batching:
        raise PositionError(
            "the position was cut with other batching options",
            fix="Pass it through playhead.plan.resume first",
        )
    skipped: dict[str, int] = {}
    while True:
        running = running_link(source_of(position, leaves))
        plan = WindowPlan(running, leaves, shape, batching, skipped)
        if plan.first_step > plan.num_steps:
            raise PositionError(
                f"the position is {plan.first_step} steps into a link of {plan.num_steps}",
                fix="Load the state as it was saved, with the data that it was saved with",
            )
        if plan.num_steps > plan.first_step or plan.is_end:
            return plan
        for reason, count in running.pool.dropped.items():
            skipped[reason] = skipped.get(reason, 0) + count
        position = plan.position_at(plan.num_steps)


def count_steps(
    position: Position, leaves: Sequence[LeafColumns], shape: Shape, batching: Batching
) -> int:
    """How many steps a finite pass still has; exact, by planning all of it.

    Raises
    ------
    PlanError
        When the plan is not finite.
    """
    if not position.shape.finite:
        raise PlanError(
            "an endless blend has no number of steps", fix="Set force_finite, or give max_steps"
        )
    steps = 0
    while True:
        plan = plan_window(position, leaves, shape, batching)
        steps += plan.num_steps - plan.first_step
        if plan.is_end:
            return steps
        position = plan.position_at(plan.num_steps)
