"""The running link of a window, worked out again from the start of the window."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import PlanError, PositionError
from playhead.plan.deal import LinkKey, deal
from playhead.plan.draw import Source
from playhead.plan.items import Items, draw_items, interleaved
from playhead.plan.refusals import accepted, batching_questions, shape_questions, without
from playhead.plan.reshape import reshaped_by_key
from playhead.plan.roster import Roster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.deal import Dealt
    from playhead.plan.position import Link, Position

__all__ = ["Pool", "Running", "dealt_links", "pool_of", "running_link", "samples_of", "source_of"]

# More draws than this to find a sample that is accepted mean filters that accept next to nothing.
_MOST_FURTHER_DRAWS = 1 << 24
# Draws of several samples come to a whole number of steps within a few steps, if they ever do.
_STEPS_AHEAD = 8


# Columns that nothing but the filters looks at.
_ASKED_ONCE = {"verdict": None, "kind": None, "context": None, "answer": None}


@dataclass(slots=True, eq=False)
class Pool:
    """What a link deals out, and what was drawn and handed out to come here."""

    items: Items
    """Samples that are to be dealt out, in canonical order."""
    taken: NDArray[np.int64]
    """Draws of each leaf since the start of the chain, shape (L,)."""
    read: NDArray[np.int64]
    """Samples (each part of a row is one) of each leaf that links before handed out, shape (L,)."""
    windows: int
    """Windows of the chain that were drawn."""
    further: int = 0
    """Draws beyond the windows made for the running link."""
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    """Samples that filters and links dropped, by reason."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Running:
    """The running link of a window, dealt out."""

    source: Source
    """The leaves."""
    pool: Pool
    """What it was dealt from."""
    dealt: Dealt
    """Its batches."""
    key: LinkKey
    """What it is keyed by."""


def source_of(position: Position, leaves: Sequence[LeafColumns]) -> Source:
    """Return the leaves of a position's window with their columns."""
    by_key = {position.moved.get(leaf.key, leaf.key): leaf for leaf in leaves}
    columns = [
        by_key.get(key) if weight else None
        for key, weight in zip(position.leaves, position.weights, strict=True)
    ]
    return Source(position=position, roster=Roster.of(position), columns=columns)


def running_link(source: Source) -> Running:
    """Return the running link of a position."""
    position = source.position
    pool = _empty_pool(source)
    for number, link in enumerate(position.chain):
        key = _link_key(source, number)
        dealt = _deal(source, pool, link, key)
        if number == len(position.chain) - 1:
            return Running(source=source, pool=pool, dealt=dealt, key=key)
        _hand_out(pool, dealt, link.steps)
    raise AssertionError


def dealt_links(source: Source) -> Iterator[tuple[Link, Dealt]]:
    """Give every link of a position with its batches, the running one last."""
    pool = _empty_pool(source)
    for number, link in enumerate(source.position.chain):
        dealt = _deal(source, pool, link, _link_key(source, number))
        yield link, dealt
        _hand_out(pool, dealt, link.steps)


def pool_of(source: Source, links: int) -> Pool:
    """Return what is left after so many links of a position, before anything is added."""
    pool = _empty_pool(source)
    for number, link in enumerate(source.position.chain[:links]):
        dealt = _deal(source, pool, link, _link_key(source, number))
        _hand_out(pool, dealt, link.steps)
    return pool


def samples_of(source: Source, draws: Items, dropped: dict[str, int]) -> Items:
    """Return the samples that drawn rows give and no filter refuses.

    Parameters
    ----------
    source
        The leaves.
    draws
        Whole rows, as `draw_items` gives them.
    dropped
        Samples that are refused, by reason; added to.
    """
    shape = source.position.shape
    items = reshaped_by_key(draws, shape, source.roster.words, source.roster.seed)
    items = without(items, shape_questions(shape), dropped)
    items = replace(items, **_ASKED_ONCE)
    # Where every link batches by lengths in tokens, nothing looks at tokens by themselves.
    done = shape.multimodal and all(link.batching.in_tokens for link in source.position.chain)
    return replace(items, tokens=None) if done else items


def _empty_pool(source: Source) -> Pool:
    nothing = np.zeros(len(source.columns), dtype=np.int64)
    # As samples that nothing refuses, so that it has the columns that a link looks at.
    items = samples_of(source, draw_items(source, nothing, nothing), {})
    return Pool(items=items, taken=nothing, read=nothing.copy(), windows=0)


def _link_key(source: Source, number: int) -> LinkKey:
    roster = source.roster
    return LinkKey(seed=roster.seed, window=roster.window, link=number, shuffle=roster.shuffle)


def _deal(source: Source, pool: Pool, link: Link, key: LinkKey) -> Dealt:
    shape = source.position.shape
    parts = [pool.items]
    for _ in range(link.add):
        counts = source.roster.window_counts(pool.windows, pool.taken)
        _check_present(source, counts)
        drawn = draw_items(source, pool.taken, counts)
        if not shape.shuffle and not shape.finite:
            drawn = interleaved(drawn, counts[source.roster.sequence])
        parts.append(samples_of(source, drawn, pool.dropped))
        pool.taken = pool.taken + counts
        pool.windows += 1
    pool.items = Items.joined([part for part in parts if len(part)] or parts[:1])
    pool.further = 0

    def fill(need: int, batching: Batching) -> Items:
        return _further(source, pool, key.link, need, batching)

    dealt = deal(pool.items, link.batching, key, fill)
    for reason, count in dealt.dropped.items():
        pool.dropped[reason] = pool.dropped.get(reason, 0) + count
    return dealt


def _check_present(source: Source, counts: NDArray[np.int64]) -> None:
    for (key, progress), leaf, count in zip(
        source.position.leaves.items(), source.columns, counts.tolist(), strict=True
    ):
        if count and (leaf is None or leaf.num_rows < max(progress.rows, progress.next_rows)):
            raise PositionError(
                f"leaf {key!r} of the running window is missing or has lost rows",
                fix="Pass the position through playhead.plan.resume with these leaves first",
            )


def _hand_out(pool: Pool, dealt: Dealt, steps: int) -> None:
    leaves = dealt.items.leaf[dealt.handed_out(steps)]
    pool.read = pool.read + np.bincount(leaves, minlength=len(pool.read))
    pool.items = dealt.remaining(steps)


def _further(source: Source, pool: Pool, link: int, need: int, batching: Batching) -> Items:
    """Draw beyond the windows until so many samples are accepted, or a finite pass is over.

    Where draws give several samples, the last may give more than is needed. A few more draws then
    make the surplus whole steps, if they can: where batches are of one sample, nothing else can.
    """
    roster, per_step = source.roster, batching.micro_batches_per_step
    parts: list[Items] = []
    found, chunk = 0, need
    if source.position.shape.in_parts:
        chunk += _STEPS_AHEAD * per_step
    before = pool.taken
    while found < need:
        leaves = roster.further_leaves(link, before, pool.further, chunk)
        if not len(leaves):
            break
        drawn = _in_order_of(leaves, source, pool.taken)
        running = np.cumsum(_accepted_of_draws(drawn, source, batching))
        used = _draws_used(running, need - found, per_step)
        part = samples_of(source, drawn.chosen(slice(0, used)), pool.dropped)
        parts.append(without(part, batching_questions(batching), pool.dropped))
        found += int(running[used - 1])
        pool.taken = pool.taken + np.bincount(leaves[:used], minlength=len(before))
        pool.further += used
        chunk *= 2
        if pool.further > _MOST_FURTHER_DRAWS and not found:
            raise PlanError(
                f"of {pool.further} draws the filters and the batch limits accept none",
                fix="Widen the filters, the bins or the limit",
            )
    return Items.joined(parts) if parts else pool.items.chosen(slice(0, 0))


def _draws_used(running: NDArray[np.int64], need: int, per_step: int) -> int:
    """How many draws give so many samples, and whole steps beyond if some number of draws does."""
    enough = int(np.searchsorted(running, need))
    whole = np.flatnonzero((running[enough:] - need) % per_step == 0)
    return min(enough + (int(whole[0]) if len(whole) else 0) + 1, len(running))


def _in_order_of(leaves: NDArray[np.int64], source: Source, taken: NDArray[np.int64]) -> Items:
    """Draw one row from each of a sequence of leaves."""
    counts = np.bincount(leaves, minlength=len(taken)).astype(np.int64)
    _check_present(source, counts)
    drawn = draw_items(source, taken, counts)
    rank = np.argsort(source.roster.sequence)[leaves]
    place = np.empty(len(leaves), dtype=np.int64)
    place[np.argsort(rank, kind="stable")] = np.arange(len(leaves))
    return drawn.chosen(place)


def _accepted_of_draws(draws: Items, source: Source, batching: Batching) -> NDArray[np.int64]:
    """How many of the samples of each draw are accepted, shape (draws,)."""
    shape = source.position.shape
    items = reshaped_by_key(draws, shape, source.roster.words, source.roster.seed)
    good = accepted(items, shape, batching)
    if items.part is None:
        return good.astype(np.int64)
    return np.bincount(np.cumsum(items.part == 0)[good] - 1, minlength=len(draws))
