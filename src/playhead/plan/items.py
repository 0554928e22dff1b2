"""The samples that are dealt out in batches: rows, or parts of rows, with their lengths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.draw import draw_rows
from playhead.plan.permute import ranges
from playhead.plan.verdicts import side_column, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.draw import Drawn, Source
    from playhead.plan.settings import Shape

__all__ = ["UNKNOWN_LENGTH", "Items", "draw_items", "interleaved", "needed_columns"]

UNKNOWN_LENGTH = -1
"""The length of a row of a leaf that is gone; such a row is never dealt out."""

# What the columns that may be None stand for where they are.
_DEFAULTS: dict[str, tuple[int, Any]] = {
    "part": (0, np.int32),
    "speed": (1000, np.int16),
    "start": (0, np.int64),
    "span": (-1, np.int64),
    "tokens": (0, np.int64),
    "verdict": (0, np.uint8),
    "kind": (0, np.int8),
    "size": (0, np.int64),
    "input": (0, np.int64),
    "output": (0, np.int64),
    "context": (0, np.int64),
    "answer": (0, np.int64),
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Items:
    """Samples in canonical order (leaf, pass, draw, part); every array has shape (M,)."""

    leaf: NDArray[np.int32]
    """Number of the leaf in the roster."""
    pass_: NDArray[np.int64]
    """Pass over the leaf."""
    row: NDArray[np.int64]
    """Row of the leaf."""
    length: NDArray[np.int64]
    """Length (µs)."""
    part: NDArray[np.int32] | None = None
    """Part of the row; None where all are the first."""
    speed: NDArray[np.int16] | None = None
    """Speed in thousandths; None where all are 1000."""
    start: NDArray[np.int64] | None = None
    """Where the sample begins in its row (µs); None where all begin at 0."""
    span: NDArray[np.int64] | None = None
    """Length before padding (µs), -1 for that of the row; None where all are."""
    tokens: NDArray[np.int64] | None = None
    """Tokens of the row; None where nothing looks at them."""
    verdict: NDArray[np.uint8] | None = None
    """What the filters of rows say; None where they accept all."""
    kind: NDArray[np.int8] | None = None
    """`KindCode` of each; None where all are cuts, or nothing asks any more."""
    size: NDArray[np.int64] | None = None
    """Length in tokens; None where nothing measures it."""
    input: NDArray[np.int64] | None = None
    """Tokens before the answer; None where nothing looks at them."""
    output: NDArray[np.int64] | None = None
    """Tokens of the answer; None where nothing looks at them."""
    context: NDArray[np.int64] | None = None
    """`input` with one token for each stretch of audio; None where nothing looks at it."""
    answer: NDArray[np.int64] | None = None
    """`output` with one token for each stretch of audio; None where nothing looks at it."""

    def __len__(self) -> int:
        return len(self.row)

    def chosen(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Items:
        """Return some of the samples, by number or mask."""
        others = {name: getattr(self, name) for name in _DEFAULTS}
        return Items(
            leaf=self.leaf[which],
            pass_=self.pass_[which],
            row=self.row[which],
            length=self.length[which],
            **{name: column[which] for name, column in others.items() if column is not None},
        )

    def lengths(self, *, in_tokens: bool) -> NDArray[np.int64]:
        """Lengths that batches are made by, in tokens or µs, shape (M,)."""
        if not in_tokens:
            return self.length
        assert self.size is not None
        return self.size

    def with_lengths(self, length: NDArray[np.int64], **others: NDArray[Any]) -> Items:
        """Return the samples with other lengths, and other columns that go with them."""
        return replace(self, length=length, **others)

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
            **{name: _joined(parts, name) for name in _DEFAULTS},
        )


def _joined(parts: Sequence[Items], name: str) -> Any:
    columns = [getattr(part, name) for part in parts]
    if all(column is None for column in columns):
        return None
    default, kind = _DEFAULTS[name]
    return np.concatenate(
        [
            np.full(len(part), default, dtype=kind) if column is None else column
            for part, column in zip(parts, columns, strict=True)
        ]
    )


def draw_items(source: Source, taken: NDArray[np.int64], counts: NDArray[np.int64]) -> Items:
    """Draw rows and read their columns, leaf after leaf; each draw is one whole row still.

    Parameters
    ----------
    source, taken, counts
        As for `draw_rows`.
    """
    drawn = draw_rows(source, taken, counts)
    shape = source.position.shape
    rows = _RowsOf(source, drawn, counts)
    judged = any(
        leaf is not None and verdicts(leaf, shape) is not None
        for leaf, count in zip(source.columns, counts.tolist(), strict=True)
        if count
    )
    return Items(
        leaf=drawn.leaf,
        pass_=drawn.pass_,
        row=drawn.row,
        length=rows.read(lambda leaf: leaf.duration_us, UNKNOWN_LENGTH, np.int64),
        verdict=rows.read(lambda leaf: verdicts(leaf, shape), 0, np.uint8) if judged else None,
        kind=_kinds(source, drawn, counts),
        **{
            name: rows.read(partial(_side, digest=shape.tokens or "", name=name), 0, np.int64)
            for name in needed_columns(shape, (link.batching for link in source.position.chain))
        },
    )


def needed_columns(shape: Shape, batchings: Iterable[Batching]) -> list[str]:
    """Columns of tokens that a window looks at, and what it is cut with.

    Parameters
    ----------
    shape
        What the window is drawn with.
    batchings
        What it is cut with, link by link.
    """
    batchings = list(batchings)
    if not shape.multimodal:
        asked = (shape.min_tps, shape.max_tps) != (None, None)
        return ["tokens"] if asked or any(b.needs_tokens for b in batchings) else []
    if shape.tokens is None:
        return []
    answers = any(batching.needs_answers for batching in batchings)
    inputs = answers or not shape.total_length
    ratios = (shape.min_tpt, shape.max_tpt) != (None, None)
    return [
        "tokens",
        *(["input"] if inputs else []),
        # A window of a text has less of the answer first.
        *(["output"] if answers or (inputs and shape.text_window is not None) else []),
        *(["context", "answer"] if ratios else []),
    ]


def _side(leaf: LeafColumns, digest: str, name: str) -> NDArray[Any]:
    return side_column(leaf, digest, name)


def _kinds(source: Source, drawn: Drawn, counts: NDArray[np.int64]) -> NDArray[np.int8] | None:
    codes = np.array([0 if leaf is None else leaf.code for leaf in source.columns], dtype=np.int8)
    return codes[drawn.leaf] if codes[counts > 0].any() else None


@dataclass(frozen=True, slots=True)
class _RowsOf:
    """Rows that were drawn, leaf after leaf."""

    source: Source
    drawn: Drawn
    counts: NDArray[np.int64]

    def read(
        self, column: Callable[[LeafColumns], NDArray[Any] | None], absent: int, kind: Any
    ) -> NDArray[Any]:
        """Return a column of the leaves at these rows; `absent` where a leaf has none."""
        parts: list[NDArray[Any]] = []
        start = 0
        sequence = self.source.roster.sequence
        for number in sequence[self.counts[sequence] > 0].tolist():
            count = int(self.counts[number])
            leaf = self.source.columns[number]
            values = None if leaf is None else column(leaf)
            if values is None:
                parts.append(np.full(count, absent, dtype=kind))
            else:
                rows = self.drawn.row[start : start + count]
                parts.append(values[rows].astype(kind, copy=False))
            start += count
        return np.concatenate(parts) if parts else np.empty(0, dtype=kind)


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
