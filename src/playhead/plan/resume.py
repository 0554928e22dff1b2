"""Going on from a saved position although topology, options or data may have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import PositionError
from playhead.plan.chain import pool_of, running_link, samples_of, source_of
from playhead.plan.changes import OnChange, changed_leaves, restarted, with_moves
from playhead.plan.checks import check_blend
from playhead.plan.deal import LinkKey, count_batches
from playhead.plan.filters import with_exclusions
from playhead.plan.items import draw_items
from playhead.plan.opening import open_window
from playhead.plan.position import Link
from playhead.plan.progress import advanced
from playhead.plan.roster import Roster, reduced
from playhead.plan.verdicts import newest_exclusion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.position import Position
    from playhead.plan.progress import LeafProgress
    from playhead.plan.settings import Shape

__all__ = ["OnChange", "resume"]


def resume(
    position: Position,
    leaves: Sequence[LeafColumns],
    shape: Shape,
    batching: Batching,
    *,
    reseed: int | None = None,
    on_change: OnChange = "error",
) -> tuple[Position, tuple[str, ...]]:
    """Return the position to go on from, and what people should know about it.

    With nothing changed, the position comes back as it is. Another batching deals out what is left
    of the running window anew. Another shape, weights, new leaves and another seed take effect at
    the next window. A leaf of the running window that is gone, or whose data changed, ends that
    window: without its lengths nobody can tell which samples were in the batches handed out.

    Parameters
    ----------
    position
        Where training stands.
    leaves
        The leaves as they are now.
    shape, batching
        The settings as they are now.
    reseed
        A new seed, from the next window on; passes that have begun keep their order.
    on_change
        What becomes of a leaf whose data are not what was drawn from: an error, or its pass starts
        over.

    Raises
    ------
    PlanError
        When no batches can be made of these leaves with these settings.
    PositionError
        When the position does not belong to these leaves: their data changed, or a finite pass was
        saved and an endless blend goes on (or the other way round). When rows that were excluded
        from the running window no longer are.
    """
    check_blend(leaves, shape, batching)
    if position.shape.finite != shape.finite:
        kinds = ("an endless blend", "a finite pass")
        raise PositionError(
            f"the state is of {kinds[position.shape.finite]}, and this is {kinds[shape.finite]}",
            fix="Load it where it was saved",
        )
    notes: list[str] = []
    position = with_moves(position, leaves, notes)
    _check_exclusions(position, leaves)
    if reseed is not None:
        position = replace(position, next_seed=None if reseed == position.seed else reseed)
    present = {position.moved.get(leaf.key, leaf.key): leaf for leaf in leaves}
    changed = changed_leaves(position, present, on_change, notes)
    if position.is_window_start:
        entries = restarted(position.leaves, changed, present, shape.finite)
        return _reopened(position, entries, leaves, shape, batching), tuple(notes)
    taken, windows = _taken(position)
    lost = _lost(position, present, changed, taken)
    linking: list[str] = []
    position = _measured(position, shape, batching)
    linked = None if lost else _linked_without(position, leaves, present, batching, linking)
    if linked is None:
        lost = lost or _absent(position, present)
        entries = _ended(position, taken)
        entries = restarted(entries, changed, present, shape.finite)
        notes.append(_what_is_lost(position, leaves, present, lost, taken))
        position = replace(position, window=position.window + windows)
        return _reopened(position, entries, leaves, shape, batching), tuple(notes)
    if changed:
        entries = restarted(linked.leaves, changed, present, shape.finite)
        linked = replace(linked, leaves=entries)
    _note_next_window(linked, present, with_exclusions(shape, leaves), notes)
    return linked, (*notes, *linking)


def _measured(position: Position, shape: Shape, batching: Batching) -> Position:
    """Return the position with the tokens that a batching needs, where its window has none."""
    drawn = position.shape
    if batching.in_tokens and not drawn.multimodal:
        if drawn.tokens is not None:
            raise PositionError(
                "the running window was drawn by durations and its tokens were counted for that;"
                " batches cannot be made by tokens before it is over",
                fix="Set use_multimodal_sampling to false until the next window",
            )
        # Nothing that the window was drawn with looked at tokens; its filters stay as they were.
        drawn = replace(
            drawn,
            multimodal=True,
            tokens=shape.tokens,
            audio_tokens=shape.audio_tokens,
            total_length=shape.total_length,
        )
    elif batching.needs_tokens and drawn.tokens is None:
        drawn = replace(drawn, tokens=shape.tokens)
    return replace(position, shape=drawn)


def _check_exclusions(position: Position, leaves: Sequence[LeafColumns]) -> None:
    """Refuse leaves whose exclusions were taken back: their rows would join the running window."""
    present = {position.moved.get(leaf.key, leaf.key) for leaf in leaves}
    if position.is_window_start or not present.issuperset(position.leaves):
        return
    if newest_exclusion(leaves) < position.shape.exclusions:
        raise PositionError(
            "rows that were excluded from the running window are not excluded any more",
            fix="Put the list of excluded rows back until the window is over",
        )


def _reopened(
    position: Position,
    entries: Mapping[str, LeafProgress],
    leaves: Sequence[LeafColumns],
    shape: Shape,
    batching: Batching,
) -> Position:
    return open_window(
        entries,
        leaves,
        shape,
        batching,
        seed=position.latest_seed,
        step=position.step,
        window=position.window,
        moved=position.moved,
        pass_=position.pass_ if shape.finite else 0,
    )


def _taken(position: Position) -> tuple[NDArray[np.int64], int]:
    """Draws of each leaf in the running chain, and its windows; needs no columns."""
    roster = Roster.of(position)
    taken = np.zeros(len(position.leaves), dtype=np.int64)
    windows = 0
    for number, link in enumerate(position.chain):
        for _ in range(link.add):
            taken = taken + roster.window_counts(windows, taken)
            windows += 1
        if link.further:
            taken = taken + roster.further_counts(number, taken, link.further)
    return taken, windows


def _lost(
    position: Position,
    present: Mapping[str, LeafColumns],
    changed: Sequence[str],
    taken: NDArray[np.int64],
) -> list[str]:
    """Leaves of the running window whose lengths are no longer known."""
    return [
        key
        for key, draws, weight in zip(
            position.leaves, taken.tolist(), position.weights, strict=True
        )
        if (draws and key not in present)
        or (key in changed and (draws or (weight and position.shape.finite)))
    ]


def _absent(position: Position, present: Mapping[str, LeafColumns]) -> list[str]:
    """Leaves that are gone and that the running window draws from, or might."""
    return [
        key
        for key, weight in zip(position.leaves, position.weights, strict=True)
        if weight and key not in present
    ]


def _linked_without(
    position: Position,
    leaves: Sequence[LeafColumns],
    present: Mapping[str, LeafColumns],
    batching: Batching,
    notes: list[str],
) -> Position | None:
    """Return the linked position; None if it cannot be dealt out without leaves that are gone.

    Nothing was drawn from them yet. But the window that a link adds to a small rest, and the draws
    that fill up a step, take from all leaves.
    """
    if not _absent(position, present):
        return _linked(position, leaves, batching, notes)
    try:
        linked = _linked(position, leaves, batching, notes)
        running_link(source_of(linked, leaves))
    except PositionError:
        return None
    return linked


def _ended(position: Position, taken: NDArray[np.int64]) -> dict[str, LeafProgress]:
    return {
        key: advanced(
            progress,
            draws,
            seed=position.seed,
            order=position.order_of_passes,
            finite=position.shape.finite,
        )
        for (key, progress), draws in zip(position.leaves.items(), taken.tolist(), strict=True)
    }


def _what_is_lost(
    position: Position,
    leaves: Sequence[LeafColumns],
    present: Mapping[str, LeafColumns],
    lost: Sequence[str],
    taken: NDArray[np.int64],
) -> str:
    """Return the note that names every leaf with samples of the window that are not read."""
    source = source_of(position, leaves)
    gone = np.array([key in lost for key in position.leaves])
    nothing = np.zeros_like(taken)
    drawn = draw_items(source, nothing, np.where(gone, 0, taken))
    kept = samples_of(source, drawn, {})
    read = np.array(position.read or nothing, dtype=np.int64)
    unread = np.where(gone, taken, np.bincount(kept.leaf, minlength=len(taken))) - read
    # How many samples the rows of a lost leaf gave is not known where rows are cut into windows.
    whole = not position.shape.in_parts
    unread = np.where(gone & (not whole), taken, unread)
    upto = "up to " if whole else "those of up to as many rows as "
    counts = [
        f"{present[key].name if key in present else key}: {upto if key in lost else ''}{count}"
        for key, count in zip(position.leaves, unread.tolist(), strict=True)
        if count > 0
    ]
    called = [
        present[key].name if key in present else f"the leaf with key {key} (which is gone)"
        for key in lost
    ]
    new = [leaf.name for key, leaf in present.items() if key not in position.leaves]
    return (
        f"{', '.join(called)} cannot be read as before, so the rest of the running window is given"
        f" up; samples not read: {', '.join(counts) or 'none'}"
        + (f"; new since then: {', '.join(new)}" if new else "")
    )


def _note_next_window(
    position: Position, present: Mapping[str, LeafColumns], shape: Shape, notes: list[str]
) -> None:
    later: list[str] = []
    old_tokens = position.shape.tokens
    running = position.chain[-1].batching
    by_tokens = running.in_tokens or running.needs_tokens
    if by_tokens and old_tokens is not None and shape.tokens not in (None, old_tokens):
        notes.append(
            "texts have other tokens than the running window was planned with (another tokenizer,"
            " prompt format, or length of audio): until the next window its batches are as large as"
            " the old numbers say, and may exceed a limit in tokens"
        )
    if position.shape != shape:
        later.append("filters and drawing options")
    if not shape.finite:
        old = dict(zip(position.leaves, position.weights, strict=True))
        keys = sorted({*old, *present})
        now = reduced([present[key].weight if key in present else 0 for key in keys])
        if now != reduced([old.get(key, 0) for key in keys]):
            later.append("weights")
    new = [leaf.name for key, leaf in present.items() if key not in position.leaves]
    if new:
        later.append(f"new leaves ({', '.join(new)})")
    if position.next_seed is not None:
        later.append("the seed")
    if later:
        notes.append(f"changed {', '.join(later)}: in effect from the next window")


def _linked(
    position: Position, leaves: Sequence[LeafColumns], batching: Batching, notes: list[str]
) -> Position:
    """Return the position with a chain whose last link has this batching."""
    chain = list(position.chain)
    # A link that nothing was handed out of never was: restarts alone do not lengthen the chain.
    while not chain[-1].steps:
        chain.pop()
    last = chain[-1].batching
    if last != batching:
        # The new link may look at columns that those before it do not.
        tried = replace(position, chain=(*chain, Link(batching=batching, add=0, steps=0)))
        source = source_of(tried, leaves)
        pool = pool_of(source, len(chain))
        roster = source.roster
        key = LinkKey(
            seed=roster.seed, window=roster.window, link=len(chain), shuffle=roster.shuffle
        )
        few = count_batches(pool.items, batching, key) < 2 * batching.micro_batches_per_step
        follows = not roster.finite or bool(roster.remaining(pool.taken).any())
        chain.append(Link(batching=batching, add=int(few and follows), steps=0))
        notes.append(
            "the batching changed"
            + (
                f" (micro-batches per step from {last.micro_batches_per_step} to"
                f" {batching.micro_batches_per_step})"
                if last.micro_batches_per_step != batching.micro_batches_per_step
                else ""
            )
            + ": what is left of the running window is dealt out anew"
        )
    return replace(position, chain=tuple(chain))
