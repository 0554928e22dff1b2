"""What a position of Playhead and its config say of the data, as a summary."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from playhead.errors import PlayheadError
from playhead.inspect.config_files import configs_beside
from playhead.inspect.replay import MOST_REPLAYED, draws_before, is_short, replayed
from playhead.inspect.sources import sources_of
from playhead.inspect.summary import Overall, Summary
from playhead.plan.opening import WINDOWS_OF_A_PASS
from playhead.plan.padding import Padding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from playhead.inspect.config_files import Asked
    from playhead.inspect.configured import Configured
    from playhead.inspect.positions import FoundPosition
    from playhead.inspect.sources import Sources

__all__ = ["summarise_own"]


def summarise_own(
    found: FoundPosition,
    *,
    checkpoint: str | Path,
    config: str | Path | None,
    asked: Asked,
    most_replayed: int = MOST_REPLAYED,
    notes: Sequence[str] = (),
) -> Summary:
    """Put together all that a position and a config say.

    Parameters
    ----------
    found
        The position.
    checkpoint
        What was asked to be looked at.
    config
        The config; None looks beside the checkpoint.
    asked
        How the config is read.
    most_replayed
        Draws that are planned again at most, for the padding of all steps and the steps left.
    notes
        What was said already.

    Raises
    ------
    ConfigError
        When a config that was given cannot be used.
    """
    said = list(notes)
    known = _configured(found, checkpoint, config, asked, said)
    first = 0
    parts: dict[str, Sources] = {}
    for name, position in found.parts.items():
        opened = None if known is None else known.parts.get(name)
        if known is not None and opened is None:
            said.append(f"the part {name} is not in the config")
        parts[name] = sources_of(position, opened, part=name, first=first, path=found.path)
        first += len(parts[name].rows)
        said += parts[name].notes
    for name in () if known is None else known.parts:
        if name not in found.parts:
            said.append(f"the part {name} is new: it is not in the position")
    if known is not None and not any(map(_has_common, parts.values())):
        said.append("no source of the config is in the position: is it the config of another run?")
    return Summary(
        checkpoint_input=str(checkpoint),
        checkpoint_metadata_loaded=found.where,
        config_path=None if known is None else known.path,
        generated_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        rows=tuple(row for part in parts.values() for row in part.rows),
        leaf_progress=tuple(one for part in parts.values() for one in part.progress),
        dataset_specs=tuple(spec for part in parts.values() for spec in part.specs),
        overall=_overall(found, parts, known, most_replayed, said),
        indexes_root=asked.indexes_root,
        index_pack_root=asked.index_pack_root,
        default_index_pack_root=asked.default_index_pack_root,
        notes=tuple(said),
    )


def _has_common(sources: Sources) -> bool:
    """Whether some source is both in the position and in the config."""
    declared = {spec.source_index for spec in sources.specs}
    return any(one.source_index in declared for one in sources.progress)


def _configured(
    found: FoundPosition,
    checkpoint: str | Path,
    config: str | Path | None,
    asked: Asked,
    notes: list[str],
) -> Configured | None:
    if config is not None:
        known = _read(config, found, asked)
        notes += known.notes
        return known
    refused: list[str] = []
    for beside in configs_beside(checkpoint):
        try:
            known = _read(beside, found, asked)
        except PlayheadError as error:
            refused.append(str(error))
            continue
        notes += known.notes
        return known
    notes += refused[:3]
    notes.append(
        "no config: sources are named by their keys, and items of windows before the running one"
        " are rows that were drawn, of which filters may have refused some. Give --config"
    )
    return None


def _read(config: str | Path, found: FoundPosition, asked: Asked) -> Configured:
    from playhead.inspect.configured import configured  # noqa: PLC0415  (imports torch)

    return configured(config, found, asked)


def _overall(
    found: FoundPosition,
    parts: Mapping[str, Sources],
    known: Configured | None,
    most_replayed: int,
    notes: list[str],
) -> Overall:
    position = next(iter(found.parts.values()))
    finite = found.finite if known is None or known.planning is None else known.planning.finite
    rows = [row for part in parts.values() for row in part.rows]
    # Hours of some sources alone are not those of the run.
    has_hours = all(part.is_complete for part in parts.values())
    padding, of = _padding(found, parts, known, most_replayed)
    can_replay = all(part.padding is not None for part in parts.values())
    if of != "all steps" and can_replay and _is_elsewhere(found, known, most_replayed):
        notes.append(
            "the plan made again from the start does not come here: options or data were changed,"
            " or passes were left in the middle; finished passes are counted as a whole"
        )
    return Overall(
        step=found.step,
        window=position.window % WINDOWS_OF_A_PASS,
        micro_batches_per_step=position.micro_batches_per_step,
        finite=finite,
        pass_=max((one.pass_ for one in found.parts.values() if one.shape.finite), default=0),
        seed=found.state["seed"],
        padding=padding,
        padding_of=of,
        hours=_sum([row.consumed_hours for row in rows]) if has_hours else None,
        hours_left=_sum([row.hours_left for row in rows]) if finite and has_hours else None,
        steps_left=_steps_left(found, known, most_replayed, notes) if finite else None,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def _padding(
    found: FoundPosition,
    parts: Mapping[str, Sources],
    known: Configured | None,
    most_replayed: int,
) -> tuple[float | None, str | None]:
    """The padding of all steps, else of the running window, and which of the two it is."""
    now = Padding()
    for part in parts.values():
        if part.padding is None:
            return None, None
        now += part.padding
    before: Padding | None = None
    if known is not None and known.planning is not None:
        before = _replayed(found, known.planning, most_replayed)
    if before is not None:
        return (before + now).share, "all steps"
    return now.share, None if now.share is None else "this window"


def _is_elsewhere(found: FoundPosition, known: Configured | None, most_replayed: int) -> bool:
    """Whether passes have ended, and were planned again in vain."""
    positions = found.parts.values()
    return (
        known is not None
        and known.planning is not None
        and any(one.shape.finite and one.pass_ for one in positions)
        and all(is_short(one, most_draws=most_replayed) for one in positions)
    )


def _replayed(found: FoundPosition, planning: Any, most_replayed: int) -> Padding | None:
    total = Padding()
    for name, position in found.parts.items():
        if name not in planning.parts:
            return None
        part = planning.parts[name].as_saved(position)
        one = replayed(position, part, most_draws=most_replayed)
        if one is None:
            return None
        total += one
    return total


def _steps_left(
    found: FoundPosition, known: Configured | None, most_replayed: int, notes: list[str]
) -> int | None:
    """Steps that a finite pass still has, as a resume would count them."""
    if known is None or known.planning is None or known.resumed is None:
        # Why it cannot go on is said among the notes.
        return None
    rows = sum(leaf.rows for one in found.parts.values() for leaf in one.leaves.values())
    done = sum(draws_before(one) for one in found.parts.values()) % max(rows, 1)
    if rows - done > most_replayed:
        notes.append(
            f"{rows - done:,} rows are left of the pass: how many steps that is was not counted"
            " (--replay-draws)"
        )
        return None
    planning: Any = known.planning
    try:
        return planning.steps_left(known.resumed)
    except PlayheadError:
        # Filters that accept nothing, which a resume would not have noticed yet.
        return None
