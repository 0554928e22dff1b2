"""From the columns of a blend to its bins."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from playhead.bins.equal_mass import equal_mass_edges
from playhead.bins.lengths import lengths_of, measure_of, runtime_ratios
from playhead.bins.padding import least_padding_edges, padding_share
from playhead.bins.quantized import quantized
from playhead.bins.result import Bins, Gain
from playhead.bins.two_lengths import split_by_second
from playhead.plan.bins import NO_BIN, bins_in_2d

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.bins.histogram import Spectrum
    from playhead.bins.lengths import Measure
    from playhead.bins.settings import BinSettings
    from playhead.bins.two_lengths import TwoLengths
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["estimate_bins"]


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
        When no sample is left, or samples have no length of that kind, or none has a text.
    PositionError
        When columns of tokens are missing.
    """
    measure = measure_of(settings)
    found = lengths_of(leaves, shape, settings, measure)
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
            ratio=partial(_finite_ratios, in_tokens=settings.in_tokens),
            adjusted=lambda tokens: quantized(tokens, settings.quantization),
        )
        bins = _of_two(split, measure, settings)
    notes = [f"nothing of {name} is left" for name in found.tally.nothing_of]
    if found.textless:
        notes.append(
            f"{found.textless:,} of {found.tally.accepted:,} samples have no tokens of a text"
            " (--text-field)"
        )
    return replace(
        bins,
        longest=found.longest if settings.in_tokens else bins.longest,
        tally=found.tally,
        left_out=found.tally.mean(bins.left_out),
        gain=gain,
        notes=(*notes, *bins.notes),
    )


def _of_one(
    edges: Sequence[int], spectrum: Spectrum, measure: Measure, settings: BinSettings
) -> Bins:
    bounds = sorted({*edges})
    few: list[str] = []
    if len(bounds) < settings.num_buckets:
        few = [_fewer(len(bounds), settings, len(spectrum.with_longest().lengths))]
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

    all_lengths = spectrum.with_longest()
    if len(all_lengths.lengths) <= settings.num_buckets:
        # Each length is an edge: nothing is padded.
        inner = all_lengths.lengths[:-1].tolist()
    else:
        inner = equal_mass_edges(spectrum, settings.num_buckets)
    equal = closed(inner)
    if not settings.optimize:
        return equal, None
    best = closed(least_padding_edges(all_lengths, settings.num_buckets))
    gain = Gain(padding_share(spectrum, equal), padding_share(spectrum, best))
    # Rounding to numbers of tokens may cost what was gained.
    return (best, gain) if gain.least <= gain.equal_mass else (equal, Gain(*2 * gain[:1]))


def _of_two(split: TwoLengths, measure: Measure, settings: BinSettings) -> Bins:
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
    measure: Measure,
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
        bins[runtime_ratios(first, second, in_tokens=settings.in_tokens) > most] = NO_BIN
    return int(np.count_nonzero(bins == NO_BIN))


def _finite_ratios(
    first: NDArray[np.int64], second: NDArray[np.int64], *, in_tokens: bool
) -> NDArray[np.float64]:
    """Ratios that have a mean: an answer to nothing counts as one to a token."""
    return runtime_ratios(np.maximum(first, 1), second, in_tokens=in_tokens)


def _fewer(made: int, settings: BinSettings, distinct: int) -> str:
    few = f"{made:,} bucket{'s' if made > 1 else ''} instead of {settings.num_buckets:,}"
    if distinct < settings.num_buckets:
        lengths = "is 1 distinct length" if distinct == 1 else f"are {distinct:,} distinct lengths"
        return f"{few}: there {lengths}"
    if settings.quantization != "none":
        return f"{few}: there are no more round numbers ({settings.quantization})"
    others = "" if settings.optimize else " (--optimize finds others)"
    return f"{few}: the samples part into no more of equal mass{others}"
