"""What windows are cut with: the limits of a batch, and the classes that samples fall into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from playhead.errors import PlanError
from playhead.plan.bins import check_bins
from playhead.plan.values import at_least, one_of, true_or_false

__all__ = ["Batching", "Oversize"]

Oversize = Literal["alone", "drop", "error"]

# What 64 bits can square, and what a machine can hold a list of.
_MOST = {
    "micro_batches_per_step": 131_072,
    "batch_size": 10_000_000,
    "batch_duration_us": 10**15,
    "quadratic_duration_us": 10**15,
    "num_classes": 10_000,
    "batch_tokens": 10**10,
    "quadratic_tokens": 10**8,
}


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
    in_tokens: bool = False
    """Measure in tokens: the next five count, and what is in µs or by second does not."""
    batch_tokens: int | None = None
    """Most that samples times longest effective length of a batch may be (tokens)."""
    quadratic_tokens: int | None = None
    """Length (tokens) that counts double: a length l counts l + l² / this."""
    bins_length: tuple[int, ...] | None = field(default=None)
    """In the place of `bins_us`: borders of the length classes (tokens), ascending."""
    max_tpt_per_bin: tuple[float, ...] | None = field(default=None)
    """In the place of `max_tps_per_bin`: most tokens of the answer by token before it."""
    packed: bool = False
    """Samples are laid end to end, not padded: `batch_tokens` limits the sum of their lengths."""

    def __post_init__(self) -> None:
        for name, kind in (
            ("bins_us", int),
            ("bucket_batch_size", int),
            ("bins_tokens", int),
            ("bins_length", int),
            ("max_tps_per_bin", float),
            ("max_tpt_per_bin", float),
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
            "batch_tokens",
            "quadratic_tokens",
        ):
            value = getattr(self, name)
            at_least(name, value, 1)
            if value is not None and value > _MOST[name]:
                raise PlanError(
                    f"the option {name} is {value}", fix=f"Give a number of at most {_MOST[name]:,}"
                )
        for name in ("bucketing", "strict_2d", "drop_last", "in_tokens", "packed"):
            true_or_false(name, getattr(self, name))
        one_of("oversize", self.oversize, get_args(Oversize))
        self._check_bins()
        self._check_packed()
        if self.batch_size is None and self.limit is None and not self.sizes:
            limit = "batch_tokens" if self.in_tokens else "batch_duration"
            raise PlanError(
                "nothing limits a batch", fix=f"Set {limit}, batch_size or bucket_batch_size"
            )

    @property
    def limit(self) -> int | None:
        """Most that samples times longest effective length may be (µs, or tokens)."""
        return self.batch_tokens if self.in_tokens else self.batch_duration_us

    @property
    def quadratic(self) -> int | None:
        """Length that counts double (µs, or tokens)."""
        return self.quadratic_tokens if self.in_tokens else self.quadratic_duration_us

    @property
    def bins(self) -> tuple[int, ...] | None:
        """Inclusive upper borders of the length classes (µs, or tokens)."""
        return self.bins_length if self.in_tokens else self.bins_us

    @property
    def ratios(self) -> tuple[float, ...] | None:
        """Most tokens by second, or by token before the answer, per class of fixed size."""
        return self.max_tpt_per_bin if self.in_tokens else self.max_tps_per_bin

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
        return self.in_tokens or self.needs_answers

    @property
    def needs_answers(self) -> bool:
        """Whether it matters which of the tokens are the answer."""
        return self.bins_tokens is not None or self.ratios is not None

    def _check_bins(self) -> None:
        if self.sizes and not self.bucketing:
            raise PlanError(
                f"bucket_batch_size has {len(self.sizes)} sizes for 0 duration bins",
                fix="Give one size per bin, with bucketing on",
            )
        check_bins(
            self.bins,
            self.bins_tokens,
            self.bucket_batch_size,
            self.ratios,
            in_tokens=self.in_tokens,
        )

    def _check_packed(self) -> None:
        if not self.packed:
            return
        if not self.in_tokens or self.batch_tokens is None:
            raise PlanError(
                "samples are packed by their tokens, and nothing limits these",
                fix="Set use_multimodal_sampling and batch_tokens",
            )
        if self.bins_tokens is not None:
            raise PlanError(
                "bins of two lengths say how large a padded batch may be, and packed ones are not"
                " padded",
                fix="Give bins of one length, or set use_packed_sequence_sampling to false",
            )
