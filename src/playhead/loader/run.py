"""What one rank hands out from a position on: micro-batches, and the position after each."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import PositionError
from playhead.loader.fork_lock import fork_lock
from playhead.loader.read_ahead import WindowAhead
from playhead.plan import Position, count_steps, plan_window, resume, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.loader.ranks import Topology
    from playhead.plan import Batching, LeafColumns, MicroBatch, Shape, WindowPlan
    from playhead.plan.resume import OnChange

__all__ = ["Planning", "Run", "WindowOfStep"]


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
    keeps_locality: bool = False
    """Whether nobody asked for the locality of `shape`, which then follows from where the data lie:
    a position keeps its own wherever they lie later."""

    @property
    def parts(self) -> Mapping[str, Planning]:
        """What is planned by itself, by name; this is all there is."""
        return {"": self}

    @property
    def shares(self) -> Mapping[str, float]:
        """What share of the steps each part has."""
        return {"": 1.0}

    @property
    def finite(self) -> bool:
        """Whether a pass ends."""
        return self.shape.finite

    @property
    def micro_batches_per_step(self) -> int:
        """Micro-batches of an optimizer step, over all ranks."""
        return self.batching.micro_batches_per_step

    def with_step(self, micro_batches: int) -> Planning:
        """The same with another number of micro-batches in a step."""
        batching = replace(self.batching, micro_batches_per_step=micro_batches)
        return replace(self, batching=batching)

    def as_saved(self, position: Position) -> Planning:
        """The same with the locality of a position, where none was asked for, and its windows.

        How many bytes a machine may keep decides how long windows are when a run begins; on the
        next machine that must not change what is trained on.
        """
        then = position.shape
        locality = then.locality if self.keeps_locality else self.shape.locality
        shape = replace(self.shape, locality=locality, cache_bytes=then.cache_bytes)
        return self if shape == self.shape else replace(self, shape=shape)

    def position_of(self, state: Mapping[str, Any]) -> Position:
        """Read the position that a loader saved.

        Raises
        ------
        PositionError
            When it is none, or of several configs.
        """
        if isinstance(state, Mapping) and "parts" in state:  # pyright: ignore[reportUnnecessaryIsInstance]  # a state comes from anywhere
            raise PositionError(
                "this state is of a config with multi_config, and this is a config of one blend",
                fix="Load it into the loader of the config that it was saved with",
            )
        return Position.from_json(state)

    def start(
        self,
        *,
        seed: int,
        pass_: int,
        step: int,
        before: Position | None = None,  # noqa: ARG002 - several parts differ in what they do with it
    ) -> Position:
        """The position at the start of a pass; endless blends have but one.

        Parameters
        ----------
        seed
            What everything random follows from.
        pass_
            Number of the pass.
        step
            Optimizer steps before it.
        before
            Where the run before stands, if there was one.
        """
        number = pass_ if self.finite else 0
        leaves, shape, batching = self.leaves, self.shape, self.batching
        return start(leaves, shape, batching, seed=seed, pass_=number, step=step)

    def resume(
        self, position: Position, *, reseed: int | None, on_change: OnChange
    ) -> tuple[Position, tuple[str, ...]]:
        """Go on from a position with the present data and options; see `playhead.plan.resume`."""
        leaves, shape, batching = self.leaves, self.shape, self.batching
        return resume(position, leaves, shape, batching, reseed=reseed, on_change=on_change)

    def run(self, position: Position, topology: Topology) -> Run:
        """What one rank hands out from a position on."""
        return Run(self, position, topology)

    def window(self, position: Position) -> WindowPlan:
        """The plan of the window that `position` lies in."""
        with fork_lock:
            return plan_window(position, self.leaves, self.shape, self.batching)

    def steps_left(self, position: Position) -> int:
        """How many steps a finite pass still has."""
        with fork_lock:
            return count_steps(position, self.leaves, self.shape, self.batching)


class WindowOfStep(NamedTuple):
    """A window that a step is of."""

    part: int
    """Which of several configs it is of; 0 where there is one."""
    plan: WindowPlan
    """Its plan."""
    step: int
    """Number of the step in it."""


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
        self._per_step = topology.batches_per_step(planning.micro_batches_per_step)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="playhead-plan")
        self._windows = [self._planned(0, start)]

    def batches(self, first: int = 0) -> Iterator[MicroBatch]:
        """The micro-batches of this rank from number `first` on."""
        per_step, rank, size = self._per_step, self._topology.rank, self._topology.world_size
        batch = first
        while True:
            window = self._window_of(batch)
            if window is None:
                return
            end = self._end_of(window)
            for number in range(batch, end):
                step, turn = divmod(number, per_step)
                yield self.micro_batch(step, rank + turn * size)
                if number == batch:
                    # Whoever waits for the first batch does not wait for the window after it.
                    self._following(window)
            batch = end

    def micro_batch(self, step: int, slot: int) -> MicroBatch:
        """What any rank hands out in a slot of step number `step` of this run."""
        window = self._window_of(step * self._per_step)
        assert window is not None, "there is no such step"
        plan = window.plan.result()
        return plan.micro_batch(plan.first_step + step - window.first_batch // self._per_step, slot)

    def has_batch(self, number: int) -> bool:
        """Whether there is a batch of that number."""
        return self._window_of(number) is not None

    def plan_ahead(self, step: int) -> None:
        """Begin to plan the window after that of a step in the background, if nobody has yet."""
        window = self._window_of(step * self._per_step)
        if window is not None:
            self._following(window)

    def windows_ahead(self, batch: int, part: int = 0) -> list[WindowAhead]:
        """The window of a batch and those after it, as far as they are being planned.

        Parameters
        ----------
        batch
            The batch that is handed out next.
        part
            What this run is called among several.
        """
        begun = [number for number, one in enumerate(self._windows) if one.first_batch <= batch]
        ahead = self._windows[begun[-1] if begun else 0 :]
        return [
            WindowAhead(part, max(batch - one.first_batch, 0) // self._per_step, one.plan)
            for one in ahead
        ]

    def windows_of_step(self, batch: int, part: int = 0) -> list[WindowOfStep]:
        """The window of the step of a batch.

        Parameters
        ----------
        batch
            Number of the batch.
        part
            What this run is called among several.
        """
        window = self._window_of(batch)
        assert window is not None, "there is no such batch"
        plan = window.plan.result()
        step = plan.first_step + (batch - window.first_batch) // self._per_step
        return [WindowOfStep(part, plan, step)]

    @property
    def first_kept(self) -> int:
        """The first batch whose position can still be told."""
        return self._windows[0].first_batch

    def neighbours(self, batch: int) -> Iterator[MicroBatch]:
        """The other micro-batches of the step of a batch, from the next slot on and around."""
        step, turn = divmod(batch, self._per_step)
        slot = self._topology.rank + turn * self._topology.world_size
        slots = self.planning.micro_batches_per_step
        for further in range(1, slots):
            yield self.micro_batch(step, (slot + further) % slots)

    def position_after(self, batches: int) -> Position:
        """The position after so many batches; inside a step, the position at its start.

        Raises
        ------
        PositionError
            When that is further back than any framework fetches ahead, or after the end.
        """
        for window in self._windows:
            end = self._end_of(window)
            if batches == end > window.first_batch:
                return self._end_position(window)
            if batches < end:
                # Windows beyond are not asked: after `close` they may never be planned.
                break
        window = self._window_of(batches)
        if window is None:
            if batches == self._end_of(self._windows[-1]):
                return self._end_position(self._windows[-1])
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

    def _end_position(self, window: _Window) -> Position:
        plan = window.plan.result()
        return plan.position_at(plan.num_steps)

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
