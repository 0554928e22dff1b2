"""The buckets of a blend: how full their batches are, and how much of them is padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.report.figures import BucketFigures
from playhead.report.units import in_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan import Batching
    from playhead.plan.batch_columns import BatchColumns

__all__ = ["buckets_of", "limit_text"]

# Without bins a window has a hundred classes or more, with borders of its own.
_GROUPS = 20


def buckets_of(batches: BatchColumns) -> tuple[BucketFigures, ...]:
    """Return the buckets of a config, or batches of like length where it has none.

    Parameters
    ----------
    batches
        The batches.
    """
    if not len(batches):
        return ()
    batching = batches.batching
    borders = batching.bins
    if borders is None or not batching.bucketing:
        number, bounds = _by_amount(batches)
    else:
        number, bounds = batches.bins, [(border,) for border in borders]
        if batching.bins_tokens is not None:
            bounds = list(zip(borders, batching.bins_tokens, strict=True))
    return tuple(
        _bucket(
            batches.chosen(number == one),
            bounds[one] if one < len(bounds) else (int(batches.longest[number == one].max()),),
            batching.sizes[one] if batches.has_fixed_sizes else None,
        )
        for one in np.unique(number).tolist()
    )


def _by_amount(batches: BatchColumns) -> tuple[NDArray[np.int64], list[tuple[int, ...]]]:
    """Batches from short to long in groups of equal amounts, and the longest sample of each."""
    order = np.argsort(batches.longest, kind="stable")
    total = np.cumsum(batches.total[order].astype(np.float64))
    group = np.minimum((total * _GROUPS / max(float(total[-1]), 1.0)).astype(np.int64), _GROUPS - 1)
    # Batches of one length belong together.
    longest = batches.longest[order]
    ends = np.searchsorted(longest, longest, side="right") - 1
    distinct, ranked = np.unique(group[ends], return_inverse=True)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = ranked
    bounds = [(int(batches.longest[number == one].max()),) for one in range(len(distinct))]
    return number, bounds


def _bucket(batches: BatchColumns, bound: tuple[int, ...], size: int | None) -> BucketFigures:
    in_tokens = batches.batching.in_tokens
    length, *tokens = bound
    samples = int(batches.size.sum())
    return BucketFigures(
        bound=(in_unit(length, in_tokens=in_tokens), *map(float, tokens)),
        batches=len(batches),
        samples=samples,
        size=size,
        mean_size=samples / len(batches),
        fill=float(batches.fill.mean()),
        padding=batches.padding,
    )


def limit_text(batching: Batching) -> str:
    """Return what bounds a batch, in words.

    Examples
    --------
    >>> from playhead.plan import Batching
    >>> limit_text(Batching(batch_duration_us=600_000_000, batch_size=64))
    'batch_duration 600 s, batch_size 64'
    """
    words: list[str] = []
    unit = " tokens" if batching.in_tokens else " s"
    fixed = bool(batching.sizes) and batching.bucketing
    names = (
        ("batch_tokens", "quadratic_factor")
        if batching.in_tokens
        else (
            "batch_duration",
            "quadratic_duration",
        )
    )
    if fixed:
        kind = "2-D buckets" if batching.bins_tokens is not None else "buckets"
        words.append(f"bucket_batch_size of {len(batching.sizes)} {kind}")
    for name, value in zip(names, (batching.limit, batching.quadratic), strict=True):
        if value is not None:
            shown = in_unit(value, in_tokens=batching.in_tokens)
            words.append(f"{name} {shown:,g}{unit}")
    if batching.batch_size is not None:
        words.append(f"batch_size {batching.batch_size:,}")
    if batching.packed:
        words.append("packed")
    return ", ".join(words)
