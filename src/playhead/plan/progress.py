"""How far one leaf has been drawn: its place in a pass, and the rows that the pass is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["LeafProgress", "PassOrder", "advanced"]

PassOrder = Literal["declared", "rows", "shards"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafProgress:
    """A place in the endless sequence of passes over a leaf.

    A pass keeps the rows, the seed and the order that it began with, whatever becomes of the leaf
    and the options meanwhile: a change joins with the pass after it.
    """

    pass_: int
    """Passes that were finished before this one."""
    done: int
    """Rows of this pass that were drawn."""
    rows: int
    """Rows that this pass is over."""
    fingerprint: str
    """Digest of these rows; of all rows of the leaf where the pass is over slices."""
    seed: int
    """The seed that orders this pass."""
    order: PassOrder
    """How this pass is ordered."""
    slice_length: int | None = None
    """Rows of a shard that it is over; None takes all."""
    next_rows: int
    """Rows that later passes are over."""
    next_fingerprint: str
    """Digest of these rows; of all rows of the leaf where later passes are over slices."""
    next_slice_length: int | None = None
    """Rows of a shard that they are over; None takes all."""

    @property
    def remaining(self) -> int:
        """Rows of this pass that were not drawn."""
        return self.rows - self.done


def advanced(
    progress: LeafProgress, draws: int, *, seed: int, order: PassOrder, finite: bool
) -> LeafProgress:
    """Return the place after some more draws.

    Parameters
    ----------
    progress
        The place before them.
    draws
        How many rows are drawn.
    seed, order
        What passes that begin on the way are ordered by.
    finite
        Whether the leaf stays at the end of its pass.
    """
    if finite or not draws or draws < progress.remaining:
        return replace(progress, done=progress.done + draws)
    passes, done = divmod(draws - progress.remaining, progress.next_rows)
    return LeafProgress(
        pass_=progress.pass_ + 1 + passes,
        done=done,
        rows=progress.next_rows,
        fingerprint=progress.next_fingerprint,
        seed=seed,
        order=order,
        slice_length=progress.next_slice_length,
        next_rows=progress.next_rows,
        next_fingerprint=progress.next_fingerprint,
        next_slice_length=progress.next_slice_length,
    )
