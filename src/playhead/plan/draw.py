"""The rows that leaves give when so many of each are drawn from where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import Purpose, derive, key
from playhead.plan.permute import Spans, permute_spans, ranges
from playhead.plan.shards import rows_by_shard
from playhead.plan.slices import Slices, slices_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.position import Position
    from playhead.plan.progress import LeafProgress, PassOrder
    from playhead.plan.roster import Roster

__all__ = ["Drawn", "Source", "draw_rows"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Source:
    """The leaves of a window with their columns."""

    position: Position
    """Where the leaves stand."""
    roster: Roster
    """The same as arrays."""
    columns: Sequence[LeafColumns | None]
    """Columns of each leaf of the roster; None where a leaf is not drawn from."""

    @property
    def has_slices(self) -> bool:
        """Whether a pass of any leaf is over slices of its shards."""
        return any(
            leaf.slice_length is not None or leaf.next_slice_length is not None
            for leaf in self.position.leaves.values()
        )

    def slices(self, number: int, *, running: bool) -> Slices | None:
        """Return what the running pass of a leaf, or a later one, takes of its shards."""
        columns, progress = self.columns[number], self._progress[number]
        if columns is None:
            return None
        return slices_of(columns, progress.slice_length if running else progress.next_slice_length)

    @property
    def _progress(self) -> list[LeafProgress]:
        return list(self.position.leaves.values())


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Drawn:
    """Draws: leaf after leaf in the roster's sequence, each in its own order; shape (K,)."""

    leaf: NDArray[np.int32]
    """Number of the leaf in the roster."""
    pass_: NDArray[np.int64]
    """Pass over the leaf."""
    row: NDArray[np.int64]
    """Row of the leaf."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Segments:
    """Stretches of passes: places first … first + count - 1 of a pass over `size` rows."""

    leaf: NDArray[np.int64]
    pass_: NDArray[np.int64]
    size: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    running: NDArray[np.bool_]

    def chosen(self, which: NDArray[np.int64]) -> _Segments:
        return _Segments(
            leaf=self.leaf[which],
            pass_=self.pass_[which],
            size=self.size[which],
            first=self.first[which],
            count=self.count[which],
            running=self.running[which],
        )


def draw_rows(source: Source, taken: NDArray[np.int64], counts: NDArray[np.int64]) -> Drawn:
    """Draw rows from every leaf.

    Parameters
    ----------
    source
        The leaves.
    taken
        Draws of each leaf since the start of the chain, shape (L,).
    counts
        How many more are drawn, shape (L,).
    """
    segments = _segments(source.roster, taken, counts)
    return Drawn(
        leaf=np.repeat(segments.leaf.astype(np.int32), segments.count),
        pass_=np.repeat(segments.pass_, segments.count),
        row=_rows(source, segments),
    )


def _segments(roster: Roster, taken: NDArray[np.int64], counts: NDArray[np.int64]) -> _Segments:
    leaf = roster.sequence[counts[roster.sequence] > 0]
    start = taken[leaf]
    end = start + counts[leaf]
    rest = roster.rows[leaf] - roster.done[leaf]
    length = np.maximum(roster.next_rows[leaf], 1)
    # Places are counted in draws since the start of the chain; the running pass is number 0.
    opening = np.where(start < rest, 0, 1 + (start - rest) // length)
    closing = np.where(end <= rest, 0, 1 + (end - 1 - rest) // length)
    passes = closing - opening + 1
    of = np.repeat(np.arange(len(leaf)), passes)
    number = ranges(opening, passes)
    running = number == 0
    begins = np.where(running, -roster.done[leaf][of], rest[of] + (number - 1) * length[of])
    ends = np.where(running, rest[of], begins + length[of])
    from_ = np.maximum(start[of], begins)
    return _Segments(
        leaf=leaf[of],
        pass_=roster.pass_[leaf][of] + number,
        size=np.where(running, roster.rows[leaf][of], length[of]),
        first=from_ - begins,
        count=np.minimum(end[of], ends) - from_,
        running=running,
    )


def _rows(source: Source, segments: _Segments) -> NDArray[np.int64]:
    groups = _by_order(source, segments)
    if len(groups) == 1:
        ((order, seed),) = groups
        return _ordered(source, segments, order, seed)
    out = np.empty(int(segments.count.sum()), dtype=np.int64)
    start = np.cumsum(segments.count) - segments.count
    for (order, seed), which in groups.items():
        rows = _ordered(source, segments.chosen(which), order, seed)
        out[ranges(start[which], segments.count[which])] = rows
    return out


def _by_order(
    source: Source, segments: _Segments
) -> dict[tuple[PassOrder, int], NDArray[np.int64]]:
    """Segments by the order and seed of their pass; a running pass may have its own."""
    position = source.position
    usual: tuple[PassOrder, int] = (position.order_of_passes, position.seed)
    own: dict[int, tuple[PassOrder, int]] = {
        number: (leaf.order, leaf.seed)
        for number, leaf in enumerate(position.leaves.values())
        if (leaf.order, leaf.seed) != usual
    }
    everything = np.arange(len(segments.leaf))
    if not own:
        return {usual: everything}
    special = segments.running & np.isin(segments.leaf, list(own))
    lists: dict[tuple[PassOrder, int], list[int]] = {}
    for segment in everything[special].tolist():
        lists.setdefault(own[int(segments.leaf[segment])], []).append(segment)
    groups = {kind: np.array(which, dtype=np.int64) for kind, which in lists.items()}
    groups[usual] = everything[~special]
    return groups


def _ordered(source: Source, segments: _Segments, order: PassOrder, seed: int) -> NDArray[np.int64]:
    if order == "declared":
        places = ranges(segments.first, segments.count)
    elif order == "shards":
        places = _ordered_by_shard(source, segments, seed)
    else:
        places = _permuted(source, segments, seed)
    if source.has_slices:
        _to_slices(source, segments, places, seed)
    return places


def _to_slices(source: Source, segments: _Segments, places: NDArray[np.int64], seed: int) -> None:
    """Turn places in passes over sliced leaves into rows, in place."""
    ends = np.cumsum(segments.count)
    # A running pass may be over slices of another length than those after it.
    number = 2 * segments.leaf + segments.running
    borders = np.flatnonzero(np.diff(number, prepend=-1, append=-1)).tolist()
    for begin, end in pairwise(borders):
        leaf = int(segments.leaf[begin])
        slices = source.slices(leaf, running=bool(segments.running[begin]))
        if slices is not None:
            some = slice(int(ends[begin] - segments.count[begin]), int(ends[end - 1]))
            passes = np.repeat(segments.pass_[begin:end], segments.count[begin:end])
            word = int(source.roster.words[leaf])
            places[some] = slices.rows(places[some], passes, seed, word)


def _permuted(source: Source, segments: _Segments, seed: int) -> NDArray[np.int64]:
    words = source.roster.words[segments.leaf]
    keys = derive(key(seed, Purpose.ROWS), words, segments.pass_)
    return permute_spans(
        Spans(size=segments.size, key=keys, first=segments.first, count=segments.count)
    )


def _ordered_by_shard(source: Source, segments: _Segments, seed: int) -> NDArray[np.int64]:
    parts: list[NDArray[np.int64]] = []
    for number, leaf in enumerate(segments.leaf.tolist()):
        columns = source.columns[leaf]
        if columns is None or columns.shard is None:
            parts.append(_permuted(source, segments.chosen(np.array([number])), seed))
            continue
        size, pass_ = int(segments.size[number]), int(segments.pass_[number])
        word = int(source.roster.words[leaf])
        shard = columns.shard[:size]
        slices = source.slices(leaf, running=bool(segments.running[number]))
        if slices is not None:
            rows = slices.rows(np.arange(size), np.array([pass_]), seed, word)
            shard = columns.shard[rows]
        parts.append(
            rows_by_shard(
                shard,
                int(segments.first[number]),
                int(segments.count[number]),
                seed=seed,
                leaf=word,
                pass_=pass_,
            )
        )
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
