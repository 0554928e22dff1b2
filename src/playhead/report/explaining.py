"""From a config to what one of its steps trains on: the call that users make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.inspect.loading import chosen, load_checkpoint
from playhead.loader.loader import Loader
from playhead.loader.planned import open_planned
from playhead.loader.ranks import Topology
from playhead.loader.settings import workers_of
from playhead.report.finding import Search
from playhead.report.step import StepContents
from playhead.report.step_making import StepOfBlend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from playhead.loader.planned import PlannedConfig
    from playhead.report.step import StepBatch, StepLeaf

__all__ = ["explain_step", "step_of"]

_MOST_WINDOWS = 1_000


def explain_step(
    config: str | Path | Mapping[str, Any] | Sequence[Any],
    step: int,
    *,
    rank: int | None = None,
    world_size: int = 1,
    section: str | None = None,
    tokenizer: Any = None,
    state: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    read_ids: bool = False,
    most_windows: int = _MOST_WINDOWS,
    strict: bool = False,
    data_blend_dir: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    **overrides: Any,
) -> StepContents:
    """Say what a step trains on and why, without reading audio.

    Windows are planned one after another up to the step, about half a second for a million samples;
    from a state near it that is one window.

    Parameters
    ----------
    config
        What `playhead.dataloader` takes.
    step
        The step, counted from the start of training. A finite loader goes on with its next pass.
    rank
        The rank whose batches are wanted; all of them if None.
    world_size
        How many ranks share a step.
    section, tokenizer, strict, data_blend_dir
        As `playhead.dataloader` takes them.
    state
        What `Loader.state_dict` gave at or before the step; the start of training if None.
    checkpoint
        In its place a file or folder that holds such a state, as `playhead inspect` reads them.
    read_ids
        Read what rows call their samples.
    most_windows
        How many windows are planned at most.
    say
        Told what is being done, in a few words.
    **overrides
        Options that win over the config's.

    Raises
    ------
    ConfigError
        When the step lies before the state, or too far behind it, or a checkpoint holds no state.
    TopologyError
        When the world size does not divide the step of the config; it names those that do.
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    if checkpoint is not None:
        state = _state_in(checkpoint)
    planned = open_planned(
        config,
        world_size=world_size,
        section=section,
        strict=strict,
        overrides=overrides,
        data_blend_dir=data_blend_dir,
        tokenizer=tokenizer,
    )
    return step_of(
        planned,
        step,
        rank=rank,
        world_size=world_size,
        state=state,
        read_ids=read_ids,
        most_windows=most_windows,
        say=say,
    )


def step_of(
    planned: PlannedConfig,
    step: int,
    *,
    rank: int | None = None,
    world_size: int = 1,
    state: Mapping[str, Any] | None = None,
    read_ids: bool = False,
    most_windows: int = _MOST_WINDOWS,
    say: Callable[[str], None] = lambda _: None,
) -> StepContents:
    """Say what a step of a config that is open trains on; see `explain_step`.

    Raises
    ------
    PlayheadError
        As `explain_step`.
    """
    if rank is not None and not 0 <= rank < world_size:
        raise ConfigError(
            f"rank {rank} does not exist in a world of {world_size}",
            fix="Use 0 ≤ rank < world_size",
        )
    loader = _loader(planned, world_size)
    if state is not None:
        loader.load_state_dict(state)
    position = loader.next_position()
    planning, per_step = loader.planning, loader.micro_batches_per_step
    search = Search(
        planning, most_windows, lambda first: say(f"planning the window from step {first:,} on")
    )
    found = search.step(position, step)
    slots = range(per_step) if rank is None else range(rank, per_step, world_size)
    blends = [
        StepOfBlend(window, planned.parts[window.part], world_size) for window in found.windows
    ]
    batches: list[StepBatch] = []
    leaves: list[StepLeaf] = []
    for blend in blends:
        made = [blend.batch(slot, read_ids=read_ids) for slot in slots]
        leaves += blend.leaves(made)
        batches += made
    return StepContents(
        step=step,
        pass_number=found.pass_number,
        seed=position.latest_seed,
        world_size=world_size,
        micro_batches_per_step=per_step,
        rank=rank,
        windows=tuple(blend.window for blend in blends),
        leaves=tuple(sorted(leaves, key=lambda leaf: -leaf.samples)),
        batches=tuple(sorted(batches, key=lambda batch: batch.slot)),
    )


def _state_in(checkpoint: str | Path) -> Mapping[str, Any]:
    found = chosen(load_checkpoint(checkpoint), None)
    if found is None:
        raise ConfigError(
            "there is no position of Playhead in this checkpoint",
            where=str(checkpoint),
            fix="Name one that was saved with Playhead's loader",
        )
    return found.state


def _loader(planned: PlannedConfig, world_size: int) -> Loader:
    """A loader that is never iterated: it says where training stands, as any other would."""
    options = planned.options

    def nothing(_: Any) -> None:
        raise AssertionError

    return Loader(
        planning=planned.planning,
        fetch=nothing,
        topology=Topology(rank=0, world_size=world_size),
        workers=workers_of(options),
        seed=options.seed,
        fixed_step=options.micro_batches_per_step is not None,
        on_change=options.on_change,
    )
