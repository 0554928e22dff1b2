"""What a plan is a function of beside the data: how windows are drawn, and how they are cut."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, Literal, get_args

from playhead.errors import PlanError

__all__ = ["Batching", "Locality", "Oversize", "Shape", "changed_fields"]

Oversize = Literal["alone", "drop", "error"]
Locality = Literal["rows", "shards"]

_NEVER_NONE = ("cache_bytes", "micro_batches_per_step", "num_classes")

# What 64 bits can square, and what a machine can hold a list of.
_MOST = {
    "micro_batches_per_step": 131_072,
    "batch_size": 10_000_000,
    "batch_duration_us": 10**15,
    "quadratic_duration_us": 10**15,
    "num_classes": 10_000,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What windows are drawn with; a change takes effect at the next window.

    Raises
    ------
    PlanError
        When an option has a value that means nothing.
    """

    finite: bool = False
    """One pass over every row, weights ignored, instead of an endless blend."""
    shuffle: bool = True
    """Draw rows in keyed order; declared order if false."""
    min_duration_us: int | None = None
    """Shortest length that is kept (µs, inclusive)."""
    max_duration_us: int | None = None
    """Longest length that is kept (µs, inclusive)."""
    locality: Locality = "rows"
    """Permute the rows of a leaf, or its shards so that each is used in one stretch a pass."""
    cache_bytes: int = 64 << 30
    """What the shards of a window may take (bytes) where locality is `shards`."""
    window_draws: int | None = None
    """Draws per window; None takes enough for about 100 steps, at most a million or so."""

    def __post_init__(self) -> None:
        for name in ("min_duration_us", "max_duration_us"):
            _at_least(name, getattr(self, name), 0)
        for name in ("cache_bytes", "window_draws"):
            _at_least(name, getattr(self, name), 1)
        _one_of("locality", self.locality, get_args(Locality))
        low, high = self.min_duration_us, self.max_duration_us
        if low is not None and high is not None and low > high:
            raise PlanError(
                f"the option min_duration_us {low} is above max_duration_us {high}:"
                " nothing would be kept",
                fix="Exchange or widen them",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """What windows are cut with; a change deals out the rest of a window anew.

    At least one of `batch_size`, `batch_duration_us` and `bucket_batch_size` is needed; every one
    that is given is an upper bound.

    Raises
    ------
    PlanError
        When an option has a value that means nothing, or options contradict each other.
    """

    micro_batches_per_step: int = 1
    """Micro-batches of a global step, G."""
    batch_size: int | None = None
    """Most samples of a batch; 4096 where only durations limit it."""
    batch_duration_us: int | None = None
    """Most that samples times longest effective length of a batch may be (µs)."""
    quadratic_duration_us: int | None = None
    """Length (µs) that counts double: a length l counts l + l² / this."""
    bucketing: bool = True
    """Batch samples of like length; false batches them in the order they are drawn in."""
    bins_us: tuple[int, ...] | None = field(default=None)
    """Inclusive upper borders of the length classes (µs), ascending; None makes `num_classes`."""
    num_classes: int = 100
    """Length classes of equal total duration where no borders are given."""
    bucket_batch_size: tuple[int, ...] | None = field(default=None)
    """Samples of a batch per class of `bins_us`, not ascending; longer samples are dropped."""
    drop_last: bool = False
    """Drop what is left of a finite pass when it does not fill a step, instead of repeating."""
    oversize: Oversize = "alone"
    """A single sample above the limit is a batch of its own, or dropped, or an error."""

    def __post_init__(self) -> None:
        for name in ("bins_us", "bucket_batch_size"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(int(item) for item in value))
        for name in (
            "micro_batches_per_step",
            "batch_size",
            "batch_duration_us",
            "quadratic_duration_us",
            "num_classes",
        ):
            value = getattr(self, name)
            _at_least(name, value, 1)
            if value is not None and value > _MOST[name]:
                raise PlanError(
                    f"the option {name} is {value}", fix=f"Give a number of at most {_MOST[name]:,}"
                )
        _one_of("oversize", self.oversize, get_args(Oversize))
        self._check_bins()
        if self.batch_size is None and self.batch_duration_us is None and not self.sizes:
            raise PlanError(
                "nothing limits a batch",
                fix="Set batch_duration, batch_size or bucket_batch_size",
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """`bucket_batch_size`, empty where batches have no fixed sizes."""
        return self.bucket_batch_size or ()

    @property
    def max_samples(self) -> int:
        """The most samples that any batch may have; always finite."""
        if self.batch_size is not None:
            return self.batch_size
        return max(self.sizes) if self.sizes else 4096

    def _check_bins(self) -> None:
        bins, sizes = self.bins_us, self.bucket_batch_size
        if bins is not None and (not bins or bins[0] < 1 or any(b <= a for a, b in pairwise(bins))):
            raise PlanError(
                f"the bins {list(bins)} are not positive and strictly ascending",
                fix="Sort them, and name each border once",
            )
        if sizes is None:
            return
        if not self.bucketing or bins is None or len(bins) != len(sizes):
            raise PlanError(
                f"bucket_batch_size has {len(sizes)} sizes for"
                f" {len(bins or ()) if self.bucketing else 0} duration bins",
                fix="Give one size per bin, with bucketing on",
            )
        if min(sizes) < 1 or any(b > a for a, b in pairwise(sizes)):
            raise PlanError(
                f"the sizes {list(sizes)} of bucket_batch_size grow with the length or are not"
                " positive",
                fix="Give longer bins the same size or a smaller one",
            )


def changed_fields(value: Any, base: Any) -> dict[str, Any]:
    """Return the fields of a settings object that differ from another's, as JSON types."""
    changed: dict[str, Any] = {}
    for item in fields(value):
        mine = getattr(value, item.name)
        if mine != getattr(base, item.name):
            changed[item.name] = list(mine) if isinstance(mine, tuple) else mine
    return changed


def _at_least(name: str, value: Any, least: int) -> None:
    if value is None and name not in _NEVER_NONE:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PlanError(
            f"the option {name} is {value}", fix=f"Give a whole number of at least {least}"
        )


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise PlanError(f"the option {name} is {value!r}", fix=f"Use one of {', '.join(allowed)}")
