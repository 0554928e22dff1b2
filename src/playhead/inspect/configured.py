"""The config that belongs to a checkpoint, and what it says of a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.blend.several import read_blends
from playhead.errors import ConfigError, PlayheadError
from playhead.inspect.opening import open_blend
from playhead.loader.fusion import fused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from playhead.blend.several import Blends
    from playhead.inspect.config_files import Asked
    from playhead.inspect.opening import OpenedBlend
    from playhead.inspect.positions import FoundPosition
    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.run import Planning

__all__ = ["Configured", "configured"]

_ALL = (True, 1.0)
_EVALUATION = ("validation_ds", "test_ds", "validation", "val", "test")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Configured:
    """A config that was read for a position."""

    path: str
    """The file."""
    parts: Mapping[str, OpenedBlend]
    """Its blends by name, with the columns that are there."""
    planning: Planning | FusedPlanning | None
    """What its plan is a function of; None where something is missing."""
    resumed: Any
    """The position that a resume would go on from; None where it would stop, or nothing says it."""
    notes: tuple[str, ...]
    """What people should know."""


def configured(config: str | Path, found: FoundPosition, asked: Asked) -> Configured:
    """Read a config for a position; nothing is built.

    Parameters
    ----------
    config
        A YAML or JSON file.
    found
        The position.
    asked
        How it is read.

    Raises
    ------
    ConfigError
        When the config cannot be used, or is of several blends and the position of one (or the
        other way round).
    """
    blends = _blends(config, found, asked)
    if (blends.fusion is not None) != found.is_fused:
        kinds = ("one blend", "several blends (multi_config)")
        raise ConfigError(
            f"the position is of {kinds[found.is_fused]}, and the config has"
            f" {kinds[not found.is_fused]}",
            where=str(config),
            fix="Name the section that it was saved with as --section",
        )
    step = next(iter(found.parts.values())).micro_batches_per_step
    parts = {
        name: open_blend(blend, tokenizer=asked.tokenizer, micro_batches_per_step=step)
        for name, blend in blends.parts.items()
    }
    notes = [note for part in parts.values() for note in part.notes]
    missing = [one for part in parts.values() for one in part.missing]
    if missing:
        rest = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        notes.append(
            f"{missing[0]}{rest}: hours and tokens are not known, nor what filters refused of it."
            f" `playhead index {config}` makes what is missing"
        )
    passes = [one.pass_ for one in found.parts.values() if one.shape.finite]
    if blends.fusion == "zip" and any(passes):
        notes.append(
            "passes of `sampler_fusion: zip` end with the shortest part: of the others, passes that"
            " were finished are counted as a whole, although the rest of them was not read"
        )
    planning = _planning(blends, parts)
    resumed: Any = None
    if planning is not None:
        planning, resumed, said = _resumed(found, planning, blends)
        notes += said
    return Configured(
        path=str(config), parts=parts, planning=planning, resumed=resumed, notes=tuple(notes)
    )


def _blends(config: str | Path, found: FoundPosition, asked: Asked) -> Blends:
    """The blends of the section that was asked for, else of the one that fits best."""
    best: Blends | None = None
    refused: ConfigError | None = None
    try:
        best = _read(config, asked.section, asked)
    except ConfigError as error:
        refused = error
    if best is not None and _fit(best, found) == _ALL:
        return best
    for section in _EVALUATION if asked.section is None else ():
        try:
            other = _read(config, section, asked)
        except PlayheadError:
            # There is none of that name.
            continue
        has_any, _ = fit = _fit(other, found)
        if has_any if best is None else fit > _fit(best, found):
            best = other
    if best is None:
        assert refused is not None
        raise refused
    return best


def _fit(blends: Blends, found: FoundPosition) -> tuple[bool, float]:
    """How well a section fits a position: both end or do not, and have the same leaves."""
    keys = {leaf.key for blend in blends.parts.values() for leaf in blend.leaves}
    same = len(keys & found.keys) / len(keys | found.keys)
    finite = all(blend.finite for blend in blends.parts.values())
    return same > 0 and finite == found.finite, same


def _read(config: str | Path, section: str | None, asked: Asked) -> Blends:
    overrides = {
        name: value
        for name in ("indexes_root", "index_pack_root")
        if (value := getattr(asked, name)) is not None
    }

    def read() -> Blends:
        return read_blends(
            str(config),
            section=section,
            overrides=overrides,
            data_blend_dir=asked.data_blend_dir,
        )

    blends = read()
    if asked.default_index_pack_root is not None and blends.options.index_pack_root is None:
        overrides["index_pack_root"] = asked.default_index_pack_root
        return read()
    return blends


def _planning(blends: Blends, parts: Mapping[str, OpenedBlend]) -> Planning | FusedPlanning | None:
    plans = {name: part.planning for name, part in parts.items() if part.planning is not None}
    if len(plans) < len(parts):
        return None
    if blends.fusion is not None:
        return fused(plans, blends.fusion, blends.weights)
    return next(iter(plans.values()))


def _resumed(found: FoundPosition, planning: Any, blends: Blends) -> tuple[Any, Any, list[str]]:
    """The plan and the position of a resume with this config, and what it would say of it."""
    notes: list[str] = []
    seed = blends.options.seed
    try:
        position = planning.position_of(found.state)
        if isinstance(seed, int) and position.latest_seed != seed:
            notes.append(
                f"the position has seed {position.latest_seed} and the config has {seed}: a resume"
                " refuses that, unless it is told to take the new one"
            )
        saved = planning.as_saved(position)
        position, said = saved.resume(position, reseed=None, on_change="error")
    except PlayheadError as error:
        return planning, None, [*notes, f"a resume would stop: {error}"]
    return saved, position, [*notes, *(f"a resume would say: {note}" for note in said)]
