"""The plan's settings, out of the options that people give."""

from __future__ import annotations

from math import ceil, floor, isinf
from typing import TYPE_CHECKING

from playhead.loader.stream import Workers
from playhead.plan import Batching, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.config import Options
    from playhead.plan.settings import Locality

__all__ = [
    "batching_of",
    "measures_tokens",
    "needs_tokens",
    "shape_of",
    "text_window_of",
    "workers_of",
]

_LEAST_CLASSES = 100


def microseconds(seconds: float) -> int:
    """Whole microseconds, rounded to nearest.

    Examples
    --------
    >>> microseconds(0.1)
    100000
    """
    return round(seconds * 1_000_000)


def batching_of(options: Options, world_size: int) -> Batching:
    """What cuts a window into micro-batches."""
    lengths, tokens = _bins_of(options)
    in_tokens = options.use_multimodal_sampling
    quadratic = options.quadratic_duration
    limit = options.batch_duration
    factor = options.quadratic_factor
    return Batching(
        micro_batches_per_step=options.micro_batches_per_step or world_size,
        batch_size=options.batch_size,
        batch_duration_us=None if limit is None or in_tokens else microseconds(limit),
        quadratic_duration_us=None if quadratic is None or in_tokens else microseconds(quadratic),
        bucketing=options.use_bucketing,
        bins_us=None if in_tokens else lengths,
        bins_tokens=tokens,
        strict_2d=options.bucketing_2d_strict_mode,
        max_tps_per_bin=None if in_tokens else _per_bin(options.max_tps),
        num_classes=max(_LEAST_CLASSES, options.num_buckets),
        bucket_batch_size=(
            None if options.bucket_batch_size is None else tuple(options.bucket_batch_size)
        ),
        drop_last=options.drop_last,
        oversize=options.oversize,
        in_tokens=in_tokens,
        batch_tokens=options.batch_tokens if in_tokens else None,
        quadratic_tokens=max(1, round(factor)) if in_tokens and factor is not None else None,
        bins_length=lengths if in_tokens else None,
        max_tpt_per_bin=_per_bin(options.max_tpt) if in_tokens else None,
        packed=options.use_packed_sequence_sampling,
    )


def _per_bin(value: float | tuple[float, ...] | None) -> tuple[float, ...] | None:
    return value if isinstance(value, tuple) else None


def _bins_of(options: Options) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Borders of the classes in microseconds or tokens, and tokens where they have two of them."""
    edges: list[int] = []
    tokens: list[int] = []
    for edge in options.bucket_duration_bins or ():
        length, *rest = edge if isinstance(edge, tuple) else (edge,)
        # A bin of 12.5 tokens holds 12.
        edges.append(int(length) if options.use_multimodal_sampling else microseconds(length))
        tokens += map(int, rest)
    return tuple(edges) or None, tuple(tokens) or None


def shape_of(
    options: Options,
    *,
    finite: bool,
    locality: Locality = "rows",
    tokens: str | None = None,
    fields: str | None = None,
    slice_length: int | None = None,
    audio_tokens: str | None = None,
    text_overhead: int = 0,
) -> Shape:
    """What new windows are drawn with.

    Parameters
    ----------
    options
        The options of the section.
    finite
        Whether a pass ends.
    locality
        How rows are ordered, where the options do not say it.
    tokens, fields
        Digests of the token counts and of what the filters look at, where there are any.
    slice_length
        Rows that a pass takes of each shard.
    audio_tokens
        How many tokens audio takes, where samples are measured in tokens.
    text_overhead
        Tokens that the prompt puts around a text.
    """
    measured = audio_tokens is not None
    return Shape(
        finite=finite,
        shuffle=options.shuffle,
        # NeMo's defaults, -1 and infinity, keep everything.
        min_duration_us=_above_zero_us(options.min_duration),
        max_duration_us=_finite_us(options.max_duration),
        locality=options.locality or locality,
        cache_bytes=options.cache_bytes,
        window_draws=options.window_draws,
        # Without a choice no row has a status.
        keep=options.keep or "pass",
        tokens=tokens,
        min_tps=_positive(options.min_tps) if tokens else None,
        max_tps=_ceiling(options.max_tps) if tokens else None,
        fields=fields,
        max_cer=_ceiling(options.max_cer) if fields else None,
        min_similarity=_floor(options.min_context_speaker_similarity) if fields else None,
        excluded_speakers=bool(fields and options.excluded_speaker_ids),
        perturb_speed=options.perturb_speed,
        truncate_us=_above_zero_us(options.truncate_duration),
        truncate_offset=options.truncate_offset_type,
        window_us=_above_zero_us(options.cut_into_windows_duration),
        hop_us=(
            _above_zero_us(options.cut_into_windows_hop)
            if options.cut_into_windows_duration
            else None
        ),
        pad_us=_above_zero_us(options.pad_min_duration),
        slice_length=slice_length,
        multimodal=measured,
        audio_tokens=audio_tokens,
        total_length=options.measure_total_length,
        min_tokens=_whole_or_none(_positive(options.min_tokens), ceil) if measured else None,
        max_tokens=_whole_or_none(_ceiling(options.max_tokens), floor) if measured else None,
        min_tpt=_positive(options.min_tpt) if measured else None,
        max_tpt=_ceiling(options.max_tpt) if measured else None,
        text_window=text_window_of(options),
        text_overhead=text_overhead,
    )


def text_window_of(options: Options) -> int | None:
    """Tokens of the windows that texts are cut into; None where they stay whole."""
    return options.cut_text_into_windows_tokens if options.use_multimodal_sampling else None


def measures_tokens(options: Options) -> bool:
    """Whether lengths in tokens decide what is trained on: audio takes tokens too then."""
    return (
        options.use_multimodal_sampling
        or _positive(options.min_tokens) is not None
        or _ceiling(options.max_tokens) is not None
        or _positive(options.min_tpt) is not None
        or _ceiling(options.max_tpt) is not None
    )


def needs_tokens(options: Options) -> bool:
    """Whether batches depend on how many tokens a row has."""
    bins = options.bucket_duration_bins or ()
    return (
        any(isinstance(edge, tuple) for edge in bins)
        or isinstance(options.max_tps, tuple)
        or measures_tokens(options)
        or _positive(options.min_tps) is not None
        or _ceiling(options.max_tps) is not None
    )


def _whole_or_none(value: float | None, rounded: Callable[[float], int]) -> int | None:
    return None if value is None else rounded(value)


def _above_zero_us(seconds: float | None) -> int | None:
    return None if seconds is None or seconds <= 0 else microseconds(seconds)


def _finite_us(seconds: float | None) -> int | None:
    return None if seconds is None or isinf(seconds) else microseconds(seconds)


def _positive(value: float | None) -> float | None:
    return None if value is None or value <= 0 else value


def _ceiling(value: float | tuple[float, ...] | None) -> float | None:
    return None if value is None or isinstance(value, tuple) or isinf(value) else value


def _floor(value: float | None) -> float | None:
    # A similarity lies from -1 to 1.
    return None if value is None or value <= -1 else value


def workers_of(options: Options) -> Workers:
    """How batches are made."""
    return Workers(
        num_workers=options.num_workers,
        prefetch_factor=options.prefetch_factor,
        pin_memory=options.pin_memory,
        start_method=options.multiprocessing_context,
    )
