"""What is known of a model's memory: one record for each try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["MixRecord", "ProbeRecord", "Status"]

Status = Literal["ok", "oom", "lost"]
"""It fitted; memory ran out; or no answer came (a crash, a hang), which says nothing of memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRecord:
    """What became of some steps with one size of one bucket, in a process of their own."""

    bucket: int
    """Number of the bucket, from the shortest on."""
    batch_size: int
    """Samples of each batch."""
    budget: int
    """Most that the allocator was allowed to hold (bytes)."""
    status: Status
    """What became of it."""
    allocated: int | None = None
    """Most that tensors held at once (bytes); None where memory ran out or nobody knows."""
    reserved: int | None = None
    """Most that the allocator held at once (bytes); None likewise."""
    predicted: int | None = None
    """What had been predicted for `allocated` (bytes); None where nothing was."""
    seconds: float = 0.0
    """How long it took."""
    reason: str | None = None
    """Why it did not fit, or why no answer came, in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MixRecord:
    """What became of steps over a shuffled mix of all buckets, in one process."""

    sizes: tuple[int, ...]
    """Batch size of each bucket; 0 leaves a bucket out."""
    steps: int
    """Steps that were asked for."""
    budget: int
    """Most that the allocator was allowed to hold (bytes)."""
    status: Status
    """What became of it."""
    done: int = 0
    """Steps that were done."""
    failed: int | None = None
    """Number of the bucket in whose step memory ran out, or the answer was lost, if known."""
    allocated: tuple[int, ...] | None = None
    """Most that tensors held at once in the steps of each bucket that were done (bytes), or 0."""
    reserved: int | None = None
    """Most that the allocator held at once (bytes)."""
    seconds: float = 0.0
    """How long it took."""
    reason: str | None = None
    """Why it did not fit, or why no answer came, in one line."""
