"""A config, opened as training would: the plan of all its blends, and what makes their batches."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.blend.several import read_blends
from playhead.loader.fusion import ending_notes, fused
from playhead.loader.part import open_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from playhead.blend.leaf import Leaf
    from playhead.blend.several import Blends
    from playhead.config import Options
    from playhead.fetch import FetchSpec
    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.part import Part
    from playhead.loader.run import Planning

__all__ = ["PlannedConfig", "open_planned", "plan_blends"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PlannedConfig:
    """A config whose columns are open: everything but a dataset and a position."""

    blends: Blends
    """What was read of it."""
    parts: Mapping[str, Part]
    """Its blends by name, opened; one without a name where it has no `multi_config`."""
    planning: Planning | FusedPlanning
    """What the plan is a function of, but for the position."""

    @property
    def options(self) -> Options:
        """The options of the whole."""
        return self.blends.options

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves of all blends, in the order in which `planning.leaves` has their columns."""
        return tuple(leaf for name in self.parts for leaf in self.blends.parts[name].leaves)

    @property
    def specs(self) -> list[FetchSpec]:
        """What the batches of each blend are made from."""
        return [part.spec for part in self.parts.values()]


def open_planned(
    config: str | Path | Mapping[str, Any] | Sequence[Any],
    *,
    world_size: int,
    section: str | None = None,
    strict: bool = False,
    overrides: Mapping[str, Any] | None = None,
    data_blend_dir: str | None = None,
    tokenizer: Any = None,
) -> PlannedConfig:
    """Read a config and open its columns; build what is missing.

    Parameters
    ----------
    config
        A YAML path, a mapping, a list of entries or an OmegaConf node.
    world_size
        How many processes train together.
    section
        Which section of a training config; its training section if None.
    strict
        Take every unknown key for an error.
    overrides
        Options that win over the config's.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    tokenizer
        What makes tokens of texts; None where nothing does.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    blends = read_blends(
        config,
        section=section,
        strict=strict,
        overrides={} if overrides is None else overrides,
        data_blend_dir=data_blend_dir,
    )
    return plan_blends(
        blends,
        config,
        tokenizer=tokenizer,
        world_size=world_size,
        data_blend_dir=data_blend_dir,
    )


def plan_blends(
    blends: Blends,
    config: Any,
    *,
    tokenizer: Any,
    world_size: int,
    data_blend_dir: str | None,
    is_speaker: bool = True,
) -> PlannedConfig:
    """Open the columns of blends that were read.

    Parameters
    ----------
    blends
        The blends.
    config
        What they were read from, for the command that a message names.
    tokenizer
        What makes tokens of texts; None where nothing does.
    world_size
        How many processes train together.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    is_speaker
        Whether this process tells people what they should know; the others are silent.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    parts: dict[str, Part] = {}
    for name, blend in blends.parts.items():
        parts[name] = open_part(
            blend,
            config,
            tokenizer=tokenizer,
            world_size=world_size,
            data_blend_dir=data_blend_dir,
            is_speaker=is_speaker,
        )
    plans = {name: part.planning for name, part in parts.items()}
    planning: Planning | FusedPlanning = next(iter(plans.values()))
    if blends.fusion is not None:
        planning = fused(plans, blends.fusion, blends.weights)
        for note in ending_notes(plans, blends.fusion) if is_speaker else ():
            warnings.warn(note, stacklevel=3)
    return PlannedConfig(blends=blends, parts=parts, planning=planning)
