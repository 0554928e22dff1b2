"""From a state that was saved to what a loader goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import PositionError
from playhead.loader.seeds import resolve_seed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.loader.ranks import Topology
    from playhead.plan.resume import OnChange

__all__ = ["Restored", "restore"]


class Restored(NamedTuple):
    """What a loader goes on with."""

    planning: Any
    """What the plan is a function of from now on."""
    position: Any
    """Where it stands."""
    notes: tuple[str, ...]
    """What people should be told."""


def restore(
    state: Mapping[str, Any],
    planning: Any,
    topology: Topology,
    *,
    asked_seed: int | str,
    reseed: bool,
    fixed_step: bool,
    on_change: OnChange,
) -> Restored:
    """Read a state for the present config and ranks.

    Parameters
    ----------
    state
        What `Loader.state_dict` gave, on any number of ranks.
    planning
        What the plan is a function of by the present config.
    topology
        The present ranks.
    asked_seed
        The config's seed.
    reseed
        Take the config's seed from the next window on, where the state has another.
    fixed_step
        Whether the size of a step was asked for, or is the state's where that can be shared.
    on_change
        What a leaf whose data changed means: `error`, or `restart_pass`.

    Raises
    ------
    PositionError
        When the state is not one of ours, of another version, of changed data or another seed.
    TopologyError
        When the world size does not divide the step.
    """
    position = planning.position_of(state)
    present, saved = planning.micro_batches_per_step, position.micro_batches_per_step
    notes: list[str] = []
    if not fixed_step and saved != present:
        present = topology.world_size if saved % topology.world_size else saved
    if present != saved and not fixed_step:
        notes.append(
            f"the state has {saved} micro-batches a step, which {present} ranks cannot share: a"
            f" step is now {present}. To keep the step, use a world size that divides it, and set"
            " micro_batches_per_step in the config."
        )
    planning = planning.with_step(present).as_saved(position)
    new_seed: int | None = None
    if reseed:
        new_seed = resolve_seed(asked_seed, topology)
    elif isinstance(asked_seed, int) and position.latest_seed != asked_seed:
        raise PositionError(
            f"the state has seed {position.latest_seed} and the config has {asked_seed}",
            fix="Use the state's seed, or load with reseed=True to change it from the next"
            " window on",
        )
    position, more = planning.resume(position, reseed=new_seed, on_change=on_change)
    return Restored(planning, position, (*notes, *more))
