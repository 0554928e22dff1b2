"""Bins of fixed batch sizes: by one length, or by two."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import PlanError
from playhead.plan.effort import Effort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching

__all__ = [
    "NO_BIN",
    "batch_sizes",
    "bins_by_length",
    "bins_in_2d",
    "check_bins",
    "cut_2d",
    "successors",
    "tokens_per_second",
    "tokens_per_token",
]

NO_BIN = -1
"""The bin of a sample that no bin takes."""

_US = 1_000_000
# Above every number of tokens (32 bits) and, times the number of bins, within 63 bits.
_TOKEN_RADIX = 1 << 33


def tokens_per_second(
    tokens: NDArray[np.int64], length_us: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Tokens by seconds of the final length; a sample without length counts as one microsecond."""
    return tokens.astype(np.float64) * _US / np.maximum(length_us, 1)


def tokens_per_token(answer: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.float64]:
    """Tokens of an answer by token before it; endlessly many where nothing is before it."""
    endless = np.where(answer > 0, np.inf, 0.0)
    return np.where(before > 0, answer / np.maximum(before, 1), endless)


def check_bins(
    bins: Sequence[int] | None,
    bins_tokens: Sequence[int] | None,
    sizes: Sequence[int] | None,
    ratios: Sequence[float] | None,
    *,
    in_tokens: bool,
) -> None:
    """Refuse bins that are not sorted, or that do not belong together.

    Parameters
    ----------
    bins, bins_tokens
        Borders of the bins; with tokens, bin i takes (bins[i], bins_tokens[i]) and less.
    sizes
        Samples of a batch, per bin.
    ratios
        Most tokens by second, or by token before the answer, per bin.
    in_tokens
        Whether lengths are in tokens.

    Raises
    ------
    PlanError
        Naming what is wrong with them.
    """
    if bins_tokens is None:
        _check_1d(bins, sizes)
    else:
        _check_2d(bins or (), bins_tokens, sizes)
    if ratios is None:
        return
    name, unit = ("max_tpt", "token") if in_tokens else ("max_tps", "second")
    if sizes is None or len(ratios) != len(sizes):
        raise PlanError(
            f"{name} has {len(ratios)} ratios for {len(sizes or ())} bins with a batch size",
            fix="Give one ratio per bin with bucket_batch_size, or a single number",
        )
    if any(not 0 < ratio < float("inf") for ratio in ratios):
        raise PlanError(
            f"the ratios {list(ratios)} of {name} are not positive numbers",
            fix=f"Give finite tokens per {unit}",
        )


def _check_1d(bins: Sequence[int] | None, sizes: Sequence[int] | None) -> None:
    if bins is not None and (not bins or bins[0] < 1 or any(b <= a for a, b in pairwise(bins))):
        raise PlanError(
            f"the bins {list(bins)} are not positive and strictly ascending",
            fix="Sort them, and name each border once",
        )
    if sizes is None:
        return
    if bins is None or len(bins) != len(sizes):
        raise PlanError(
            f"bucket_batch_size has {len(sizes)} sizes for {len(bins or ())} duration bins",
            fix="Give one size per bin, with bucketing on",
        )
    if min(sizes) < 1 or any(b > a for a, b in pairwise(sizes)):
        raise PlanError(
            f"the sizes {list(sizes)} of bucket_batch_size grow with the length or are not"
            " positive",
            fix="Give longer bins the same size or a smaller one",
        )


def _check_2d(us: Sequence[int], tokens: Sequence[int], sizes: Sequence[int] | None) -> None:
    if sizes is None or not len(us) == len(tokens) == len(sizes) or not sizes:
        raise PlanError(
            f"bins of length and tokens need a size each: there are {len(us)} lengths,"
            f" {len(tokens)} tokens and {len(sizes or ())} sizes of bucket_batch_size",
            fix="Give one size per bin, with bucketing on",
        )
    bins = list(zip(us, tokens, strict=True))
    if any(b <= a for a, b in pairwise(bins)) or us[0] < 1 or min(tokens) < 0:
        raise PlanError(
            f"the bins {[list(item) for item in bins]} are not positive and strictly ascending,"
            " by length and then by tokens",
            fix="Sort them, and name each once",
        )
    if max(tokens) >= _TOKEN_RADIX or len(us) > 1 << 16:
        raise PlanError("the bins are too many or too large", fix="Give fewer, smaller bins")
    if min(sizes) < 1:
        raise PlanError(f"the sizes {list(sizes)} of bucket_batch_size are not positive")
    for small, large in ((i, j) for j in range(len(bins)) for i in range(j)):
        if tokens[small] <= tokens[large] and sizes[small] < sizes[large]:
            raise PlanError(
                f"the sizes {list(sizes)} of bucket_batch_size grow: bin {list(bins[large])} takes"
                f" all that bin {list(bins[small])} takes and has a larger batch",
                fix="Give bins of longer samples with more tokens the same size or a smaller one",
            )


def batch_sizes(batching: Batching) -> list[int]:
    """Most samples of a batch, per bin, within all limits that are given."""
    sizes = list(batching.sizes)
    if batching.batch_size is not None:
        sizes = [min(size, batching.batch_size) for size in sizes]
    effort = Effort.of(batching)
    if effort.limit is not None and not batching.packed:
        limits = [effort.limit // effort.one(border) for border in batching.bins or ()]
        sizes = [max(1, min(size, most)) for size, most in zip(sizes, limits, strict=True)]
    return sizes


def bins_by_length(length: NDArray[np.int64], bins: Sequence[int]) -> NDArray[np.int64]:
    """First bin whose inclusive border is not below the length; the number of bins above all.

    Examples
    --------
    >>> bins_by_length(np.array([3, 5, 6, 10]), [5, 9]).tolist()
    [0, 0, 1, 2]
    """
    return np.searchsorted(np.array(bins, dtype=np.int64), length, side="left")


def bins_in_2d(
    length: NDArray[np.int64],
    tokens: NDArray[np.int64],
    bins_length: Sequence[int],
    bins_tokens: Sequence[int],
    *,
    strict: bool,
) -> NDArray[np.int64]:
    """Bin of each sample among bins of two lengths, `NO_BIN` where none takes it.

    Strict: among the bins of the first border of the first length that is not below the sample's,
    the first that takes its second length. Lenient: the first bin of all that takes both.

    Parameters
    ----------
    length, tokens
        Both lengths of the samples (µs and tokens, or tokens both), shape (M,).
    bins_length, bins_tokens
        The bins, ascending by the first length and then by the second.
    strict
        Which of the two rules.

    Examples
    --------
    >>> bins = [10, 10, 20, 20], [5, 10, 12, 18]
    >>> item = np.array([8]), np.array([11])
    >>> bins_in_2d(*item, *bins, strict=True), bins_in_2d(*item, *bins, strict=False)
    (array([-1]), array([2]))
    """
    borders, first = np.unique(np.array(bins_length, dtype=np.int64), return_index=True)
    last = np.append(first[1:], len(bins_length))
    group_of = np.repeat(np.arange(len(borders)), last - first)
    places = group_of * _TOKEN_RADIX + np.array(bins_tokens, dtype=np.int64)
    out = np.full(len(length), NO_BIN, dtype=np.int64)
    group = np.searchsorted(borders, length, side="left")
    left = np.flatnonzero(group < len(borders))
    group = group[left]
    while len(left):
        wanted = np.minimum(tokens[left].astype(np.int64), _TOKEN_RADIX - 1)
        found = np.searchsorted(places, group * _TOKEN_RADIX + wanted, side="left")
        fits = found < last[group]
        out[left[fits]] = found[fits]
        if strict:
            break
        left, group = left[~fits], group[~fits] + 1
        inside = group < len(borders)
        left, group = left[inside], group[inside]
    return out


def successors(
    bins_length: Sequence[int], bins_tokens: Sequence[int], sizes: Sequence[int]
) -> list[int | None]:
    """Return where the rest of each bin goes: the first later bin that takes all that it takes.

    The next bin in the list may be one for fewer tokens, in which the rest would not fit.

    Examples
    --------
    >>> successors([10, 10, 20, 20], [5, 10, 7, 12], [8, 6, 4, 2])
    [1, 3, 3, None]
    """
    count = len(bins_length)
    return [
        next(
            (
                later
                for later in range(place + 1, count)
                if bins_length[later] >= bins_length[place]
                and bins_tokens[later] >= bins_tokens[place]
                and sizes[later] <= sizes[place]
            ),
            None,
        )
        for place in range(count)
    ]


def cut_2d(
    order: NDArray[np.int64],
    counts: Sequence[int],
    sizes: Sequence[int],
    goes_to: Sequence[int | None],
) -> tuple[NDArray[np.int64], list[int]]:
    """Cut samples that lie bin after bin into full batches per bin.

    What does not fill a batch of its bin goes to the front of the bin that `goes_to` names, or is
    a small batch of its own where there is none.

    Parameters
    ----------
    order
        Numbers of the samples, bin after bin, shape (M,).
    counts
        Samples of each bin.
    sizes
        Samples of a batch of each bin.
    goes_to
        A later bin for each, or None.

    Returns
    -------
    order, starts
        The numbers in the order in which they are cut, and where each batch begins in it.

    Examples
    --------
    >>> cut_2d(np.arange(8), [3, 3, 2], [2, 2, 2], [2, None, None])
    (array([0, 1, 3, 4, 5, 2, 6, 7]), [0, 2, 4, 5, 7])
    """
    moved: list[list[NDArray[np.int64]]] = [[] for _ in sizes]
    parts: list[NDArray[np.int64]] = []
    starts: list[int] = []
    begin = at = 0
    for place, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        queue = np.concatenate([*moved[place], order[begin : begin + count]])
        begin += count
        target = goes_to[place]
        kept = len(queue) if target is None else len(queue) // size * size
        parts.append(queue[:kept])
        starts.extend(range(at, at + kept, size))
        at += kept
        if target is not None:
            moved[target].append(queue[kept:])
    return np.concatenate(parts), starts
