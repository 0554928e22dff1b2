"""Why nothing of a leaf is accepted: the option that is to blame, and what the data are like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.bins import tokens_per_second, tokens_per_token
from playhead.plan.effort import Effort
from playhead.plan.filters import refusals_of
from playhead.plan.pass_items import leaf_items
from playhead.plan.verdicts import side_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["length_text", "seconds", "why_nothing"]


def seconds(us: int) -> str:
    """Return a length as people read it.

    Examples
    --------
    >>> seconds(1_500_000)
    '1.5 s'
    """
    return f"{us / 1_000_000:g} s"


def length_text(length: int, batching: Batching) -> str:
    """Return a length in the unit that batches are made in (µs, or tokens), as people read it."""
    return f"{length} tokens" if batching.in_tokens else seconds(length)


def why_nothing(leaf: LeafColumns, shape: Shape, batching: Batching) -> str:
    """Return what refuses every sample of a leaf, with the range of what it looks at.

    Parameters
    ----------
    leaf
        A leaf of which nothing is accepted.
    shape, batching
        The settings.
    """
    if not leaf.num_rows:
        return f"{leaf.name!r} is empty"
    refused = refusals_of(leaf, shape, batching)
    if len(refused) == 1:
        (reason,) = refused
        return _WHY[reason](leaf, shape, batching)
    if set(refused) == {"min_duration", "max_duration"}:
        return f"min_duration and max_duration leave a gap, and {_durations(leaf, shape)}"
    counts = ", ".join(f"{reason} refuses {count}" for reason, count in refused.items())
    return f"of {sum(refused.values())} samples, {counts}; {_lengths(leaf, shape, batching)}"


def _lengths(leaf: LeafColumns, shape: Shape, batching: Batching) -> str:
    """Range of what batches are made by."""
    if not batching.in_tokens:
        return _durations(leaf, shape)
    return _sizes(leaf, shape)


def _sizes(leaf: LeafColumns, shape: Shape) -> str:
    low, high = _range(
        items.size for items in leaf_items(leaf, shape, None) if items.size is not None
    )
    return f"the lengths of {leaf.name!r} range from {low:g} to {high:g} tokens"


def _durations(leaf: LeafColumns, shape: Shape) -> str:
    low, high = _range(items.length for items in leaf_items(leaf, shape, None))
    if shape.reshapes:
        return (
            f"the durations of {leaf.name!r}, after speed, truncation, windows and padding, range"
            f" from {seconds(int(low))} to {seconds(int(high))}"
        )
    return f"the durations of {leaf.name!r} range from {seconds(int(low))} to {seconds(int(high))}"


def _range(columns: Iterable[NDArray[np.int64] | NDArray[np.float64]]) -> tuple[float, float]:
    ranges = [(float(column.min()), float(column.max())) for column in columns if len(column)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _side_range(leaf: LeafColumns, shape: Shape, name: str) -> str:
    values = side_column(leaf, shape.fields or "", name)
    said = values[~np.isnan(values)]
    return f"range from {said.min():g} to {said.max():g}"


def _min_duration(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"min_duration is {seconds(shape.min_duration_us or 0)} and {_durations(leaf, shape)}"


def _max_duration(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"max_duration is {seconds(shape.max_duration_us or 0)} and {_durations(leaf, shape)}"


def _last_bin(leaf: LeafColumns, shape: Shape, batching: Batching) -> str:
    last = (batching.bins or (0,))[-1]
    return (
        f"the last of the bins is {length_text(last, batching)} and"
        f" {_lengths(leaf, shape, batching)}"
    )


def _limit(leaf: LeafColumns, shape: Shape, batching: Batching) -> str:
    limit = length_text(max(Effort.of(batching).longest or 0, 0), batching)
    return f"the batch limit is {limit} and {_lengths(leaf, shape, batching)}"


def _no_length(leaf: LeafColumns, _: Shape, __: Batching) -> str:
    return f"no row of {leaf.name!r} has a length"


def _status(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    found = " or ".join(map(repr, leaf.statuses))
    return f"keep is {shape.keep!r} and the validation_status of {leaf.name!r} is {found}"


def _excluded(leaf: LeafColumns, _: Shape, __: Batching) -> str:
    return f"every row of {leaf.name!r} is excluded as bad"


def _speakers(leaf: LeafColumns, _: Shape, __: Batching) -> str:
    return f"excluded_speaker_ids holds the speakers of every row of {leaf.name!r}"


def _cer(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    found = _side_range(leaf, shape, "cer")
    return f"max_cer is {shape.max_cer:g} and the error rates of {leaf.name!r} {found}"


def _similarity(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    found = _side_range(leaf, shape, "similarity")
    return (
        f"min_context_speaker_similarity is {shape.min_similarity:g} and the similarities of"
        f" {leaf.name!r} {found}"
    )


def _tps_range(leaf: LeafColumns, shape: Shape) -> str:
    low, high = _range(
        tokens_per_second(items.tokens, items.length)
        for items in leaf_items(leaf, shape, None, ["tokens"])
        if items.tokens is not None
    )
    return f"the tokens per second of {leaf.name!r} range from {low:.4g} to {high:.4g}"


def _min_tps(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"min_tps is {shape.min_tps:g} and {_tps_range(leaf, shape)}"


def _max_tps(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"max_tps is {shape.max_tps:g} and {_tps_range(leaf, shape)}"


def _min_tokens(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"min_tokens is {shape.min_tokens} and {_sizes(leaf, shape)}"


def _max_tokens(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"max_tokens is {shape.max_tokens} and {_sizes(leaf, shape)}"


def _tpt_range(leaf: LeafColumns, shape: Shape, answer: str, before: str) -> str:
    low, high = _range(
        tokens_per_token(getattr(items, answer), getattr(items, before))
        for items in leaf_items(leaf, shape, None, [answer, before])
    )
    return (
        f"the tokens of the answer by token before it of {leaf.name!r} range from {low:.4g} to"
        f" {high:.4g}"
    )


def _min_tpt(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"min_tpt is {shape.min_tpt:g} and {_tpt_range(leaf, shape, 'answer', 'context')}"


def _max_tpt(leaf: LeafColumns, shape: Shape, _: Batching) -> str:
    return f"max_tpt is {shape.max_tpt:g} and {_tpt_range(leaf, shape, 'answer', 'context')}"


def _no_bucket(leaf: LeafColumns, shape: Shape, batching: Batching) -> str:
    if batching.in_tokens:
        sides = [
            _range(getattr(items, name) for items in leaf_items(leaf, shape, None, _BOTH))
            for name in _BOTH
        ]
        (low, high), (least, most) = sides
        return (
            "no bin of bucket_duration_bins takes any sample (or max_tpt of its bin forbids it); of"
            f" {leaf.name!r}, the tokens before the answer range from {low:g} to {high:g}, those of"
            f" the answer from {least:g} to {most:g}"
        )
    tokens = side_column(leaf, shape.tokens or "", "tokens")
    return (
        f"no bin of bucket_duration_bins takes any sample (or max_tps of its bin forbids it);"
        f" {_durations(leaf, shape)}, the tokens from {int(tokens.min())} to {int(tokens.max())},"
        f" and {_tps_range(leaf, shape)}"
    )


_BOTH = ("input", "output")

_WHY = {
    "no_length": _no_length,
    "min_duration": _min_duration,
    "max_duration": _max_duration,
    "min_tokens": _min_tokens,
    "max_tokens": _max_tokens,
    "validation_status": _status,
    "excluded": _excluded,
    "excluded_speaker_ids": _speakers,
    "max_cer": _cer,
    "min_context_speaker_similarity": _similarity,
    "min_tps": _min_tps,
    "max_tps": _max_tps,
    "min_tpt": _min_tpt,
    "max_tpt": _max_tpt,
    "above_last_bin": _last_bin,
    "no_bucket": _no_bucket,
    "oversize": _limit,
}
