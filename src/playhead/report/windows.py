"""The windows that a report looks at, planned one after another and kept as sums."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.plan.batch_columns import BatchColumns
from playhead.report.worst import Worst, worst_of, worst_of_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.loader.run import Planning
    from playhead.plan import Position, WindowPlan

__all__ = ["Limit", "PlannedWindows", "Stretch", "plan_windows"]

# Stretches of a blend over time, and numbers in all of them together.
_STRETCHES = 24
_MOST_SHARES = 200_000


class Limit(NamedTuple):
    """How much is planned."""

    samples: int | None
    """No further window is begun after so many samples; None leaves it to the windows."""
    windows: int
    """So many windows at most."""

    def is_reached(self, samples: int, windows: int) -> bool:
        """Whether so many samples and windows are enough."""
        enough = self.samples is not None and samples >= self.samples
        return enough or windows >= self.windows


class Stretch(NamedTuple):
    """What leaves have in some steps that follow each other; arrays have shape (L,)."""

    first_step: int
    """The first of them, counted from the start of the windows."""
    steps: int
    """How many steps."""
    samples: NDArray[np.float64]
    """Samples of each leaf, as the plan counts leaves."""
    length_us: NDArray[np.float64]
    """Their audio (µs)."""
    tokens: NDArray[np.float64] | None
    """Their tokens; None where nothing counts them."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PlannedWindows:
    """Windows of one blend, from its start on."""

    batches: BatchColumns
    """All micro-batches, step after step."""
    steps: tuple[int, ...]
    """Steps of each window."""
    stretches: tuple[Stretch, ...]
    """What leaves have, stretch after stretch."""
    draws: NDArray[np.int64]
    """Draws of each leaf, shape (L,)."""
    dropped: dict[str, int]
    """Draws that filters and batching dropped, by reason."""
    most_copies: int
    """How often the same row is in one micro-batch, at most."""
    worst: tuple[Worst, ...]
    """Ten micro-batches that take the most memory, the most costly first."""
    is_whole: bool
    """Whether that is a whole finite pass."""
    rows_left: int
    """Rows of a finite pass that come after them."""

    @property
    def num_steps(self) -> int:
        """Steps of all windows."""
        return sum(self.steps)

    @property
    def num_samples(self) -> int:
        """Samples of all windows."""
        return int(self.batches.size.sum())

    @property
    def steps_of_pass(self) -> int:
        """Steps of a finite pass; in proportion to its rows, where not all of it was planned."""
        drawn = int(self.draws.sum())
        return round(self.num_steps * (drawn + self.rows_left) / max(drawn, 1))

    @property
    def whole(self) -> Stretch:
        """What leaves have in all of them."""
        return _joined(self.stretches)


def plan_windows(
    planning: Planning,
    position: Position,
    limit: Limit,
    told: Callable[[int], None],
) -> PlannedWindows:
    """Plan windows until there are enough samples, or a finite pass ends.

    Parameters
    ----------
    planning
        What the plan is a function of.
    position
        Where the windows begin.
    limit
        How much is planned.
    told
        Gets the samples of each window.
    """
    number = {leaf.key: place for place, leaf in enumerate(planning.leaves)}
    draws = np.zeros(len(number), dtype=np.int64)
    steps: list[int] = []
    batches: list[BatchColumns] = []
    stretches: list[Stretch] = []
    worst: list[Worst] = []
    dropped: Counter[str] = Counter()
    samples = copies = 0
    while True:
        plan = planning.window(position)
        stats = plan.stats
        first_step = sum(steps)
        steps.append(plan.num_steps - plan.first_step)
        first_batch = plan.first_step * planning.micro_batches_per_step
        batches.append(stats.batches.chosen(slice(first_batch, None)))
        samples += int(batches[-1].size.sum())
        pieces = _pieces(samples, len(steps), limit, len(draws))
        stretches += _stretches(plan, first_step, pieces, len(draws))
        worst += worst_of_window(plan, first_step)
        dropped.update(stats.dropped)
        copies = max(copies, stats.most_copies)
        for key, drawn in stats.draws.items():
            draws[number[key]] += drawn
        told(samples)
        enough = plan.is_end or limit.is_reached(samples, len(steps))
        if enough and not planning.finite:
            break
        position = plan.position_at(plan.num_steps)
        if enough:
            break
    return PlannedWindows(
        batches=BatchColumns.joined(batches),
        steps=tuple(steps),
        stretches=tuple(_merged(stretches, _most_stretches(len(draws)))),
        draws=draws,
        dropped=dict(dropped),
        most_copies=copies,
        worst=worst_of(worst),
        is_whole=planning.finite and plan.is_end,
        rows_left=(
            sum(leaf.remaining for leaf in position.leaves.values()) if planning.finite else 0
        ),
    )


def _most_stretches(num_leaves: int) -> int:
    return max(1, min(_STRETCHES, _MOST_SHARES // max(num_leaves, 1)))


def _pieces(samples: int, windows: int, limit: Limit, num_leaves: int) -> int:
    """Into how many stretches a window is cut, by what it has among all that will be planned."""
    expected = limit.windows
    if limit.samples is not None:
        expected = min(expected, max(1, limit.samples * windows // max(samples, 1)))
    return max(1, _most_stretches(num_leaves) // expected)


def _stretches(plan: WindowPlan, first_step: int, pieces: int, num_leaves: int) -> list[Stretch]:
    borders = np.unique(np.linspace(plan.first_step, plan.num_steps, pieces + 1).astype(np.int64))
    amounts = plan.stats.amounts(borders.tolist())
    here = np.flatnonzero(plan.given >= 0)

    def of_leaves(column: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros((len(column), num_leaves))
        out[:, plan.given[here]] = column[:, here]
        return out

    samples, length_us = of_leaves(amounts.samples), of_leaves(amounts.length_us)
    tokens = None if amounts.tokens is None else of_leaves(amounts.tokens)
    return [
        Stretch(
            first_step + int(begin) - plan.first_step,
            int(end - begin),
            samples[row],
            length_us[row],
            None if tokens is None else tokens[row],
        )
        for row, (begin, end) in enumerate(pairwise(borders))
    ]


def _merged(stretches: Sequence[Stretch], most: int) -> list[Stretch]:
    """Join neighbours until there are no more than so many."""
    together = max(1, -(-len(stretches) // most))
    return [
        _joined(stretches[first : first + together]) for first in range(0, len(stretches), together)
    ]


def _joined(parts: Sequence[Stretch]) -> Stretch:
    tokens = [one.tokens for one in parts if one.tokens is not None]
    return Stretch(
        parts[0].first_step,
        sum(one.steps for one in parts),
        np.sum([one.samples for one in parts], axis=0),
        np.sum([one.length_us for one in parts], axis=0),
        np.sum(tokens, axis=0) if tokens else None,
    )
