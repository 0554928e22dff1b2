"""Lhotse's sampler as all measurements set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lhotse import CutSet
from lhotse.dataset import DynamicBucketingSampler

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MAX_DURATION", "bucketing", "cut_set"]

MAX_DURATION = 120.0


def cut_set(path: Path, *, indexed: bool) -> CutSet:
    """An endless set of the cuts of a manifest, read through its index or line by line."""
    return CutSet.from_file(path, indexed=indexed).repeat()


def bucketing(
    cuts: CutSet,
    *,
    max_duration: float = MAX_DURATION,
    quadratic_duration: float | None = None,
    buffer_size: int = 10_000,
    seed: int = 0,
) -> DynamicBucketingSampler:
    """30 buckets, as NeMo sets it: one sampler a rank over data of its own."""
    return DynamicBucketingSampler(
        cuts,
        max_duration=max_duration,
        quadratic_duration=quadratic_duration,
        num_buckets=30,
        num_cuts_for_bins_estimate=min(buffer_size, 10_000),
        buffer_size=buffer_size,
        shuffle=True,
        seed=seed,
        rank=0,
        world_size=1,
    )
