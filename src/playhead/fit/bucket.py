"""Buckets: what a config calls them, and how long the longest samples in them are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TOKEN_SECONDS", "Bound", "Bucket", "LengthRule", "buckets_of"]

Bound: TypeAlias = "float | tuple[float, float]"
"""A bucket as a config has it: seconds, tokens, or a pair of lengths; always an upper bound."""

TOKEN_SECONDS = 0.08
"""Seconds of audio in a token, where nothing says it."""

_FEWEST_TEXT_TOKENS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """A bucket, and the lengths of the longest samples in it."""

    bound: Bound
    """The bucket as a config has it."""
    input_length: int
    """Longest input: samples of audio, or tokens."""
    output_length: int
    """Longest output: tokens, or samples of audio."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthRule:
    """How the bounds of buckets become the lengths of a model's batches."""

    input_rate: int | None = None
    """Samples of a second of input; None where its numbers are taken as they are."""
    output_rate: int | None = None
    """Samples of a second of output; None where its numbers are taken as they are."""
    ratio: float = 12.0
    """Output by input, in the units of the bounds, where a bound is one number."""
    audio_share: float | None = None
    """Share of a token bucket that is audio, where audio stands among text; None elsewhere."""
    token_seconds: float = TOKEN_SECONDS
    """Seconds of audio in a token, with `audio_share`."""


def buckets_of(bounds: Sequence[Bound], rule: LengthRule) -> tuple[Bucket, ...]:
    """Return the buckets of a model.

    Parameters
    ----------
    bounds
        The buckets as a config has them.
    rule
        How they become lengths.

    Examples
    --------
    >>> buckets_of([2.5], LengthRule(input_rate=16_000))
    (Bucket(bound=2.5, input_length=40000, output_length=30),)
    >>> buckets_of([(2.5, 9)], LengthRule(input_rate=16_000))[0].output_length
    9
    >>> buckets_of([100], LengthRule(input_rate=16_000, audio_share=0.75))
    (Bucket(bound=100, input_length=96000, output_length=25),)
    >>> buckets_of([(100, 40)], LengthRule(input_rate=16_000, audio_share=0.75))
    (Bucket(bound=(100, 40), input_length=96000, output_length=65),)
    """
    return tuple(_bucket(bound, rule) for bound in bounds)


def _bucket(bound: Bound, rule: LengthRule) -> Bucket:
    first, second = bound if isinstance(bound, tuple) else (bound, None)
    if rule.audio_share is not None:
        share, tokens = Fraction(str(rule.audio_share)), Fraction(str(first))
        audio = max(1, ceil(share * tokens))
        seconds = audio * Fraction(str(rule.token_seconds))
        # Tokens of an answer come after those of audio and question.
        text = (1 - share) * tokens + Fraction(str(second or 0))
        return Bucket(
            bound=bound,
            input_length=ceil(seconds * (rule.input_rate or 1)),
            output_length=max(_FEWEST_TEXT_TOKENS, ceil(text)),
        )
    # As written in decimals: 0.1 s at 16,000 are 1,600 samples, not one more.
    longest = Fraction(str(first))
    answer = longest * Fraction(str(rule.ratio)) if second is None else Fraction(str(second))
    return Bucket(
        bound=bound,
        input_length=max(1, ceil(longest * (rule.input_rate or 1))),
        output_length=max(1, ceil(answer * (rule.output_rate or 1))),
    )
