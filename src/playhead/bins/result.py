"""Bins of a blend, and what became of its samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.bins.samples import Tally

__all__ = ["Bins", "Gain"]


class Gain(NamedTuple):
    """Share of padding where samples are padded to the edge of their bucket."""

    equal_mass: float
    """With edges of equal mass."""
    least: float
    """With the edges of least padding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bins:
    """Bins of a blend."""

    in_tokens: bool
    """Whether lengths are in tokens; in seconds otherwise."""
    bounds: tuple[float, ...] | tuple[tuple[float, int], ...]
    """Inclusive upper bounds, as `bucket_duration_bins` takes them."""
    ratios: tuple[float, ...] | None
    """Most tokens by second, or by token before the answer, of each bin of two lengths."""
    longest: float
    """The longest sample: seconds, rounded up as the bounds are, or tokens."""
    tally: Tally = field(default_factory=Tally)
    """How many samples there were, and how many were refused."""
    left_out: int = 0
    """Samples that stand out by their ratio of lengths, and have no bin therefore."""
    gain: Gain | None = None
    """What edges of least padding gain; None where edges are of equal mass."""
    notes: tuple[str, ...] = ()
    """What people should know."""
