"""How much of what was trained on was padding: of all steps where they can be planned again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from playhead.errors import PlanError, PositionError
from playhead.plan import plan_window, start
from playhead.plan.opening import WINDOWS_OF_A_PASS
from playhead.plan.padding import Padding

if TYPE_CHECKING:
    from playhead.loader.run import Planning
    from playhead.plan import Position

__all__ = ["MOST_REPLAYED", "draws_before", "is_short", "replayed"]

MOST_REPLAYED: Final = 4_000_000
"""Draws that are planned again at most: some two seconds."""

# A window costs something however small it is.
_DRAWS_OF_A_WINDOW = 1000


def draws_before(position: Position) -> int:
    """Rows that were drawn before the running window, as far as a position tells."""
    return sum(one.pass_ * one.rows + one.done for one in position.leaves.values())


def is_short(position: Position, *, most_draws: int) -> bool:
    """Whether all windows before the running one take no more than so many draws.

    Parameters
    ----------
    position
        Where training stands.
    most_draws
        How many draws it may take.
    """
    windows = position.window % WINDOWS_OF_A_PASS
    return draws_before(position) + windows * _DRAWS_OF_A_WINDOW <= most_draws


def replayed(position: Position, planning: Planning, *, most_draws: int) -> Padding | None:
    """Plan all windows before the running one again, with the present data and options.

    Parameters
    ----------
    position
        Where training stands.
    planning
        What its plan is a function of, as options are now.
    most_draws
        How many draws it may take.

    Returns
    -------
    Padding | None
        None where it would take more, or where the run went another way: then the position is not
        where the plan arrives.
    """
    if not is_short(position, most_draws=most_draws):
        return None
    target = _opened(position)
    leaves, shape, batching = planning.leaves, planning.shape, planning.batching
    try:
        at = start(leaves, shape, batching, seed=position.seed)
        total = Padding()
        while at.window < target.window and at.step < target.step:
            plan = plan_window(at, leaves, shape, batching)
            total += Padding.of(plan.stats.batches)
            after = plan.position_at(plan.num_steps)
            if plan.is_end and _opened(after) != target:
                step, pass_ = after.step, at.pass_ + 1
                after = start(leaves, shape, batching, seed=at.seed, pass_=pass_, step=step)
            at = after
    except (PlanError, PositionError):
        return None
    return total if _opened(at) == target else None


def _opened(position: Position) -> Position:
    """The position at the start of its window."""
    first = position.chain[0]
    return replace(
        position,
        step=position.step - sum(link.steps for link in position.chain),
        read=None,
        next_seed=None,
        chain=(replace(first, steps=0, further=0),),
    )
