"""What a plan is a function of beside the data: how windows are drawn, and how they are cut."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, Literal, get_args

from playhead.errors import PlanError
from playhead.plan.bins import check_bins

__all__ = ["Batching", "Locality", "Oversize", "Shape", "TruncateOffset", "changed_fields"]

Oversize = Literal["alone", "drop", "error"]
Locality = Literal["rows", "shards"]
TruncateOffset = Literal["random", "start", "end"]

_NEVER_NONE = ("cache_bytes", "exclusions", "keep", "micro_batches_per_step", "num_classes")
# Shorter windows would make millions of samples of a long row.
_SHORTEST_WINDOW_US = 1_000

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
    keep: str = "pass"
    """The status that rows must have; rows that say none are kept."""
    exclusions: int = 0
    """Rows that were excluded no later than this are out; set when a window opens."""
    tokens: str | None = None
    """Digest of the token counts of the leaves."""
    min_tps: float | None = None
    """Fewest tokens by second that are kept (inclusive); needs `tokens`."""
    max_tps: float | None = None
    """Most tokens by second that are kept (inclusive); needs `tokens`."""
    fields: str | None = None
    """Digest of the columns that the next three look at."""
    max_cer: float | None = None
    """Highest character error rate that is kept (inclusive); needs `fields`."""
    min_similarity: float | None = None
    """Lowest similarity of the context speaker that is kept (inclusive); needs `fields`."""
    excluded_speakers: bool = False
    """Refuse rows of the speakers that are held out; needs `fields`."""
    perturb_speed: bool = False
    """Play every draw at 0.9, 1.0 or 1.1 times its speed, by a keyed choice."""
    truncate_us: int | None = None
    """Length that longer rows are truncated to (µs)."""
    truncate_offset: TruncateOffset = "random"
    """Which stretch truncation keeps: a keyed one, the first or the last."""
    window_us: int | None = None
    """Length of the windows that rows are cut into (µs); the last of a row may be shorter."""
    hop_us: int | None = None
    """From the start of one window to the next (µs); None is `window_us`."""
    pad_us: int | None = None
    """Length that shorter samples are padded to (µs)."""
    slice_length: int | None = None
    """Rows that a pass takes of each shard, from a keyed row on; None takes all."""

    def __post_init__(self) -> None:
        for name in ("finite", "shuffle", "excluded_speakers", "perturb_speed"):
            _true_or_false(name, getattr(self, name))
        for name in ("min_duration_us", "max_duration_us", "exclusions"):
            _at_least(name, getattr(self, name), 0)
        for name in ("cache_bytes", "window_draws", "truncate_us", "pad_us", "slice_length"):
            _at_least(name, getattr(self, name), 1)
        for name in ("window_us", "hop_us"):
            _at_least(name, getattr(self, name), _SHORTEST_WINDOW_US)
        for name in ("min_tps", "max_tps", "max_cer", "min_similarity"):
            _finite(name, getattr(self, name))
        for name in ("keep", "tokens", "fields"):
            _text(name, getattr(self, name))
        _one_of("locality", self.locality, get_args(Locality))
        _one_of("truncate_offset", self.truncate_offset, get_args(TruncateOffset))
        if self.hop_us is not None and self.window_us is None:
            raise PlanError(
                f"the option hop_us is {self.hop_us} and window_us is not given",
                fix="Set cut_into_windows_duration too",
            )
        self._check_columns()
        if self.min_tps is not None and self.max_tps is not None and self.min_tps > self.max_tps:
            raise PlanError(
                f"the option min_tps {self.min_tps} is above max_tps {self.max_tps}:"
                " nothing would be kept",
                fix="Exchange or widen them",
            )
        low, high = self.min_duration_us, self.max_duration_us
        if low is not None and high is not None and low > high:
            raise PlanError(
                f"the option min_duration_us {low} is above max_duration_us {high}:"
                " nothing would be kept",
                fix="Exchange or widen them",
            )

    @property
    def reshapes(self) -> bool:
        """Whether samples may have another length than their rows, or be several of one row."""
        return self.perturb_speed or (self.truncate_us, self.window_us, self.pad_us) != _AS_THEY_ARE

    def _check_columns(self) -> None:
        for digest, of, names in (
            ("tokens", "a tokenizer", ("min_tps", "max_tps")),
            ("fields", "columns", ("max_cer", "min_similarity", "excluded_speakers")),
        ):
            asked = [
                name
                for name in names
                if getattr(self, name) is not None and getattr(self, name) is not False
            ]
            if asked and getattr(self, digest) is None:
                raise PlanError(
                    f"the option {asked[0]} looks at the {digest} of rows, and none are given",
                    fix=f"Give {of} to count them with, or take the option out",
                )


_AS_THEY_ARE = (None, None, None)


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
    bins_tokens: tuple[int, ...] | None = field(default=None)
    """Most tokens per class of `bins_us`: classes are then of length and tokens (2-D)."""
    strict_2d: bool = True
    """Look for tokens only among the 2-D classes of the first length that fits."""
    max_tps_per_bin: tuple[float, ...] | None = field(default=None)
    """Most tokens by second per class of fixed size; lenient 2-D classes ignore it."""
    drop_last: bool = False
    """Drop what is left of a finite pass when it does not fill a step, instead of repeating."""
    oversize: Oversize = "alone"
    """A single sample above the limit is a batch of its own, or dropped, or an error."""

    def __post_init__(self) -> None:
        for name, kind in (
            ("bins_us", int),
            ("bucket_batch_size", int),
            ("bins_tokens", int),
            ("max_tps_per_bin", float),
        ):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(map(kind, value)))
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
        for name in ("bucketing", "strict_2d", "drop_last"):
            _true_or_false(name, getattr(self, name))
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

    @property
    def needs_tokens(self) -> bool:
        """Whether samples are batched by their tokens."""
        return self.bins_tokens is not None or self.max_tps_per_bin is not None

    def _check_bins(self) -> None:
        if self.sizes and not self.bucketing:
            raise PlanError(
                f"bucket_batch_size has {len(self.sizes)} sizes for 0 duration bins",
                fix="Give one size per bin, with bucketing on",
            )
        check_bins(self.bins_us, self.bins_tokens, self.bucket_batch_size, self.max_tps_per_bin)


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


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str) and not (value is None and name not in _NEVER_NONE):
        raise PlanError(f"the option {name} is {value!r}", fix="Give a text")


def _finite(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not isfinite(value):
        raise PlanError(f"the option {name} is {value}", fix="Give a number, or leave it out")


def _true_or_false(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise PlanError(f"the option {name} is {value!r}", fix="Give true or false")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise PlanError(f"the option {name} is {value!r}", fix=f"Use one of {', '.join(allowed)}")
