"""Passes that take a slice of every shard: a keyed stretch of consecutive rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import Purpose, derive, key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["Slices", "rows_of_pass", "slice_length_of", "slices_of"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Slices:
    """What a pass takes of the shards of a leaf; every array has shape (shards,)."""

    first: NDArray[np.int64]
    """First row of each shard."""
    spare: NDArray[np.int64]
    """Rows of it that a pass leaves out."""
    ends: NDArray[np.int64]
    """Where its places end among those of a pass, the shards laid end to end."""

    @property
    def places(self) -> int:
        """Rows that a pass is over."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def rows(
        self, place: NDArray[np.int64], pass_: NDArray[np.int64], seed: int, leaf: int
    ) -> NDArray[np.int64]:
        """Rows at places of passes.

        Parameters
        ----------
        place
            0 ≤ place < `places`, shape (K,).
        pass_
            The pass of each, shape (K,).
        seed, leaf
            What the starts of slices are keyed by.
        """
        shard = np.searchsorted(self.ends, place, side="right")
        words = np.array([leaf], dtype=np.uint64)
        hashes = derive(key(seed, Purpose.SLICE), words, pass_, shard)
        start = (hashes % (self.spare[shard] + 1).astype(np.uint64)).astype(np.int64)
        before = np.concatenate([np.zeros(1, dtype=np.int64), self.ends])[shard]
        return self.first[shard] + start + (place - before)


def slice_length_of(leaf: LeafColumns, shape: Shape) -> int | None:
    """Rows of a shard that new passes over a leaf take; None takes all."""
    return None if leaf.slice_shard is None else shape.slice_length


def slices_of(leaf: LeafColumns, slice_length: int | None) -> Slices | None:
    """Return what passes of a leaf take of its shards; None where they take every row.

    Parameters
    ----------
    leaf
        The leaf; one without `slice_shard` is not sliced.
    slice_length
        Rows of a shard that a pass takes, all of a shard that is shorter.
    """
    if slice_length is None or leaf.slice_shard is None:
        return None
    cached = ("slices", slice_length)
    if cached not in leaf.cache:
        shard = leaf.slice_shard
        begins = np.flatnonzero(np.diff(shard, prepend=shard[:1] - 1) != 0)
        sizes = np.diff(begins, append=np.int64(len(shard)))
        taken = np.minimum(sizes, slice_length)
        leaf.cache[cached] = Slices(first=begins, spare=sizes - taken, ends=np.cumsum(taken))
    return leaf.cache[cached]


def rows_of_pass(leaf: LeafColumns, slice_length: int | None) -> int:
    """How many rows a pass over a leaf draws."""
    slices = slices_of(leaf, slice_length)
    return leaf.num_rows if slices is None else slices.places
