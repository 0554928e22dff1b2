"""What people ask of bins."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isnan
from typing import TYPE_CHECKING

from playhead.bins.padding import MOST_OPTIMIZED
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from playhead.bins.quantized import Quantization

__all__ = ["BinSettings"]

_MOST_BUCKETS = 10_000
_MOST_EXAMPLES = 10**15


@dataclass(frozen=True, kw_only=True, slots=True)
class BinSettings:
    """What people ask of bins.

    Raises
    ------
    ConfigError
        When a number means nothing, or two contradict each other.
    """

    num_buckets: int = 30
    """The most buckets of the (first) length."""
    in_tokens: bool = False
    """Whether lengths are in tokens; in seconds otherwise."""
    sub_buckets: int | None = None
    """Into how many bins each bucket is split by its second length; None makes bins of one."""
    outlier_threshold: float = 4.0
    """Standard deviations above the mean ratio of both lengths from which samples are left out."""
    num_examples: int | None = None
    """How many rows are looked at; None looks at all."""
    optimize: bool = False
    """Edges of least padding in the place of equal mass."""
    quantization: Quantization = "none"
    """Which numbers of tokens may be edges."""
    min_tokens: float | None = None
    """Shortest length in tokens that counts, of cuts too; needs `in_tokens`."""
    max_tokens: float | None = None
    """Longest length in tokens that counts, of cuts too; needs `in_tokens`."""
    max_tpt: float | None = None
    """Most tokens of the answer by token before it, of cuts too; needs `in_tokens`."""
    strict_2d: bool = True
    """Whether training looks for a bin among those of the first length that fits alone."""

    def __post_init__(self) -> None:
        most = MOST_OPTIMIZED if self.optimize else _MOST_BUCKETS
        for what, number, least, greatest in (
            ("--buckets", self.num_buckets, 2, most),
            ("--sub-buckets", self.sub_buckets, 1, _MOST_BUCKETS),
            ("--num_examples", self.num_examples, 1, _MOST_EXAMPLES),
        ):
            if number is not None and not least <= number <= greatest:
                raise ConfigError(
                    f"{what} is {number}",
                    fix=f"Give {least:,} or more"
                    if number < least
                    else f"Give at most {greatest:,}",
                )
        if self.in_tokens:
            low, high = self.min_tokens or 0, self.max_tokens
            if high is not None and (high < low or high < 1):
                raise ConfigError(
                    f"--max_tokens is {high:g}"
                    + (f" and --min_tokens {low:g}" if low else "")
                    + ": nothing would be left",
                    fix="Exchange or widen them",
                )
        if self.max_tpt is not None and not self.max_tpt > 0:
            raise ConfigError(f"--max_tpt is {self.max_tpt:g}", fix="Give a number above 0")
        if isnan(self.outlier_threshold) or not (
            isfinite(self.outlier_threshold) or self.outlier_threshold > 0
        ):
            raise ConfigError(
                f"--token_outlier_threshold is {self.outlier_threshold}",
                fix="Give a number, or inf to leave nothing out",
            )
