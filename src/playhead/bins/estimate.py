"""From the columns of a blend to its bins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.bins.decimals import in_decimals
from playhead.bins.equal_mass import equal_mass_edges
from playhead.bins.histogram import Histogram
from playhead.bins.padding import least_padding_edges, padding_share
from playhead.bins.quantized import quantized
from playhead.bins.samples import Tally, accepted_samples
from playhead.bins.two_lengths import Pairs, split_by_second
from playhead.errors import ConfigError
from playhead.plan.bins import NO_BIN, bins_in_2d, tokens_per_second, tokens_per_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.bins.histogram import Spectrum
    from playhead.bins.settings import BinSettings
    from playhead.bins.two_lengths import TwoLengths
    from playhead.plan.columns import LeafColumns
    from playhead.plan.items import Items
    from playhead.plan.refusals import Question
    from playhead.plan.settings import Shape

__all__ = ["Bins", "Gain", "estimate_bins"]

_MICRO = 6
_SECONDS_1D, _SECONDS_2D = 5, 3


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


def estimate_bins(leaves: Sequence[LeafColumns], shape: Shape, settings: BinSettings) -> Bins:
    """Return bins in which every sample has a place that the filters accept.

    Parameters
    ----------
    leaves
        The leaves of a blend.
    shape
        What becomes of their rows, and the filters.
    settings
        What is asked.

    Raises
    ------
    ConfigError
        When no sample is left, or samples have no length of that kind.
    PositionError
        When columns of tokens are missing.
    """
    _check_kinds(leaves, shape, settings)
    measure = _measure_of(settings)
    found = _collected(leaves, shape, settings, measure)
    edges, gain = _edges(found.spectrum, settings)
    if settings.sub_buckets is None:
        bins = _of_one(edges, found.spectrum, measure, settings)
    else:
        split = split_by_second(
            found.pairs,
            edges,
            settings.sub_buckets,
            unit=measure.unit,
            threshold=settings.outlier_threshold,
            ratio=_ratio_of_second if settings.in_tokens else _tokens_per_second,
            adjusted=lambda tokens: quantized(tokens, settings.quantization),
        )
        bins = _of_two(split, measure, settings)
    notes = [f"nothing of {name} is left" for name in found.tally.nothing_of]
    return replace(
        bins,
        longest=found.longest if settings.in_tokens else bins.longest,
        tally=found.tally,
        gain=gain,
        notes=(*notes, *bins.notes),
    )


class _Measure(NamedTuple):
    """What lengths are counted in."""

    unit: int
    """How many µs, or tokens, a unit of an edge has."""
    decimals: int
    """Decimals of an edge as a config has it."""

    def bound(self, units: int) -> float:
        return in_decimals(units, self.decimals) if self.decimals else units

    def units(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        return lengths if self.unit == 1 else -(-lengths // self.unit)


def _measure_of(settings: BinSettings) -> _Measure:
    if settings.in_tokens:
        return _Measure(1, 0)
    decimals = _SECONDS_1D if settings.sub_buckets is None else _SECONDS_2D
    return _Measure(10 ** (_MICRO - decimals), decimals)


class _Collected(NamedTuple):
    spectrum: Spectrum
    """The (first) lengths, in units of edges."""
    pairs: Pairs
    """Both lengths, where bins are of two."""
    longest: int
    """The longest length that batches are made by (µs, or tokens)."""
    tally: Tally


def _collected(
    leaves: Sequence[LeafColumns], shape: Shape, settings: BinSettings, measure: _Measure
) -> _Collected:
    """Look at all samples once."""
    two, in_tokens = settings.sub_buckets is not None, settings.in_tokens
    columns: list[str] = []
    if in_tokens and (two or settings.max_tpt is not None):
        columns = ["input", "output"]
    elif two:
        columns = ["tokens"]
    tally, histogram, pairs, longest = Tally(), Histogram(), Pairs(), -1
    for items, weight in accepted_samples(
        leaves,
        shape,
        tally,
        columns=columns,
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
    return _Collected(spectrum, pairs, longest, tally)


def _of_one(
    edges: Sequence[int], spectrum: Spectrum, measure: _Measure, settings: BinSettings
) -> Bins:
    bounds = sorted({*edges})
    few: list[str] = []
    if len(bounds) < settings.num_buckets:
        few = [_fewer(len(bounds), settings, len(spectrum.lengths))]
    return Bins(
        in_tokens=settings.in_tokens,
        bounds=tuple(measure.bound(edge) for edge in bounds),
        ratios=None,
        longest=measure.bound(bounds[-1]),
        notes=tuple(few),
    )


def _edges(spectrum: Spectrum, settings: BinSettings) -> tuple[list[int], Gain | None]:
    """Inclusive edges, ascending, the last the longest length; some may stand there repeatedly."""
    longest = max(spectrum.longest, 1)

    def closed(inner: Sequence[int]) -> list[int]:
        return quantized([*(max(edge, 1) for edge in inner), longest], settings.quantization)

    if len(spectrum.lengths) <= settings.num_buckets:
        # Each length is an edge: nothing is padded.
        inner = spectrum.lengths[:-1].tolist()
    else:
        inner = equal_mass_edges(spectrum, settings.num_buckets)
    equal = closed(inner)
    if not settings.optimize:
        return equal, None
    best = closed(least_padding_edges(spectrum, settings.num_buckets))
    gain = Gain(padding_share(spectrum, equal), padding_share(spectrum, best))
    # Rounding to numbers of tokens may cost what was gained.
    return (best, gain) if gain.least <= gain.equal_mass else (equal, Gain(*2 * gain[:1]))


def _of_two(split: TwoLengths, measure: _Measure, settings: BinSettings) -> Bins:
    ratios: tuple[float, ...] | None = split.ratios if settings.strict_2d else None
    notes: list[str] = []
    if settings.in_tokens and split.from_nothing:
        ratios = None
        notes.append(
            f"{split.from_nothing:,} samples have an answer and nothing before it, which is above"
            " every max_tpt: none is given"
        )
    if split.undecided:
        notes.append(
            f"in {split.undecided:,} buckets every sample is above the threshold: nothing is left"
            " out of them"
        )
    return Bins(
        in_tokens=settings.in_tokens,
        bounds=tuple((measure.bound(first), second) for first, second in split.bins),
        ratios=ratios,
        longest=measure.bound(split.bins[-1][0]),
        left_out=_without_bin(split, ratios, measure, settings),
        notes=tuple(notes),
    )


def _without_bin(
    split: TwoLengths,
    ratios: tuple[float, ...] | None,
    measure: _Measure,
    settings: BinSettings,
) -> int:
    """How many of the samples that stand out have no bin: some fit into one of others."""
    first, second = split.outliers
    bins = bins_in_2d(
        first,
        second,
        [border * measure.unit for border, _ in split.bins],
        [most for _, most in split.bins],
        strict=settings.strict_2d,
    )
    if ratios is not None:
        most = np.array([*ratios, np.inf])[bins]
        asked = _tokens_per_token if settings.in_tokens else _tokens_per_second
        bins[asked(first, second) > most] = NO_BIN
    return int(np.count_nonzero(bins == NO_BIN))


def _both(items: Items, *, in_tokens: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if in_tokens:
        assert items.input is not None
        assert items.output is not None
        return items.input, items.output
    assert items.tokens is not None
    return items.length, items.tokens


def _tokens_per_second(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    return tokens_per_second(second, first)


def _tokens_per_token(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    return tokens_per_token(second, first)


def _ratio_of_second(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    # Finite, so that it has a mean: an answer to nothing counts as one to a token.
    return second / np.maximum(first, 1)


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
        limits.append(
            ("max_tpt", lambda items: _tokens_per_token(*_both(items, in_tokens=True)) > most)
        )
    return limits


def _check_kinds(leaves: Sequence[LeafColumns], shape: Shape, settings: BinSettings) -> None:
    if settings.in_tokens:
        return
    for leaf in leaves:
        drawn = shape.finite or leaf.weight
        if drawn and leaf.kind != "cut" and bool((leaf.duration_us <= 0).any()):
            raise ConfigError(
                f"leaf {leaf.name!r} has samples without audio, which have no length in seconds",
                where=leaf.key,
                fix="Make bins of tokens (--tokens)",
            )


def _why_none(tally: Tally) -> str:
    refused = [f"{reason} refuses {count:,}" for reason, count in tally.refused.items()]
    return ", ".join(refused) or "there is none"


def _fewer(made: int, settings: BinSettings, distinct: int) -> str:
    few = f"{made:,} bucket{'s' if made > 1 else ''} instead of {settings.num_buckets:,}"
    if distinct < settings.num_buckets:
        return f"{few}: there are {distinct:,} distinct lengths"
    if settings.quantization != "none":
        return f"{few}: there are no more round numbers ({settings.quantization})"
    return f"{few}: some lengths alone would fill several"
