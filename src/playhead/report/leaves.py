"""The sources of a blend: what a pass over each gives, and what share of training it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.slices import rows_of_pass, slice_length_of
from playhead.report.figures import LeafFigures
from playhead.report.units import US_PER_HOUR, in_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.loader.run import Planning
    from playhead.plan import LeafColumns
    from playhead.report.passes import Passes
    from playhead.report.windows import PlannedWindows

__all__ = ["leaves_of"]


def leaves_of(
    planning: Planning,
    leaves: Sequence[Leaf],
    dropped: Sequence[Mapping[str, int]],
    passes: Passes,
    windows: PlannedWindows,
) -> tuple[LeafFigures, ...]:
    """Return the figures of every leaf.

    Parameters
    ----------
    planning
        The plan of the blend.
    leaves
        Its leaves as the config has them.
    dropped
        For each the rows that were left out of its index, by reason.
    passes
        What a pass over each gives.
    windows
        The windows that were planned.
    """
    whole = windows.whole
    weights = np.array([leaf.weight for leaf in planning.leaves], dtype=np.float64)
    shares = _shares(weights)
    realised, realised_hours = _shares(whole.samples), _shares(whole.length_us)
    steps = _steps_per_pass(planning, windows, shares)
    in_tokens = planning.batching.in_tokens
    refused = {reason: counts.tolist() for reason, counts in passes.refused.items()}
    has_audio = bool(whole.length_us.any())
    found: list[LeafFigures] = []
    for number, (leaf, columns) in enumerate(zip(leaves, planning.leaves, strict=True)):
        all_us = _audio_us(columns)
        accepted = int(passes.accepted[number])
        measured = bool(accepted) and (in_tokens or all_us is not None)
        reasons = dict(dropped[number])
        for reason, counts in refused.items():
            if counts[number]:
                reasons[reason] = reasons.get(reason, 0) + counts[number]
        found.append(
            LeafFigures(
                name=leaf.name,
                key=leaf.key,
                type=leaf.type,
                rows=columns.num_rows,
                accepted=accepted,
                refused=reasons,
                hours=None if all_us is None else all_us / US_PER_HOUR,
                accepted_hours=(
                    None if all_us is None else float(passes.length_us[number]) / US_PER_HOUR
                ),
                tokens=None if passes.tokens is None else round(float(passes.tokens[number])),
                shortest=in_unit(int(passes.shortest[number]), in_tokens=in_tokens)
                if measured
                else None,
                median=in_unit(float(passes.median[number]), in_tokens=in_tokens)
                if measured
                else None,
                longest=in_unit(int(passes.longest[number]), in_tokens=in_tokens)
                if measured
                else None,
                weight=float(shares[number]),
                realised=float(realised[number]),
                realised_hours=float(realised_hours[number]) if has_audio else None,
                steps_per_pass=steps[number],
            )
        )
    return tuple(found)


def _audio_us(leaf: LeafColumns) -> int | None:
    """Audio of all rows (µs); None where nothing is audio."""
    if leaf.kind == "text":
        return None
    total = int(np.maximum(leaf.duration_us, 0).sum())
    return None if leaf.kind == "conversation" and not total else total


def _shares(amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    total = float(amounts.sum())
    return amounts / total if total else np.zeros_like(amounts)


def _steps_per_pass(
    planning: Planning, windows: PlannedWindows, shares: NDArray[np.float64]
) -> list[float | None]:
    """Steps in which each leaf is drawn from end to end once, as often as its weight says."""
    if planning.finite:
        return [float(windows.steps_of_pass)] * len(shares)
    draws = float(windows.draws.sum()) / max(windows.num_steps, 1)
    rows = [rows_of_pass(leaf, slice_length_of(leaf, planning.shape)) for leaf in planning.leaves]
    return [
        count / (share * draws) if share * draws > 0 and count else None
        for count, share in zip(rows, shares.tolist(), strict=True)
    ]
