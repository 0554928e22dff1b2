"""What the filters make of a whole leaf, and how many of its rows each of them refuses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.effort import Effort
from playhead.plan.items import needed_columns
from playhead.plan.pass_items import leaf_items
from playhead.plan.refusals import batching_questions, drops_oversize, shape_questions, without
from playhead.plan.reshape import SPEEDS
from playhead.plan.verdicts import newest_exclusion, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = [
    "LeafFacts",
    "leaf_facts",
    "refusals_of",
    "refused_rows",
    "with_exclusions",
]

_CENTISECOND = 10_000
# Longer rows count as 1,000 s, or 100,000 tokens, in estimates: sums of squares fit 64 bits.
_LONGEST = 100_000
_BLOCK = 1 << 18


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafFacts:
    """Figures of the samples of a leaf that nothing refuses, in µs or in tokens."""

    accepted: int
    """How many samples."""
    total: int
    """Sum of their lengths (1/100 s, or tokens)."""
    squares: int
    """Sum of the squares of their lengths (1/100 s squared, or tokens squared)."""
    longest: int
    """The longest length (µs, or tokens); -1 where there is no sample."""
    longest_row: int
    """The first row of that length."""
    copies: int = 1
    """How often each row was counted: once per speed."""
    refused: dict[str, int] = field(default_factory=dict[str, int])
    """Samples that are refused, by reason; empty where nothing was asked but the length."""


def with_exclusions(shape: Shape, leaves: Sequence[LeafColumns]) -> Shape:
    """Return a shape that refuses every row that is excluded by now."""
    newest = newest_exclusion(leaves)
    return shape if newest == shape.exclusions else replace(shape, exclusions=newest)


def refused_rows(leaf: LeafColumns, shape: Shape, batching: Batching) -> dict[str, int]:
    """How many rows of a leaf each filter refuses in a pass, by reason, in the order of asking.

    Every row is counted for the first reason that refuses it. Where rows are cut into windows,
    parts are counted; where speed is perturbed, the mean over the speeds; where passes take slices,
    the whole leaf. `excluded` counts what is excluded by now.

    Parameters
    ----------
    leaf
        The leaf.
    shape, batching
        The settings.

    Raises
    ------
    PositionError
        When a side file that the filters look at is missing.
    """
    return refusals_of(leaf, with_exclusions(shape, [leaf]), batching)


def refusals_of(leaf: LeafColumns, shape: Shape, batching: Batching) -> dict[str, int]:
    """`refused_rows`, with the exclusions that the shape has."""
    facts = _all_facts(leaf, shape, batching, batching.in_tokens)
    return {
        reason: (2 * count + facts.copies) // (2 * facts.copies)
        for reason, count in facts.refused.items()
    }


def leaf_facts(
    leaf: LeafColumns,
    shape: Shape,
    batching: Batching | None = None,
    *,
    in_tokens: bool = False,
) -> LeafFacts:
    """Figures of the samples of a leaf that are accepted; computed once each.

    Parameters
    ----------
    leaf
        The leaf.
    shape
        What becomes of its rows, and the filters.
    batching
        What else refuses samples; None asks the filters alone.
    in_tokens
        Whether lengths are in tokens.
    """
    looks = bool(needed_columns(shape, [] if batching is None else [batching]))
    plain = leaf.kind == "cut" and not (looks or shape.multimodal or shape.reshapes)
    if not plain or verdicts(leaf, shape) is not None:
        return _all_facts(leaf, shape, batching, in_tokens)
    facts = _facts_between(leaf, shape.min_duration_us, shape.max_duration_us)
    cap = None if batching is None else _dropped_above(batching)
    if cap is None or facts.longest <= cap:
        return facts
    return _facts_between(leaf, shape.min_duration_us, cap)


def _all_facts(
    leaf: LeafColumns, shape: Shape, batching: Batching | None, in_tokens: bool
) -> LeafFacts:
    key = ("facts", shape, batching, in_tokens)
    if key not in leaf.cache:
        leaf.cache[key] = _counted(leaf, shape, batching, in_tokens=in_tokens)
    return leaf.cache[key]


def _counted(
    leaf: LeafColumns, shape: Shape, batching: Batching | None, *, in_tokens: bool
) -> LeafFacts:
    questions = shape_questions(shape)
    if batching is not None:
        questions += batching_questions(batching)
    refused = {reason: 0 for reason, _ in questions}
    sums = _Sums()
    for items in leaf_items(leaf, shape, batching):
        kept = without(items, questions, refused)
        sums.add(kept.lengths(in_tokens=in_tokens), kept.row, unit=1 if in_tokens else _CENTISECOND)
    return LeafFacts(
        accepted=sums.accepted,
        total=sums.total,
        squares=sums.squares,
        longest=sums.longest,
        longest_row=sums.longest_row,
        copies=len(SPEEDS) if shape.perturb_speed else 1,
        refused={reason: count for reason, count in refused.items() if count},
    )


@dataclass(slots=True)
class _Sums:
    accepted: int = 0
    total: int = 0
    squares: int = 0
    longest: int = -1
    longest_row: int = -1

    def add(
        self,
        lengths: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        first: int = 0,
        unit: int = _CENTISECOND,
    ) -> None:
        """Add samples of these rows; None for rows that follow each other from `first` on."""
        if not len(lengths):
            return
        top = int(lengths.argmax())
        if int(lengths[top]) > self.longest:
            self.longest = int(lengths[top])
            self.longest_row = first + (top if rows is None else int(rows[top]))
        units = np.clip(lengths // unit, 0, _LONGEST)
        self.accepted += len(units)
        self.total += int(units.sum())
        self.squares += int(np.dot(units, units))


def _dropped_above(batching: Batching) -> int | None:
    """Return the length (µs) above which batching drops samples."""
    caps: list[int] = []
    if batching.sizes and batching.bins:
        caps.append(batching.bins[-1])
    longest = Effort.of(batching).longest
    if drops_oversize(batching) and longest is not None:
        caps.append(longest)
    return min(caps, default=None)


def _facts_between(leaf: LeafColumns, low: int | None, high: int | None) -> LeafFacts:
    key = ("facts", low, high)
    if key not in leaf.cache:
        leaf.cache[key] = _facts_by_length(leaf.duration_us, low, high)
    return leaf.cache[key]


def _facts_by_length(
    duration_us: NDArray[np.int64], low: int | None, high: int | None
) -> LeafFacts:
    sums = _Sums()
    for start in range(0, len(duration_us), _BLOCK):
        lengths = duration_us[start : start + _BLOCK]
        rows: NDArray[np.int64] | None = None
        if low is not None or high is not None or int(lengths.min()) < 0:
            least = 0 if low is None else low
            kept = lengths >= least if high is None else (lengths >= least) & (lengths <= high)
            rows = np.flatnonzero(kept)
            lengths = lengths[rows]
        sums.add(lengths, rows, start)
    return LeafFacts(
        accepted=sums.accepted,
        total=sums.total,
        squares=sums.squares,
        longest=sums.longest,
        longest_row=sums.longest_row,
    )
