"""How long runs of a validation are, chosen from the plan before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, TopologyError
from playhead.loader.ranks import Topology
from playhead.validate.answer import said
from playhead.validate.options import USUAL_STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.run import Planning

__all__ = ["Extent", "check_resumed_ranks", "choose_extent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """How many batches the baseline gives each rank, and where it is stopped."""

    steps: int
    """Batches of each rank."""
    checkpoint_at: int
    """The batch of each rank, from 0, after which the state is saved."""
    is_whole_pass: bool
    """Whether the pass is over after them."""


def choose_extent(
    planning: Planning | FusedPlanning,
    *,
    seed: int,
    ranks: int,
    steps: int | None,
    checkpoint_at: int | None,
    whole_pass: bool,
) -> Extent:
    """Choose how long runs are: a pass, at most 200 batches; stopped after three quarters.

    A window is some 100 steps, so that a run of 200 is stopped inside its second: only there does a
    state hold how far every source has been drawn.

    Parameters
    ----------
    planning
        What is planned for so many ranks.
    seed
        What everything random follows from.
    ranks
        How many ranks the baseline has.
    steps
        Batches of each rank; None chooses.
    checkpoint_at
        The batch after which the state is saved; None takes that after three quarters.
    whole_pass
        Whether a pass is gone through, however long it is.

    Raises
    ------
    ConfigError
        If the data have no end and a whole pass is asked for, or so many batches besides it, or a
        run is too short to be stopped in between.
    TopologyError
        If so many ranks cannot share a step; its exit code is 2.
    """
    if whole_pass and not planning.finite:
        raise ConfigError(
            "the data have no end, and so no whole pass",
            fix="Leave out --whole-pass, or --no-force-finite",
        )
    if whole_pass and steps is not None:
        raise ConfigError(
            f"--whole-pass goes through a pass, and --steps {steps} ends before or after it",
            fix="Give one of them",
        )
    per_step = _batches_per_step(planning.micro_batches_per_step, ranks)
    start: Any = planning.start(seed=seed, pass_=0, step=0)
    run = planning.run(start, Topology(rank=0, world_size=ranks))
    try:
        asked = steps or USUAL_STEPS
        # To count a pass is to plan all of it: where it is longer than is asked for, nobody does.
        counts = planning.finite and (whole_pass or next(run.batches(asked), None) is None)
        total = run.count() if counts else asked
    finally:
        run.close()
    chosen = total if whole_pass else min(asked, total)
    whole_steps = chosen // per_step
    if checkpoint_at is None and whole_steps < 2:
        raise ConfigError(
            f"each of {said(ranks, 'rank')} has {said(chosen, 'batch', several='batches')}, and two"
            " optimizer steps, the fewest that a run can be stopped between, take"
            f" {2 * per_step}",
            fix="Use fewer --ranks, smaller batches, more data or more --steps",
        )
    if checkpoint_at is not None and (checkpoint_at // per_step + 1) * per_step >= chosen:
        raise ConfigError(
            f"a rank has {said(chosen, 'batch', several='batches')}, and after batch"
            f" {checkpoint_at}, counted from 0, no batch is left that a resumed run could be"
            " compared with",
            fix="Use a lower --checkpoint-at, more --steps, or more data",
        )
    late = whole_steps * 3 // 4 * per_step - 1
    return Extent(
        steps=chosen,
        checkpoint_at=late if checkpoint_at is None else checkpoint_at,
        is_whole_pass=counts and chosen == total,
    )


def check_resumed_ranks(ranks: Sequence[int], micro_batches: int | None) -> None:
    """See whether a config can be resumed on such ranks.

    Parameters
    ----------
    ranks
        Numbers of ranks.
    micro_batches
        What the config says of `micro_batches_per_step`; None lets the step follow the ranks.

    Raises
    ------
    TopologyError
        If any of them cannot share a step; its exit code is 2.
    """
    if micro_batches is not None:
        for number in ranks:
            _batches_per_step(micro_batches, number)


def _batches_per_step(micro_batches: int, ranks: int) -> int:
    """How many batches of a step each rank is given."""
    if micro_batches % ranks:
        error = TopologyError(
            f"micro_batches_per_step is {micro_batches}, which {ranks} ranks cannot share",
            fix="Use numbers of ranks that divide it",
        )
        error.exit_code = 2
        raise error
    return micro_batches // ranks
