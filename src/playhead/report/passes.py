"""What a pass over every leaf gives: samples, refusals, lengths; by columns, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.filters import with_exclusions
from playhead.plan.pass_items import pass_items
from playhead.plan.refusals import batching_questions, shape_questions, sifted
from playhead.plan.reshape import SPEEDS
from playhead.plan.slices import rows_of_pass, slice_length_of
from playhead.report.length_counts import LengthCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.loader.run import Planning
    from playhead.plan import LeafColumns, Shape
    from playhead.plan.items import Items

__all__ = ["Passes", "passes_over"]

# Lengths that medians are taken of, over all leaves and of the smallest of them.
_MOST_LENGTHS = 1 << 22
_LEAST_LENGTHS = 100


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Passes:
    """One pass over each leaf; arrays have shape (L,), in the order of the leaves."""

    accepted: NDArray[np.int64]
    """Samples that nothing refuses."""
    refused: dict[str, NDArray[np.int64]]
    """Samples that are refused, by reason."""
    length_us: NDArray[np.float64]
    """Audio of the accepted samples (µs)."""
    tokens: NDArray[np.float64] | None
    """Their tokens; None where nothing counts them."""
    shortest: NDArray[np.int64]
    """Shortest accepted length (µs, or tokens, as batches are made)."""
    median: NDArray[np.float64]
    """Median accepted length; of leaves of millions, that of an even choice of their rows."""
    longest: NDArray[np.int64]
    """Longest accepted length; below 0 where nothing is accepted."""
    seconds: LengthCounts
    """Accepted samples of all leaves that are drawn, by their length (units of 10 ms)."""
    token_counts: LengthCounts | None
    """The same by their tokens."""


def passes_over(planning: Planning) -> Passes:
    """Look at every sample of every leaf once.

    Parameters
    ----------
    planning
        The leaves, and what becomes of their rows.
    """
    leaves = planning.leaves
    shape, batching = with_exclusions(planning.shape, leaves), planning.batching
    questions = shape_questions(shape) + batching_questions(batching)
    counting = _Counting(leaves, shape, in_tokens=batching.in_tokens)
    for items in pass_items(leaves, shape, batching):
        counting.add(sifted(items, questions, counting.refuse))
    return counting.result()


class _Counting:
    """Sums over the blocks of a pass.

    Parameters
    ----------
    leaves
        The leaves.
    shape
        What becomes of their rows.
    in_tokens
        Whether batches are made by tokens.
    """

    def __init__(self, leaves: Sequence[LeafColumns], shape: Shape, *, in_tokens: bool) -> None:
        size = len(leaves)
        self._in_tokens = in_tokens
        self._copies = len(SPEEDS) if shape.perturb_speed else 1
        rows = np.array([leaf.num_rows for leaf in leaves], dtype=np.int64)
        drawn = [rows_of_pass(leaf, slice_length_of(leaf, shape)) for leaf in leaves]
        # Of slices a pass takes some of what a leaf has; all samples are counted once a speed.
        self._share = np.array(drawn) / np.maximum(rows, 1) / self._copies
        self._is_drawn = np.array([shape.finite or leaf.weight > 0 for leaf in leaves])
        wanted = _MOST_LENGTHS * rows // max(int(rows.sum()), 1)
        self._stride = -(-rows // np.maximum(wanted, _LEAST_LENGTHS))
        self._accepted = np.zeros(size, dtype=np.int64)
        self._refused: dict[str, NDArray[np.int64]] = {}
        self._length_us = np.zeros(size)
        self._tokens = np.zeros(size)
        self._has_tokens = shape.tokens is not None or shape.multimodal
        self._shortest = np.full(size, np.iinfo(np.int64).max)
        self._longest = np.full(size, -1, dtype=np.int64)
        self._seconds = LengthCounts(unit=10_000)
        self._token_counts = LengthCounts(unit=1)
        self._some: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = []

    def refuse(self, reason: str, refused: NDArray[np.bool_], items: Items) -> None:
        """Count samples that are refused."""
        found = np.bincount(items.leaf[refused], minlength=len(self._accepted))
        before = self._refused.get(reason)
        self._refused[reason] = found if before is None else before + found

    def add(self, items: Items) -> None:
        """Count samples that are accepted."""
        if not len(items):
            return
        starts = np.flatnonzero(np.diff(items.leaf, prepend=-1))
        leaves = items.leaf[starts]
        audio = np.maximum(items.length, 0)
        lengths = np.maximum(items.lengths(in_tokens=self._in_tokens), 0)
        tokens = items.tokens if items.size is None else items.size
        self._accepted[leaves] += np.diff(starts, append=len(items))
        self._length_us[leaves] += np.add.reduceat(audio, starts)
        shortest = np.minimum.reduceat(lengths, starts)
        self._shortest[leaves] = np.minimum(self._shortest[leaves], shortest)
        longest = np.maximum.reduceat(lengths, starts)
        self._longest[leaves] = np.maximum(self._longest[leaves], longest)
        weight = self._share * self._is_drawn
        heard = items.length > 0
        self._seconds.add(audio[heard], weight[items.leaf[heard]])
        if tokens is not None:
            self._tokens[leaves] += np.add.reduceat(tokens, starts)
            self._token_counts.add(tokens, weight[items.leaf])
        chosen = items.row % self._stride[items.leaf] == 0
        self._some.append((items.leaf[chosen], lengths[chosen]))

    def result(self) -> Passes:
        """Return the sums."""
        return Passes(
            accepted=_rounded(self._accepted * self._share),
            refused={
                reason: _rounded(counts / self._copies) for reason, counts in self._refused.items()
            },
            length_us=self._length_us * self._share,
            tokens=self._tokens * self._share if self._has_tokens else None,
            shortest=self._shortest,
            median=self._medians(),
            longest=self._longest,
            seconds=self._seconds,
            token_counts=self._token_counts if self._has_tokens else None,
        )

    def _medians(self) -> NDArray[np.float64]:
        medians = np.zeros(len(self._accepted))
        if not self._some:
            return medians
        leaf = np.concatenate([one for one, _ in self._some])
        length = np.concatenate([one for _, one in self._some])
        order = np.lexsort((length, leaf))
        leaf, length = leaf[order], length[order]
        starts = np.flatnonzero(np.diff(leaf, prepend=-1))
        counts = np.diff(starts, append=len(leaf))
        low, high = starts + (counts - 1) // 2, starts + counts // 2
        medians[leaf[starts]] = (length[low] + length[high]) / 2
        return medians


def _rounded(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(values + 0.5).astype(np.int64)
