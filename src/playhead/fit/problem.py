"""What a search is asked, what it does next, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from playhead.fit.bucket import Bucket

__all__ = ["Action", "Finished", "Mix", "Predict", "Probe", "Problem"]

Predict: TypeAlias = Callable[[int, int], "int | None"]
"""What tensors will hold at most (bytes), by bucket and batch size; None where nothing says it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What a search is asked."""

    buckets: tuple[Bucket, ...]
    """The buckets, in the order of the config, shortest first."""
    budget: int
    """Most that the allocator may hold (bytes)."""
    start_batch_size: int = 32
    """Size of the first probe, where nothing is predicted."""
    threshold: float = 0.05
    """Widest relative gap between what fits and what does not that a bucket may be left with."""
    multiple_of: int = 1
    """Sizes are multiples of it."""
    max_batch_size: int = 4096
    """No size is above it."""
    verify_steps: int = 0
    """Steps of a mix of all buckets that the sizes must survive; 0 tries no mixes."""
    seed: int = 0
    """Seed of the order of the mixes."""

    @property
    def has_pairs(self) -> bool:
        """Whether bounds are pairs of lengths."""
        return any(isinstance(bucket.bound, tuple) for bucket in self.buckets)

    @property
    def largest(self) -> int:
        """Largest size that may be an answer; 0 where no multiple is small enough."""
        return self.max_batch_size // self.multiple_of * self.multiple_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """Try one size of one bucket."""

    bucket: int
    """Number of the bucket."""
    batch_size: int
    """Samples of each batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mix:
    """Try all buckets at these sizes in one run."""

    sizes: tuple[int, ...]
    """Batch size of each bucket; 0 leaves a bucket out."""
    steps: int
    """Steps to do."""
    seed: int
    """Seed of their order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The answer."""

    sizes: tuple[int, ...]
    """Batch size of each bucket; 0 where not even the smallest fits."""
    notes: tuple[str, ...] = ()
    """What people must know of it, one line each."""


Action: TypeAlias = "Probe | Mix | Finished"
