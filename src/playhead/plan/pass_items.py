"""All samples of leaves, as a pass over them gives them, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.plan.columns import KindCode
from playhead.plan.items import Items, needed_columns
from playhead.plan.reshape import SPEEDS, measured, reshaped
from playhead.plan.verdicts import side_column, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.plan.batching import Batching
    from playhead.plan.columns import LeafColumns
    from playhead.plan.settings import Shape

__all__ = ["leaf_items", "leaf_rows", "pass_items"]

_BLOCK = 1 << 18
# Rows that are cut into windows may give a hundred samples each.
_BLOCK_OF_WINDOWS = 1 << 13


class _Piece(NamedTuple):
    """Rows of a leaf that follow each other."""

    number: int
    """Place of the leaf in the list."""
    leaf: LeafColumns
    rows: slice

    @property
    def num_rows(self) -> int:
        return self.rows.stop - self.rows.start


def leaf_items(
    leaf: LeafColumns, shape: Shape, batching: Batching | None, columns: Sequence[str] = ()
) -> Iterator[Items]:
    """Return all samples of one leaf; see `pass_items`."""
    return pass_items([leaf], shape, batching, columns)


def leaf_rows(
    leaf: LeafColumns, shape: Shape, batching: Batching | None, columns: Sequence[str] = ()
) -> Iterator[Items]:
    """Return all rows of one leaf in declared order, block by block; each is one whole row still.

    Parameters
    ----------
    leaf
        The leaf.
    shape, batching, columns
        As for `pass_items`.
    """
    return _pass_rows([leaf], shape, batching, columns)


def pass_items(
    leaves: Sequence[LeafColumns],
    shape: Shape,
    batching: Batching | None,
    columns: Sequence[str] = (),
) -> Iterator[Items]:
    """Return all samples of leaves, block by block: once per speed where that is perturbed.

    Parameters
    ----------
    leaves
        The leaves; samples name them by their place in this list, in ascending order.
    shape
        What becomes of their rows; nothing is refused yet.
    batching
        What they are cut with, if anything: it may need columns of tokens.
    columns
        Further columns of tokens that are needed.
    """
    for items in _pass_rows(leaves, shape, batching, columns):
        for speed in SPEEDS if shape.perturb_speed else (None,):
            column = None if speed is None else np.full(len(items), speed, dtype=np.int16)
            yield measured(reshaped(items, shape, column, None), shape)


def _pass_rows(
    leaves: Sequence[LeafColumns],
    shape: Shape,
    batching: Batching | None,
    columns: Sequence[str] = (),
) -> Iterator[Items]:
    names = {*needed_columns(shape, [] if batching is None else [batching]), *columns}
    block = _BLOCK_OF_WINDOWS if shape.in_parts else _BLOCK
    for pieces in _blocks(leaves, block):
        yield _whole_rows(pieces, shape, sorted(names))


def _blocks(leaves: Sequence[LeafColumns], block: int) -> Iterator[list[_Piece]]:
    """Rows of all leaves in pieces: so many of small leaves together, some of a large one."""
    pieces: list[_Piece] = []
    room = block
    for number, leaf in enumerate(leaves):
        begin = 0
        while begin < leaf.num_rows:
            end = min(begin + room, leaf.num_rows)
            pieces.append(_Piece(number, leaf, slice(begin, end)))
            room -= end - begin
            begin = end
            if not room:
                yield pieces
                pieces, room = [], block
    if pieces:
        yield pieces


def _whole_rows(pieces: Sequence[_Piece], shape: Shape, sides: Sequence[str]) -> Items:
    counts = [piece.num_rows for piece in pieces]
    judged = [verdicts(piece.leaf, shape) for piece in pieces]
    kinds = np.array([piece.leaf.code for piece in pieces], dtype=np.int8)

    def read(column: Callable[[LeafColumns], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([column(piece.leaf)[piece.rows] for piece in pieces])

    verdict: NDArray[np.uint8] | None = None
    if any(one is not None for one in judged):
        verdict = np.concatenate(
            [
                np.zeros(piece.num_rows, np.uint8) if one is None else one[piece.rows]
                for piece, one in zip(pieces, judged, strict=True)
            ]
        )
    tokens: dict[str, Any] = {
        name: read(lambda leaf, name=name: side_column(leaf, shape.tokens or "", name))
        for name in sides
    }
    rows = [np.arange(piece.rows.start, piece.rows.stop) for piece in pieces]
    return Items(
        leaf=np.repeat(np.array([piece.number for piece in pieces], dtype=np.int32), counts),
        pass_=np.zeros(sum(counts), dtype=np.int64),
        row=np.concatenate(rows),
        length=read(lambda leaf: leaf.duration_us),
        verdict=verdict,
        kind=np.repeat(kinds, counts) if (kinds != KindCode.CUT).any() else None,
        **{name: column.astype(np.int64) for name, column in tokens.items()},
    )
