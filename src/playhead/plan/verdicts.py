"""Filters that look at a row alone, whatever is drawn of it: one verdict a row, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.errors import PositionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["VERDICTS", "newest_exclusion", "side_column", "verdicts"]

VERDICTS = (
    "validation_status",
    "excluded",
    "excluded_speaker_ids",
    "max_cer",
    "min_context_speaker_similarity",
)
"""Why a row is refused, in the order in which it is asked; verdict 0 accepts, 1 is the first."""


def newest_exclusion(leaves: Sequence[LeafColumns]) -> int:
    """When the last row of any leaf was excluded; 0 where none was."""
    return max(
        (
            int(leaf.excluded_at.max())
            for leaf in leaves
            if leaf.excluded_at is not None and len(leaf.excluded_at)
        ),
        default=0,
    )


def side_column(leaf: LeafColumns, digest: str, name: str) -> NDArray[Any]:
    """Return a column of a side file of a leaf.

    Parameters
    ----------
    leaf
        The leaf.
    digest
        Digest of the side file.
    name
        The column.

    Raises
    ------
    PositionError
        When the leaf has no such side file, or one for other rows.
    """
    key = ("side", digest)
    found = leaf.cache.get(key)
    if found is None:
        found = None if leaf.side is None else leaf.side(digest)
        if found is None:
            raise PositionError(
                f"leaf {leaf.name!r} has no side file with digest {digest}, which holds the"
                f" {name} of the rows that the running window was drawn with",
                where=leaf.key,
                fix="Go back to the tokenizer, prompt format and filters that the state was saved"
                " with until the window is over, or put the side file back",
            )
        leaf.cache[key] = found
    if name not in found or len(found[name]) != leaf.num_rows:
        raise PositionError(
            f"the side file {digest} of leaf {leaf.name!r} has"
            f" {len(found[name]) if name in found else 'no'} {name} for {leaf.num_rows} rows",
            where=leaf.key,
            fix="Build it anew",
        )
    return found[name]


def verdicts(leaf: LeafColumns, shape: Shape) -> NDArray[np.uint8] | None:
    """Verdict on each row of a leaf, shape (N,); None where every row is accepted.

    Parameters
    ----------
    leaf
        The leaf.
    shape
        The filters.

    Raises
    ------
    PositionError
        When a side file that the filters look at is missing.
    """
    statuses = leaf.status is not None and len(leaf.statuses) > 0
    exclusions = leaf.excluded_rows is not None and bool(len(leaf.excluded_rows))
    if not statuses and not exclusions and shape.fields is None:
        return None
    key = (
        "verdicts",
        shape.keep,
        shape.exclusions if exclusions else 0,
        shape.fields,
        shape.max_cer,
        shape.min_similarity,
        shape.excluded_speakers,
    )
    if key not in leaf.cache:
        leaf.cache[key] = _computed(leaf, shape)
    return leaf.cache[key]


def _computed(leaf: LeafColumns, shape: Shape) -> NDArray[np.uint8] | None:
    out = np.zeros(leaf.num_rows, dtype=np.uint8)
    # From the last question to the first, so that the first that refuses a row has the last word.
    if shape.fields is not None:
        if shape.min_similarity is not None:
            out[side_column(leaf, shape.fields, "similarity") < shape.min_similarity] = 5
        if shape.max_cer is not None:
            out[side_column(leaf, shape.fields, "cer") > shape.max_cer] = 4
        if shape.excluded_speakers:
            out[side_column(leaf, shape.fields, "speaker").astype(np.bool_)] = 3
    if leaf.excluded_rows is not None and leaf.excluded_at is not None:
        out[leaf.excluded_rows[leaf.excluded_at <= shape.exclusions]] = 2
    if leaf.status is not None:
        wrong = np.array([*(status != shape.keep for status in leaf.statuses), False])
        out[wrong[leaf.status]] = 1
    return out if out.any() else None
