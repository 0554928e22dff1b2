"""The lengths of a blend's samples, as bins are made of them: looked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.bins.decimals import in_decimals
from playhead.bins.histogram import Histogram
from playhead.bins.samples import Tally, accepted_samples
from playhead.bins.two_lengths import Pairs
from playhead.errors import ConfigError
from playhead.plan.bins import tokens_per_second, tokens_per_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.bins.histogram import Spectrum
    from playhead.bins.settings import BinSettings
    from playhead.plan.columns import LeafColumns
    from playhead.plan.items import Items
    from playhead.plan.refusals import Question
    from playhead.plan.settings import Shape

__all__ = ["Lengths", "Measure", "lengths_of", "measure_of", "runtime_ratios"]

_MICRO = 6
_SECONDS_1D, _SECONDS_2D = 5, 3


class Measure(NamedTuple):
    """What lengths are counted in."""

    unit: int
    """How many µs, or tokens, a unit of an edge has."""
    decimals: int
    """Decimals of an edge as a config has it."""

    def bound(self, units: int) -> float:
        """Return an edge as a config has it."""
        return in_decimals(units, self.decimals) if self.decimals else units

    def units(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return lengths in units, rounded up, shape (M,)."""
        return lengths if self.unit == 1 else -(-lengths // self.unit)


def measure_of(settings: BinSettings) -> Measure:
    """Return what the (first) lengths of bins are counted in."""
    if settings.in_tokens:
        return Measure(1, 0)
    decimals = _SECONDS_1D if settings.sub_buckets is None else _SECONDS_2D
    return Measure(10 ** (_MICRO - decimals), decimals)


class Lengths(NamedTuple):
    """What bins are made of."""

    spectrum: Spectrum
    """The (first) lengths, in units of edges."""
    pairs: Pairs
    """Both lengths, where bins are of two."""
    longest: int
    """The longest length that batches are made by (µs, or tokens)."""
    textless: int
    """How many samples have no token of a text, where that is looked at."""
    tally: Tally
    """How many samples there were, and how many were refused."""


def lengths_of(
    leaves: Sequence[LeafColumns], shape: Shape, settings: BinSettings, measure: Measure
) -> Lengths:
    """Look at all samples of a blend, once.

    Parameters
    ----------
    leaves
        The leaves of the blend.
    shape
        What becomes of their rows, and the filters.
    settings
        What is asked.
    measure
        What the (first) lengths are counted in.

    Raises
    ------
    ConfigError
        When no sample is left, or samples have no length of that kind, or none has a text.
    PositionError
        When columns of tokens are missing.
    """
    _check_kinds(leaves, shape, settings)
    two, in_tokens = settings.sub_buckets is not None, settings.in_tokens
    tally, histogram, pairs, longest = Tally(), Histogram(), Pairs(), -1
    seen = textless = 0
    for items, weight in accepted_samples(
        leaves,
        shape,
        tally,
        columns=_columns(shape, settings),
        limits=_limits(settings),
        num_examples=settings.num_examples,
    ):
        if not len(items):
            continue
        lengths = items.lengths(in_tokens=in_tokens)
        longest = max(longest, int(lengths.max()))
        if two:
            lengths, second = _both(items, in_tokens=in_tokens)
            pairs.add(lengths, second, weight)
            textless += int(np.count_nonzero(second == 0))
        elif items.output is not None:
            textless += int(np.count_nonzero(items.output == 0))
        seen += len(items)
        histogram.add(measure.units(lengths), weight)
    if longest < 0:
        raise ConfigError(
            f"no sample is left to make bins of: {_why_none(tally)}",
            fix="Add data, or widen the limits",
        )
    spectrum = histogram.spectrum()
    if not len(spectrum.lengths):
        raise ConfigError(
            f"none of the {settings.num_examples} rows that --num_examples looks at is accepted",
            fix="Look at more, or leave it out: all rows take seconds",
        )
    if two and textless == seen:
        raise ConfigError(
            "no sample has a text that bins could be split by",
            fix="Name the key of the texts (--text-field), or make bins of one length"
            " (--sub-buckets 0)",
        )
    return Lengths(spectrum, pairs, longest, tally.mean(textless), tally)


def _columns(shape: Shape, settings: BinSettings) -> list[str]:
    """The columns of tokens that are looked at, beside the lengths that batches are made by."""
    two = settings.sub_buckets is not None
    if not settings.in_tokens:
        return ["tokens"] if two else []
    if two or settings.max_tpt is not None:
        return ["input", "output"]
    return ["output"] if shape.total_length else []


def _both(items: Items, *, in_tokens: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if in_tokens:
        assert items.input is not None
        assert items.output is not None
        return items.input, items.output
    assert items.tokens is not None
    return items.length, items.tokens


def runtime_ratios(
    first: NDArray[np.int64], second: NDArray[np.int64], *, in_tokens: bool
) -> NDArray[np.float64]:
    """Return what `max_tps`, or `max_tpt`, is compared with in training, shape (M,).

    Parameters
    ----------
    first, second
        Both lengths (µs and tokens, or tokens both), shape (M,).
    in_tokens
        Whether both are tokens.
    """
    ratios = tokens_per_token if in_tokens else tokens_per_second
    return ratios(second, first)


def _limits(settings: BinSettings) -> list[Question]:
    """What the call refuses, of cuts too: the filters of a config spare these."""
    if not settings.in_tokens:
        return []
    limits: list[Question] = []
    low, high, most = settings.min_tokens, settings.max_tokens, settings.max_tpt
    if low is not None:
        limits.append(("min_tokens", lambda items: items.lengths(in_tokens=True) < low))
    if high is not None:
        limits.append(("max_tokens", lambda items: items.lengths(in_tokens=True) > high))
    if most is not None:
        limits.append(("max_tpt", lambda items: _tpt(items) > most))
    return limits


def _tpt(items: Items) -> NDArray[np.float64]:
    return runtime_ratios(*_both(items, in_tokens=True), in_tokens=True)


def _check_kinds(leaves: Sequence[LeafColumns], shape: Shape, settings: BinSettings) -> None:
    if settings.in_tokens:
        return
    for leaf in leaves:
        drawn = shape.finite or leaf.weight
        if drawn and leaf.kind != "cut" and bool((leaf.duration_us <= 0).any()):
            raise ConfigError(
                f"leaf {leaf.name!r} has samples without audio, which have no length in seconds",
                fix="Make bins of tokens (--tokens)",
            )


def _why_none(tally: Tally) -> str:
    refused = [f"{reason} refuses {count:,}" for reason, count in tally.refused.items()]
    return ", ".join(refused) or "there is none"
