"""The samples that are dealt out in batches: rows with their lengths, after the filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.draw import draw_rows
from playhead.plan.permute import ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.draw import Drawn, Source

__all__ = ["UNKNOWN_LENGTH", "Items", "accept", "draw_items", "interleaved"]

UNKNOWN_LENGTH = -1
"""The length of a row of a leaf that is gone; such a row is never dealt out."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Items:
    """Samples in canonical order; every array has shape (M,)."""

    leaf: NDArray[np.int32]
    """Number of the leaf in the roster."""
    pass_: NDArray[np.int64]
    """Pass over the leaf."""
    row: NDArray[np.int64]
    """Row of the leaf."""
    length: NDArray[np.int64]
    """Length (µs)."""

    def __len__(self) -> int:
        return len(self.row)

    def chosen(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Items:
        """Return some of the samples, by number or mask."""
        return Items(
            leaf=self.leaf[which],
            pass_=self.pass_[which],
            row=self.row[which],
            length=self.length[which],
        )

    @staticmethod
    def joined(parts: Sequence[Items]) -> Items:
        """Return samples of one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return Items(
            leaf=np.concatenate([part.leaf for part in parts]),
            pass_=np.concatenate([part.pass_ for part in parts]),
            row=np.concatenate([part.row for part in parts]),
            length=np.concatenate([part.length for part in parts]),
        )


def draw_items(source: Source, taken: NDArray[np.int64], counts: NDArray[np.int64]) -> Items:
    """Draw rows and read their lengths, leaf after leaf; no filter is applied yet.

    Parameters
    ----------
    source, taken, counts
        As for `draw_rows`.
    """
    drawn = draw_rows(source, taken, counts)
    return Items(
        leaf=drawn.leaf, pass_=drawn.pass_, row=drawn.row, length=_lengths(source, drawn, counts)
    )


def interleaved(items: Items, counts: NDArray[np.int64]) -> Items:
    """Return samples that lie leaf after leaf, spread evenly: leaves alternate in proportion.

    Parameters
    ----------
    items
        What `draw_items` drew.
    counts
        How many of each leaf, in the order in which they lie, shape (L,).
    """
    # Draw i of q lies at (2i + 1) / 2q of the window, here in units of 2**-38.
    place = 2 * ranges(np.zeros_like(counts), counts) + 1
    place = (place << 38) // np.repeat(2 * counts, counts)
    return items.chosen(np.argsort(place, kind="stable"))


def _lengths(source: Source, drawn: Drawn, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    parts: list[NDArray[np.int64]] = []
    start = 0
    for leaf in source.roster.sequence[counts[source.roster.sequence] > 0].tolist():
        count = int(counts[leaf])
        columns = source.columns[leaf]
        if columns is None:
            parts.append(np.full(count, UNKNOWN_LENGTH))
        else:
            parts.append(columns.duration_us[drawn.row[start : start + count]])
        start += count
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def accept(items: Items, low: int | None, high: int | None, dropped: dict[str, int]) -> Items:
    """Return the samples that the length filters keep; what they drop is counted in `dropped`.

    Parameters
    ----------
    items
        Samples.
    low, high
        Shortest and longest length that is kept (µs, inclusive); None keeps all.
    dropped
        Counts by reason (`no_length`, `min_duration`, `max_duration`), added to.
    """
    items = _without(items, items.length < 0, "no_length", dropped)
    if low is not None:
        items = _without(items, items.length < low, "min_duration", dropped)
    if high is not None:
        items = _without(items, items.length > high, "max_duration", dropped)
    return items


def _without(
    items: Items, refused: NDArray[np.bool_], reason: str, dropped: dict[str, int]
) -> Items:
    count = int(np.count_nonzero(refused))
    if not count:
        return items
    dropped[reason] = dropped.get(reason, 0) + count
    return items.chosen(~refused)
