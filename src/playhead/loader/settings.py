"""The plan's settings and columns, out of the options and packs that people give."""

from __future__ import annotations

from math import isinf
from typing import TYPE_CHECKING

from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.config import Options
    from playhead.index.pack import LeafPack

__all__ = ["batching_of", "columns_of", "shape_of", "workers_of"]

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
    bins = options.bucket_duration_bins
    quadratic = options.quadratic_duration
    limit = options.batch_duration
    return Batching(
        micro_batches_per_step=options.micro_batches_per_step or world_size,
        batch_size=options.batch_size,
        batch_duration_us=None if limit is None else microseconds(limit),
        quadratic_duration_us=None if quadratic is None else microseconds(quadratic),
        bucketing=options.use_bucketing,
        bins_us=None if bins is None else tuple(microseconds(edge) for edge in bins),
        num_classes=max(_LEAST_CLASSES, options.num_buckets),
        bucket_batch_size=(
            None if options.bucket_batch_size is None else tuple(options.bucket_batch_size)
        ),
        drop_last=options.drop_last,
        oversize=options.oversize,
    )


def shape_of(options: Options, *, finite: bool) -> Shape:
    """What new windows are drawn with."""
    low, high = options.min_duration, options.max_duration
    return Shape(
        finite=finite,
        shuffle=options.shuffle,
        # NeMo's defaults, -1 and infinity, keep everything.
        min_duration_us=None if low is None or low <= 0 else microseconds(low),
        max_duration_us=None if high is None or isinf(high) else microseconds(high),
        locality=options.locality or "rows",
        cache_bytes=options.cache_bytes,
        window_draws=options.window_draws,
    )


def workers_of(options: Options) -> Workers:
    """How batches are made."""
    return Workers(
        num_workers=options.num_workers,
        prefetch_factor=options.prefetch_factor,
        pin_memory=options.pin_memory,
        start_method=options.multiprocessing_context,
    )


def columns_of(leaves: Sequence[Leaf], packs: Sequence[LeafPack]) -> tuple[LeafColumns, ...]:
    """What the plan sees of the packs; shards are the files that hold the audio."""
    return tuple(map(_columns, leaves, packs))


def _columns(leaf: Leaf, pack: LeafPack) -> LeafColumns:
    tarred = "tar" in leaf.paths
    return LeafColumns(
        key=leaf.key,
        name=leaf.name,
        weight=leaf.weight,
        duration_us=pack.duration_us,
        fingerprint=pack.fingerprint,
        explain_change=pack.explain_change,
        shard=pack.tar if tarred else None,
        shard_bytes=pack.shards.sizes if tarred else None,
    )
