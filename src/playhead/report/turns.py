"""Whose turn a step is, for configs of several blends: without planning any window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.loader.fusion import FusedPlanning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.loader.fusion_position import FusedPosition
    from playhead.loader.run import Planning
    from playhead.plan import Position

__all__ = ["positions_of", "step_numbers", "turns_from"]

# Further steps of a part that rarely has its turn are numbered by its share.
_MOST_TURNS = 1_000_000


def positions_of(position: Any) -> Mapping[str, Position]:
    """Return where each blend stands, by name."""
    return getattr(position, "parts", {"": position})


def turns_from(planning: FusedPlanning, position: FusedPosition) -> Iterator[tuple[int, ...]]:
    """Give the numbers of the parts that each step is made of, until the pass ends.

    Parameters
    ----------
    planning
        The plan.
    position
        Where the steps begin.
    """
    rule, size = planning.rule, len(planning.parts)
    candidates = rule.candidates(size)
    left = [
        part.steps_left(position.parts[name]) if part.finite else None
        for name, part in planning.parts.items()
    ]
    number = position.step - position.begin
    while True:
        live = [part for part in candidates if left[part] != 0]
        taken = rule.taken(position.seed, position.pass_, number, live)
        if not taken:
            return
        yield taken
        for part in taken:
            steps = left[part]
            left[part] = None if steps is None else steps - 1
        number += 1


def step_numbers(
    planning: Planning | FusedPlanning,
    position: Any,
    counts: Mapping[str, int],
) -> dict[str, Sequence[int]]:
    """Return the numbers that the first steps of each part have in training.

    Parameters
    ----------
    planning
        The plan.
    position
        Where the steps begin.
    counts
        How many steps of each part.
    """
    if not isinstance(planning, FusedPlanning):
        return {name: range(position.step, position.step + count) for name, count in counts.items()}
    names = list(planning.parts)
    found: dict[str, list[int]] = {name: [] for name in names}
    missing = sum(counts[names[part]] > 0 for part in planning.rule.candidates(len(names)))
    last = position.step + _MOST_TURNS
    for step, taken in enumerate(turns_from(planning, position), position.step):
        for part in taken:
            name = names[part]
            if len(found[name]) < counts[name]:
                found[name].append(step)
                missing -= len(found[name]) == counts[name]
        if not missing or step >= last:
            break
    for name, count in counts.items():
        share = planning.shares[name] or 1.0
        first = len(found[name])
        found[name] += [position.step + round(number / share) for number in range(first, count)]
    return dict(found)
