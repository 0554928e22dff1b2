"""The figures of one blend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.effort import Effort
from playhead.report.buckets import buckets_of, limit_text
from playhead.report.figures import (
    BlendPoint,
    Distribution,
    PartFigures,
    StepFigures,
    WorstBatch,
)
from playhead.report.leaves import leaves_of
from playhead.report.localities import localities_of
from playhead.report.passes import passes_over
from playhead.report.units import US_PER_HOUR, in_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.loader.part import Part
    from playhead.loader.run import Planning
    from playhead.report.length_counts import LengthCounts
    from playhead.report.passes import Passes
    from playhead.report.windows import PlannedWindows, Stretch
    from playhead.report.worst import Worst

__all__ = ["PartSource", "part_figures"]

_MOST_POINTS = 200
_US_PER_SECOND = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PartSource:
    """One blend, and what the plan is a function of."""

    name: str
    """What the config calls it; empty where it is all there is."""
    part: Part
    """What was opened of it."""
    seed: int
    """The seed that it is planned with."""
    share: float
    """Its share of the steps, 0 to 1."""
    steps: Sequence[int]
    """The number in training of each of its steps that were planned."""

    @property
    def planning(self) -> Planning:
        """Its plan."""
        return self.part.planning

    @property
    def leaves(self) -> Sequence[Leaf]:
        """Its leaves."""
        return self.part.spec.leaves


def part_figures(source: PartSource, windows: PlannedWindows, world_size: int) -> PartFigures:
    """Return the figures of one blend.

    Parameters
    ----------
    source
        The blend.
    windows
        The windows that were planned of it.
    world_size
        How many ranks share a step.
    """
    planning = source.planning
    batching, batches = planning.batching, windows.batches
    passes = passes_over(planning)
    return PartFigures(
        name=source.name,
        unit="tokens" if batching.in_tokens else "seconds",
        share=source.share,
        leaves=leaves_of(planning, source.leaves, source.part.dropped, passes, windows),
        distributions=_distributions(passes),
        buckets=buckets_of(batches),
        fixed_sizes=batches.has_fixed_sizes,
        limit=limit_text(batching),
        windows=len(windows.steps),
        steps=windows.num_steps,
        samples=windows.num_samples,
        dropped=windows.dropped,
        padding=batches.padding,
        unused_budget=batches.unused_budget,
        small_batches=batches.small_batches,
        imbalance=batches.imbalance(batches.cost, world_size),
        imbalance_linear=batches.imbalance(batches.linear, world_size),
        imbalance_quadratic=batches.imbalance(batches.quadratic, world_size),
        most_copies=windows.most_copies,
        step_costs=_step_costs(windows, source.steps, world_size),
        blend=tuple(_point(one, source.steps[one.first_step]) for one in windows.stretches),
        localities=localities_of(source.part, source.seed),
        worst=tuple(_worst(one, source, world_size) for one in windows.worst),
    )


def _distributions(passes: Passes) -> tuple[Distribution, ...]:
    found = [_distribution(passes.seconds, "seconds", _US_PER_SECOND, US_PER_HOUR)]
    if passes.token_counts is not None:
        found.append(_distribution(passes.token_counts, "tokens", 1, 1000))
    return tuple(one for one in found if one is not None)


def _distribution(counts: LengthCounts, unit: str, length: int, amount: int) -> Distribution | None:
    bars = counts.bars()
    if bars is None:
        return None
    return Distribution(
        unit=unit,
        edges=tuple((bars.edges / length).tolist()),
        samples=tuple(np.rint(bars.samples).astype(np.int64).tolist()),
        amount=tuple((bars.amount / amount).tolist()),
        half=counts.below(0.5) / length,
        most=counts.below(0.95) / length,
        half_amount=counts.amount_below(0.5) / length,
    )


def _step_costs(windows: PlannedWindows, numbers: Sequence[int], world_size: int) -> StepFigures:
    ranks = windows.batches.by_rank(windows.batches.cost, world_size)[: windows.steps[0]]
    mean = float(ranks.mean()) if ranks.size else 1.0
    chosen = np.unique(np.linspace(0, max(len(ranks) - 1, 0), _MOST_POINTS).astype(np.int64))
    ranks = ranks[chosen] / (mean or 1.0) if ranks.size else ranks
    return StepFigures(
        number=tuple(numbers[step] for step in chosen[: len(ranks)].tolist()),
        mean=tuple(ranks.mean(axis=1).tolist()),
        least=tuple(ranks.min(axis=1).tolist()),
        most=tuple(ranks.max(axis=1).tolist()),
    )


def _point(stretch: Stretch, first_step: int) -> BlendPoint:
    total = max(float(stretch.samples.sum()), 1.0)
    return BlendPoint(
        first_step=first_step,
        steps=stretch.steps,
        shares=tuple((stretch.samples / total).tolist()),
    )


def _worst(one: Worst, source: PartSource, world_size: int) -> WorstBatch:
    batching = source.planning.batching
    limit = Effort.of(batching).limit
    in_tokens = batching.in_tokens
    return WorstBatch(
        step=source.steps[one.step],
        slot=one.slot,
        rank=one.slot % world_size,
        samples=one.bulk.samples,
        longest=in_unit(one.bulk.longest, in_tokens=in_tokens),
        total=in_unit(one.bulk.padded, in_tokens=in_tokens),
        tokens=one.tokens,
        cost=None if limit is None else one.cost / limit,
        leaves=tuple(source.leaves[leaf].name for leaf in one.leaves),
    )
