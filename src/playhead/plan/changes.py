"""Leaves whose data are not those that a position was saved with: moved, grown, or changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from playhead.errors import PositionError
from playhead.plan.slices import rows_of_pass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.plan.columns import LeafColumns
    from playhead.plan.position import Position
    from playhead.plan.progress import LeafProgress

__all__ = ["OnChange", "changed_leaves", "restarted", "with_moves"]

OnChange = Literal["error", "restart_pass"]


def with_moves(position: Position, leaves: Sequence[LeafColumns], notes: list[str]) -> Position:
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
            same = leaf.digest(leaf.num_rows) == progress.next_fingerprint
            rows = rows_of_pass(leaf, progress.next_slice_length)
            if rows and rows == progress.next_rows and same:
                moved[leaf.key] = key
                fresh.remove(leaf)
                notes.append(
                    f"leaf {leaf.name!r} ({leaf.key}) has the data of {key}, which is gone: it goes"
                    " on from there"
                )
                break
    return replace(position, moved=moved) if moved != position.moved else position


def changed_leaves(
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
    for rows, digest, sliced in (
        (progress.rows, progress.fingerprint, progress.slice_length),
        (progress.next_rows, progress.next_fingerprint, progress.next_slice_length),
    ):
        if sliced is not None:
            what = _difference_of_slices(rows, digest, sliced, leaf)
            if what is not None:
                return what
            continue
        if leaf.num_rows >= rows and leaf.digest(rows) == digest:
            continue
        if leaf.explain_change is not None:
            return leaf.explain_change(digest, rows)
        if leaf.num_rows < rows:
            return f"it had {rows} rows and has {leaf.num_rows}"
        return f"the content of its first {rows} rows differs"
    return None


def _difference_of_slices(
    rows: int, digest: str, slice_length: int, leaf: LeafColumns
) -> str | None:
    """Rows that join or leave a shard move the slices of it: the whole leaf has to be the same."""
    if leaf.digest(leaf.num_rows) != digest:
        return (
            "with slice_length its passes take slices of every shard, and there are other rows now"
        )
    if leaf.slice_shard is None or rows_of_pass(leaf, slice_length) != rows:
        return "with slice_length its passes take slices of every shard, and its shards are others"
    return None


def restarted(
    entries: Mapping[str, LeafProgress],
    changed: Sequence[str],
    present: Mapping[str, LeafColumns],
    finite: bool,
) -> dict[str, LeafProgress]:
    """Return the entries, with passes over changed leaves started over on the rows of today."""
    restarted = dict(entries)
    for key in changed:
        leaf, sliced = present[key], entries[key].next_slice_length
        rows, digest = rows_of_pass(leaf, sliced), leaf.digest(leaf.num_rows)
        restarted[key] = replace(
            entries[key],
            pass_=entries[key].pass_ + (0 if finite else 1),
            done=0,
            rows=rows,
            fingerprint=digest,
            slice_length=sliced,
            next_rows=rows,
            next_fingerprint=digest,
        )
    return restarted
