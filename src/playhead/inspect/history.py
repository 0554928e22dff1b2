"""How much of every leaf a run has been given, out of its columns and a position; exact.

What windows before the running one drew is whole passes and the first rows of the pass that the
leaf is in: which rows these are follows from the keyed order of the pass. Of the running window it
is what was handed out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from playhead.errors import PositionError
from playhead.plan.batch_columns import BatchColumns
from playhead.plan.chain import dealt_links, samples_of, source_of
from playhead.plan.draw import Source
from playhead.plan.items import draw_items
from playhead.plan.padding import Padding
from playhead.plan.refusals import batching_questions, without
from playhead.plan.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.items import Items
    from playhead.plan.position import Position
    from playhead.plan.progress import LeafProgress

__all__ = ["MOST_REDRAWN", "Amounts", "History", "history_of"]

MOST_REDRAWN: Final = 20_000_000
"""Draws of past passes that differ from each other that are made again at most."""

_BLOCK = 1 << 21


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Amounts:
    """Samples of every leaf of a position; arrays have shape (L,), in the order of its keys."""

    items: NDArray[np.int64]
    """How many."""
    us: NDArray[np.int64]
    """Their lengths together (µs), as they are trained on; texts have none."""
    tokens: NDArray[np.int64] | None
    """Their tokens together, as batches count them; None where nothing counts tokens."""

    @classmethod
    def none(cls, leaves: int) -> Amounts:
        """No sample of any leaf."""
        nothing = np.zeros(leaves, dtype=np.int64)
        return cls(items=nothing, us=nothing, tokens=nothing)

    @classmethod
    def of(cls, items: Items, leaves: int) -> Amounts:
        """Add up samples."""
        tokens = items.size if items.size is not None else items.tokens
        return cls(
            items=np.bincount(items.leaf, minlength=leaves),
            us=_summed(items.leaf, np.maximum(items.length, 0), leaves),
            tokens=None if tokens is None else _summed(items.leaf, tokens, leaves),
        )

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            items=self.items + other.items,
            us=self.us + other.us,
            tokens=(
                None if self.tokens is None or other.tokens is None else self.tokens + other.tokens
            ),
        )

    def times(self, count: NDArray[np.int64]) -> Amounts:
        """As many times."""
        return Amounts(
            items=self.items * count,
            us=self.us * count,
            tokens=None if self.tokens is None else self.tokens * count,
        )


def _summed(leaf: NDArray[np.int32], values: NDArray[np.int64], leaves: int) -> NDArray[np.int64]:
    # Whole numbers below 2**53 add up exactly: 285 years of audio in microseconds.
    return np.bincount(leaf, weights=values, minlength=leaves).astype(np.int64)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class History:
    """What was read of every leaf of a position; arrays have shape (L,), in the order of keys."""

    known: NDArray[np.bool_]
    """Of which leaves the columns are there, as they were drawn from."""
    of_pass: Amounts
    """One pass over each, as filters have it; 0 where nothing is known."""
    before: Amounts
    """Before the running window; of leaves that are not known, rows that were drawn."""
    inside: Amounts | None
    """Handed out of the running window; None where its plan cannot be made."""
    in_pass: Amounts
    """Of `before`, what is of the pass that each leaf is in."""
    padding: Padding | None
    """Of what was handed out of the running window; None where its plan cannot be made."""
    is_exact: bool
    """Whether every past pass was added up by itself, or is like the others."""

    @property
    def read(self) -> Amounts | None:
        """All that was read."""
        return None if self.inside is None else self.before + self.inside


def history_of(
    position: Position, columns: Mapping[str, LeafColumns], *, most_redrawn: int = MOST_REDRAWN
) -> History:
    """Add up what was read of every leaf.

    Parameters
    ----------
    position
        Where training stands.
    columns
        The columns of leaves as they were drawn from, by the keys of the position; those that are
        gone or have changed are missing.
    most_redrawn
        Where passes differ from each other, draws that are made again at most.
    """
    source = _all_of(position, columns)
    progress = list(position.leaves.values())
    size = len(progress)
    known = np.array([one is not None for one in source.columns], dtype=np.bool_)
    rows = _column(progress, "rows")
    done = _column(progress, "done")
    passes = _column(progress, "pass_")
    nothing = np.zeros(size, dtype=np.int64)
    here = np.where(known, rows, 0)
    whole = _declared(source, passes)
    of_pass = _added(whole, here)
    # The shorter of the two stretches of a pass is drawn.
    late = done > rows // 2
    first = _added(source, np.where(known & ~late, done, 0))
    rest = _added(source, np.where(known & late, rows - done, 0), begin=done)
    in_pass = _either(late, _less(of_pass, rest), first)
    past, is_exact = _past(source, of_pass, np.where(known, passes, 0), here, most_redrawn)
    before = past + in_pass
    unknown = np.where(known, nothing, passes * rows + done)
    before = replace(before, items=before.items + unknown)
    inside, padding = _inside(position, columns)
    return History(
        known=known,
        of_pass=of_pass,
        before=before,
        inside=inside,
        in_pass=in_pass,
        padding=padding,
        is_exact=is_exact,
    )


def _column(progress: Sequence[LeafProgress], name: str) -> NDArray[np.int64]:
    return np.fromiter((getattr(one, name) for one in progress), np.int64, len(progress))


def _all_of(position: Position, columns: Mapping[str, LeafColumns]) -> Source:
    """The leaves at the start of the passes that they are in, those without weight too."""
    roster = Roster.of(position)
    return Source(
        position=position,
        roster=replace(roster, done=np.zeros_like(roster.done)),
        columns=[columns.get(key) for key in position.leaves],
    )


def _declared(source: Source, passes: NDArray[np.int64]) -> Source:
    """The same leaves at the start of passes of these numbers, like the ones that they are in.

    Rows come in the order that is the quickest to read: of whole passes it does not matter.
    """
    position = source.position
    if source.has_slices:
        leaves = {
            key: replace(one, order="declared", next_slice_length=one.slice_length)
            for key, one in position.leaves.items()
        }
    else:
        # Numbers are those of the roster: of the leaves nothing but the order is looked at.
        one = next(iter(position.leaves.values()))
        leaves = dict.fromkeys(position.leaves, replace(one, order="declared"))
    return Source(
        position=replace(position, leaves=leaves),
        roster=replace(source.roster, pass_=passes, next_rows=source.roster.rows),
        columns=source.columns,
    )


def _past(
    source: Source,
    of_pass: Amounts,
    passes: NDArray[np.int64],
    rows: NDArray[np.int64],
    most_redrawn: int,
) -> tuple[Amounts, bool]:
    """Sums of the passes that were finished, and whether they are exact."""
    shape = source.position.shape
    if not (shape.perturb_speed or source.has_slices) or not passes.any():
        return of_pass.times(passes), True
    if int((passes * rows).sum()) > most_redrawn:
        return of_pass.times(passes), False
    anew = _declared(source, np.zeros_like(passes))
    return _added(anew, passes * rows), True


def _added(
    source: Source, counts: NDArray[np.int64], begin: NDArray[np.int64] | None = None
) -> Amounts:
    """Add up what filters leave of the next draws of each leaf, block by block."""
    size = len(counts)
    batching = source.position.chain[0].batching
    at = np.zeros_like(counts) if begin is None else np.where(counts > 0, begin, 0)
    left = counts
    total: Amounts | None = None
    while total is None or left.any():
        before = np.cumsum(left) - left
        now = np.clip(_BLOCK - before, 0, left)
        drawn = samples_of(source, draw_items(source, at, now), {})
        kept = without(drawn, batching_questions(batching), {})
        sums = Amounts.of(kept, size)
        total = sums if total is None else total + sums
        at, left = at + now, left - now
    return total


def _less(first: Amounts, second: Amounts) -> Amounts:
    minus = np.full_like(first.items, -1)
    return first + second.times(minus)


def _either(which: NDArray[np.bool_], first: Amounts, second: Amounts) -> Amounts:
    tokens: Any = None
    if first.tokens is not None and second.tokens is not None:
        tokens = np.where(which, first.tokens, second.tokens)
    return Amounts(
        items=np.where(which, first.items, second.items),
        us=np.where(which, first.us, second.us),
        tokens=tokens,
    )


def _inside(
    position: Position, columns: Mapping[str, LeafColumns]
) -> tuple[Amounts | None, Padding | None]:
    """What was handed out of the running window, and its padding."""
    size = len(position.leaves)
    if position.is_window_start:
        return Amounts.none(size), Padding()
    source = source_of(position, [])
    source = replace(
        source,
        columns=[
            columns.get(key) if weight else None
            for key, weight in zip(position.leaves, position.weights, strict=True)
        ],
    )
    total: Amounts | None = None
    padding = Padding()
    try:
        for link, dealt in dealt_links(source):
            if link.steps > dealt.num_steps:
                return None, None
            part = Amounts.of(dealt.items.chosen(dealt.handed_out(link.steps)), size)
            total = part if total is None else total + part
            batches = BatchColumns.of(dealt, link.batching)
            batches = batches.chosen(slice(0, link.steps * dealt.per_step))
            padding += Padding.of(batches)
    except PositionError:
        return None, None
    if total is None or tuple(total.items.tolist()) != (position.read or (0,) * size):
        # The data that it was dealt from were others.
        return None, None
    return total, padding
