"""Going on from a saved position although topology, options or data may have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from playhead.errors import PositionError
from playhead.plan.chain import pool_of, running_link, source_of
from playhead.plan.checks import check_blend
from playhead.plan.deal import LinkKey, count_batches
from playhead.plan.items import accept, draw_items
from playhead.plan.opening import open_window
from playhead.plan.position import Link
from playhead.plan.progress import advanced
from playhead.plan.roster import Roster, reduced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.position import Position
    from playhead.plan.progress import LeafProgress
    from playhead.plan.settings import Batching, Shape

__all__ = ["OnChange", "resume"]

OnChange = Literal["error", "restart_pass"]


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
        saved and an endless blend goes on (or the other way round).
    """
    check_blend(leaves, shape, batching)
    if position.shape.finite != shape.finite:
        kinds = ("an endless blend", "a finite pass")
        raise PositionError(
            f"the state is of {kinds[position.shape.finite]}, and this is {kinds[shape.finite]}",
            fix="Load it where it was saved",
        )
    notes: list[str] = []
    position = _with_moves(position, leaves, notes)
    if reseed is not None:
        position = replace(position, next_seed=None if reseed == position.seed else reseed)
    present = {position.moved.get(leaf.key, leaf.key): leaf for leaf in leaves}
    changed = _changed(position, present, on_change, notes)
    if position.is_window_start:
        entries = _restarted(position.leaves, changed, present, shape.finite)
        return _reopened(position, entries, leaves, shape, batching), tuple(notes)
    taken, windows = _taken(position)
    lost = _lost(position, present, changed, taken)
    linking: list[str] = []
    linked = None if lost else _linked_without(position, leaves, present, batching, linking)
    if linked is None:
        lost = lost or _absent(position, present)
        entries = _ended(position, taken)
        entries = _restarted(entries, changed, present, shape.finite)
        notes.append(_what_is_lost(position, leaves, present, lost, taken))
        position = replace(position, window=position.window + windows)
        return _reopened(position, entries, leaves, shape, batching), tuple(notes)
    if changed:
        entries = _restarted(linked.leaves, changed, present, shape.finite)
        linked = replace(linked, leaves=entries)
    _note_next_window(linked, present, shape, notes)
    return linked, (*notes, *linking)


def _with_moves(position: Position, leaves: Sequence[LeafColumns], notes: list[str]) -> Position:
    """Match leaves under new keys with the progress of leaves that are gone, by their content."""
    known = {position.moved.get(leaf.key, leaf.key) for leaf in leaves}
    missing = [key for key in position.leaves if key not in known]
    fresh = [
        leaf for leaf in leaves if position.moved.get(leaf.key, leaf.key) not in position.leaves
    ]
    moved = dict(position.moved)
    for key in missing:
        progress = position.leaves[key]
        for leaf in fresh:
            rows = leaf.num_rows
            if (
                rows
                and rows == progress.next_rows
                and leaf.digest(rows) == progress.next_fingerprint
            ):
                moved[leaf.key] = key
                fresh.remove(leaf)
                notes.append(
                    f"leaf {leaf.name!r} ({leaf.key}) has the data of {key}, which is gone: it goes"
                    " on from there"
                )
                break
    return replace(position, moved=moved) if moved != position.moved else position


def _changed(
    position: Position,
    present: Mapping[str, LeafColumns],
    on_change: OnChange,
    notes: list[str],
) -> list[str]:
    """Keys of the leaves whose rows are not those that were drawn from."""
    changed: list[str] = []
    for key, progress in position.leaves.items():
        leaf = present.get(key)
        if leaf is None:
            continue
        what = _difference(progress, leaf)
        if what is None:
            continue
        if on_change == "error":
            raise PositionError(
                f"the data of leaf {leaf.name!r} are not those that the state was saved with:"
                f" {what}",
                where=leaf.key,
                fix="Restore them, or set on_change to restart_pass to read this leaf from its"
                " first row again",
            )
        changed.append(key)
        notes.append(f"the data of leaf {leaf.name!r} changed ({what}): its pass starts over")
    return changed


def _difference(progress: LeafProgress, leaf: LeafColumns) -> str | None:
    for rows, digest in (
        (progress.rows, progress.fingerprint),
        (progress.next_rows, progress.next_fingerprint),
    ):
        if leaf.num_rows >= rows and leaf.digest(rows) == digest:
            continue
        if leaf.explain_change is not None:
            return leaf.explain_change(digest, rows)
        if leaf.num_rows < rows:
            return f"it had {rows} rows and has {leaf.num_rows}"
        return f"the content of its first {rows} rows differs"
    return None


def _restarted(
    entries: Mapping[str, LeafProgress],
    changed: Sequence[str],
    present: Mapping[str, LeafColumns],
    finite: bool,
) -> dict[str, LeafProgress]:
    """Return the entries, with passes over changed leaves started over on the rows of today."""
    restarted = dict(entries)
    for key in changed:
        rows = present[key].num_rows
        digest = present[key].digest(rows)
        restarted[key] = replace(
            entries[key],
            pass_=entries[key].pass_ + (0 if finite else 1),
            done=0,
            rows=rows,
            fingerprint=digest,
            next_rows=rows,
            next_fingerprint=digest,
        )
    return restarted


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
    kept = accept(drawn, position.shape.min_duration_us, position.shape.max_duration_us, {})
    read = np.array(position.read or nothing, dtype=np.int64)
    unread = np.where(gone, taken, np.bincount(kept.leaf, minlength=len(taken))) - read
    counts = [
        f"{present[key].name if key in present else key}: {'up to ' if key in lost else ''}{count}"
        for key, count in zip(position.leaves, unread.tolist(), strict=True)
        if count > 0
    ]
    called = [
        present[key].name if key in present else f"the leaf with key {key}, which is gone,"
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
        source = source_of(position, leaves)
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
