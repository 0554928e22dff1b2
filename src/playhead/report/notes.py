"""What people should know of a config beside its figures, the gravest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.loader.planned import PlannedConfig
    from playhead.report.figures import LeafFigures, PartFigures
    from playhead.report.windows import PlannedWindows

__all__ = ["notes_of"]

_MOST_NAMES = 5
_IN_ORDER = (
    "Nothing is shuffled (shuffle: false, as it is if nobody says it): rows come in declared order,"
    " and in every window batches of many short samples tend to come first."
)


def notes_of(
    planned: PlannedConfig, parts: Sequence[PartFigures], windows: Mapping[str, PlannedWindows]
) -> tuple[str, ...]:
    """Return what people should know, sentence by sentence.

    Parameters
    ----------
    planned
        The config.
    parts
        The figures of its blends.
    windows
        What was planned of each.
    """
    leaves = [leaf for part in parts for leaf in part.leaves]
    notes = [
        _named("has no rows", "have no rows", [one for one in leaves if not one.rows]),
        _named(
            "gives nothing: everything in it is refused",
            "give nothing: everything in them is refused",
            [one for one in leaves if one.rows and not one.accepted],
        ),
    ]
    if not planned.planning.finite:
        notes.append(
            _named(
                "has weight 0 and is never drawn",
                "have weight 0 and are never drawn",
                [one for one in leaves if one.rows and not one.weight],
            )
        )
        if not all(one.shape.shuffle for one in planned.planning.parts.values()):
            notes.append(_IN_ORDER)
    notes += [_of_windows(part, windows[part.name], planned) for part in parts]
    return tuple(note for note in notes if note)


def _named(one: str, several: str, leaves: Sequence[LeafFigures]) -> str:
    if not leaves:
        return ""
    names = ", ".join(leaf.name for leaf in leaves[:_MOST_NAMES])
    if len(leaves) > _MOST_NAMES:
        names += f" and {len(leaves) - _MOST_NAMES:,} more"
    return f"{names} {one if len(leaves) == 1 else several}."


def _of_windows(part: PartFigures, windows: PlannedWindows, planned: PlannedConfig) -> str:
    if windows.is_whole:
        return ""
    of = f" of {part.name}" if part.name else ""
    what = f"{len(windows.steps):,} windows with {windows.num_samples:,} samples"
    if planned.planning.parts[part.name].finite:
        return (
            f"A pass{of} is longer than what was planned, its first {what}: its number of steps is"
            " an estimate."
        )
    return f"The blend{of} does not end: figures of batches are those of its first {what}."
