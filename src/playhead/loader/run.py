"""What one rank hands out from a position on: micro-batches, and the position after each."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from playhead.errors import PositionError
from playhead.plan import count_steps, plan_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.loader.ranks import Topology
    from playhead.plan import Batching, LeafColumns, MicroBatch, Position, Shape, WindowPlan

__all__ = ["Planning", "Run"]

# A worker that is forked while NumPy computes in another thread may never come back.
_planning_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_planning_lock.acquire,
        after_in_parent=_planning_lock.release,
        after_in_child=_planning_lock.release,
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Planning:
    """Everything that a plan is a function of, but for the position."""

    leaves: Sequence[LeafColumns]
    """The columns of every leaf."""
    shape: Shape
    """What new windows are drawn with."""
    batching: Batching
    """What new windows are cut with."""
    beside: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digests of what batches depend on and the plan does not, such as noise, by name."""

    def window(self, position: Position) -> WindowPlan:
        """The plan of the window that `position` lies in."""
        with _planning_lock:
            return plan_window(position, self.leaves, self.shape, self.batching)

    def steps_left(self, position: Position) -> int:
        """How many steps a finite pass still has."""
        with _planning_lock:
            return count_steps(position, self.leaves, self.shape, self.batching)


@dataclass(slots=True, eq=False)
class _Window:
    first_batch: int
    position: Position
    plan: Future[WindowPlan]


class Run:
    """What one rank hands out from a position on; nothing in it moves, all of it is computed.

    Parameters
    ----------
    planning
        What the plan is a function of.
    start
        The position before batch 0.
    topology
        Whose share is handed out: slots rank, rank + world size, … of every step.
    """

    # Frameworks ask for the position of a batch a few batches back, which may be a window back.
    _KEPT_WINDOWS = 2

    def __init__(self, planning: Planning, start: Position, topology: Topology) -> None:
        self.planning = planning
        self.start = start
        self._topology = topology
        self._per_step = topology.batches_per_step(planning.batching.micro_batches_per_step)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="playhead-plan")
        self._windows = [self._planned(0, start)]
        self._dropped: dict[tuple[int, int], tuple[int, dict[str, int]]] = {}

    def batches(self, first: int = 0) -> Iterator[MicroBatch]:
        """The micro-batches of this rank from number `first` on."""
        per_step, rank, size = self._per_step, self._topology.rank, self._topology.world_size
        batch = first
        while True:
            window = self._window_of(batch)
            if window is None:
                return
            plan = window.plan.result()
            end = window.first_batch + (plan.num_steps - plan.first_step) * per_step
            place = window.position.pass_, window.position.window
            self._dropped[place] = window.first_batch, plan.stats.dropped
            for number in range(batch, end):
                step, turn = divmod(number - window.first_batch, per_step)
                yield plan.micro_batch(plan.first_step + step, rank + turn * size)
                if number == batch:
                    # Whoever waits for the first batch does not wait for the window after it.
                    self._following(window)
            batch = end

    def neighbours(self, batch: int) -> Iterator[MicroBatch]:
        """The other micro-batches of the step of a batch, from the next slot on and around."""
        window = self._window_of(batch)
        assert window is not None
        plan = window.plan.result()
        step, turn = divmod(batch - window.first_batch, self._per_step)
        slot = self._topology.rank + turn * self._topology.world_size
        slots = self.planning.batching.micro_batches_per_step
        for further in range(1, slots):
            yield plan.micro_batch(plan.first_step + step, (slot + further) % slots)

    def dropped_before(self, batches: int) -> dict[tuple[int, int], dict[str, int]]:
        """What the windows of batches before `batches` dropped by reason; by pass and window."""
        return {
            place: dropped
            for place, (first_batch, dropped) in self._dropped.items()
            if first_batch < batches
        }

    def position_after(self, batches: int) -> Position:
        """The position after so many batches; inside a step, the position at its start.

        Raises
        ------
        PositionError
            When that is further back than any framework fetches ahead, or after the end.
        """
        window = self._window_of(batches)
        if window is None:
            if batches == self._end_of(self._windows[-1]):
                last = self._windows[-1].plan.result()
                return last.position_at(last.num_steps)
            raise PositionError(f"there is no batch {batches} in this pass")
        plan = window.plan.result()
        steps = (batches - window.first_batch) // self._per_step
        return plan.position_at(plan.first_step + steps)

    def forget_before(self, batches: int) -> None:
        """Let go of the windows that lie well before batch `batches`."""
        while (
            len(self._windows) > self._KEPT_WINDOWS
            and self._windows[self._KEPT_WINDOWS].first_batch <= batches
        ):
            del self._windows[0]

    def is_step_start(self, batches: int) -> bool:
        """Whether so many batches are a whole number of steps."""
        return batches % self._per_step == 0

    def count(self) -> int:
        """How many batches a finite run hands out in all."""
        return self.planning.steps_left(self.start) * self._per_step

    def close(self) -> None:
        """Stop planning ahead."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _window_of(self, batch: int) -> _Window | None:
        if batch < self._windows[0].first_batch:
            raise PositionError(
                f"batch {batch} lies further back than positions are kept for",
                fix="Ask for the position of a batch of the last few windows",
            )
        for window in self._windows:
            if batch < self._end_of(window):
                return window
        while True:
            window = self._following(self._windows[-1])
            if window is None:
                return None
            end = self._end_of(window)
            if end == window.first_batch:
                return None
            if batch < end:
                return window

    def _end_of(self, window: _Window) -> int:
        plan = window.plan.result()
        return window.first_batch + (plan.num_steps - plan.first_step) * self._per_step

    def _following(self, window: _Window) -> _Window | None:
        """The window after `window`, planned in the background if it is not yet."""
        place = self._windows.index(window)
        if place + 1 < len(self._windows):
            return self._windows[place + 1]
        plan = window.plan.result()
        if plan.num_steps == plan.first_step:
            return None
        after = self._planned(self._end_of(window), plan.position_at(plan.num_steps))
        self._windows.append(after)
        return after

    def _planned(self, first_batch: int, position: Position) -> _Window:
        plan = self._executor.submit(self.planning.window, position)
        return _Window(first_batch, position, plan)
