"""The window that a step lies in, found by planning one window after another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import ConfigError, PlanError
from playhead.loader.fusion import FusedPlanning
from playhead.report.turns import turns_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.loader.run import Planning
    from playhead.plan import Position, WindowPlan

__all__ = ["FoundStep", "FoundWindow", "Search"]


class FoundWindow(NamedTuple):
    """Where a step lies in one blend."""

    part: str
    """The blend; empty where the config is one blend."""
    plan: WindowPlan
    """The window."""
    step: int
    """Its step, as the window counts them."""


class FoundStep(NamedTuple):
    """Where a step lies."""

    pass_number: int
    """Pass of a finite loader; 0 of an endless one."""
    windows: tuple[FoundWindow, ...]
    """The window of each blend that it is made of."""


class Search:
    """Finds steps; goes from pass to pass as a loader does that is iterated again and again.

    Parameters
    ----------
    planning
        What the plan is a function of.
    most_windows
        After so many windows the search gives up.
    told
        Gets the number of the step that every window begins with.
    """

    def __init__(
        self,
        planning: Planning | FusedPlanning,
        most_windows: int,
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._planning: Any = planning
        self._most = most_windows
        self._told = told
        self._windows = 0

    def step(self, position: Any, step: int) -> FoundStep:
        """Find a step.

        Parameters
        ----------
        position
            Where to begin.
        step
            The step, counted from the start of training.

        Raises
        ------
        ConfigError
            If it lies before the position, or too far behind it.
        PlanError
            If a pass has no step.
        """
        if step < position.step:
            raise ConfigError(
                f"step {step:,} lies before the position to begin with, which is at step"
                f" {position.step:,}",
                fix="Begin with an earlier one, or with the start of training",
            )
        while True:
            found, position = self._in_pass(position, step)
            if found is not None:
                return FoundStep(position.pass_ if self._planning.finite else 0, found)

    def _in_pass(self, position: Any, step: int) -> tuple[tuple[FoundWindow, ...] | None, Any]:
        """The windows of a step; where its pass is a later one, none, and the start of the next."""
        if isinstance(self._planning, FusedPlanning):
            return self._in_fused_pass(self._planning, position, step)
        plan, steps = self._walk(self._planning, position, step - position.step, step)
        if steps is not None:
            return (FoundWindow("", plan, steps),), position
        return None, self._next_pass(position, plan.position_at(plan.num_steps))

    def _in_fused_pass(
        self, planning: FusedPlanning, position: Any, step: int
    ) -> tuple[tuple[FoundWindow, ...] | None, Any]:
        names = list(planning.parts)
        before = dict.fromkeys(names, 0)
        number = position.step
        for taken in turns_from(planning, position):
            if number == step:
                windows: list[FoundWindow] = []
                for name in [names[part] for part in taken]:
                    part, own = planning.parts[name], position.parts[name]
                    plan, steps = self._walk(part, own, before[name], step)
                    assert steps is not None
                    windows.append(FoundWindow(name, plan, steps))
                return tuple(windows), position
            for part in taken:
                before[names[part]] += 1
            number += 1
        parts = {
            name: self._position_after(part, position.parts[name], before[name], step)
            for name, part in planning.parts.items()
        }
        return None, self._next_pass(position, replace(position, step=number, parts=parts))

    def _next_pass(self, begin: Any, end: Any) -> Any:
        if end.step == begin.step:
            raise PlanError(
                f"pass {begin.pass_} has no step",
                fix="Widen the filters, or set drop_last to false",
            )
        return self._planning.start(
            seed=end.latest_seed, pass_=begin.pass_ + 1, step=end.step, before=end
        )

    def _position_after(
        self, planning: Planning, position: Position, steps: int, wanted: int
    ) -> Position:
        if not steps:
            return position
        plan, last = self._walk(planning, position, steps - 1, wanted)
        assert last is not None
        return plan.position_at(last + 1)

    def _walk(
        self, planning: Planning, position: Position, steps: int, wanted: int
    ) -> tuple[WindowPlan, int | None]:
        """The window of the step so many steps ahead, and which of its steps that is.

        None, and the last window, where a finite pass ends before it.
        """
        while True:
            if self._windows == self._most:
                raise ConfigError(
                    f"step {wanted:,} lies behind step {position.step:,}, which {self._most:,}"
                    " windows lead to: they are planned one after another",
                    fix="Begin with a checkpoint near it (--from), or let more windows be planned",
                )
            self._windows += 1
            self._told(position.step)
            plan = planning.window(position)
            count = plan.num_steps - plan.first_step
            if steps < count:
                return plan, plan.first_step + steps
            if plan.is_end:
                return plan, None
            steps -= count
            position = plan.position_at(plan.num_steps)
