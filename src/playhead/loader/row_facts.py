"""What plans look at beside packs: token counts, what filters look at, rows that were excluded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.tokens.count import find_token_columns, open_token_columns
from playhead.tokens.fields import find_field_columns, open_field_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.index.build_pace import Progress
    from playhead.index.pack import LeafPack
    from playhead.tokens.encoding import Encoding
    from playhead.tokens.fields import FieldFilter

__all__ = ["Asked", "SideColumns", "find_side_columns", "open_side_columns"]

_MOST_PROCESSES = 8

SideColumns = Callable[[str], "Mapping[str, NDArray[Any]] | None"]
"""Columns of a side file of one leaf by its digest; None where there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the plan asks of rows that no pack holds."""

    encoding: Encoding | None = None
    """What counts tokens; None where nothing depends on them."""
    fields: FieldFilter | None = None
    """What filters look at; None where there is no such filter."""

    @property
    def tokens_digest(self) -> str | None:
        """Digest of the token counts."""
        return None if self.encoding is None else self.encoding.digest

    @property
    def fields_digest(self) -> str | None:
        """Digest of what the filters look at."""
        return None if self.fields is None else self.fields.digest


def open_side_columns(
    leaf: Leaf, pack: LeafPack, asked: Asked, progress: Progress | None
) -> SideColumns:
    """Open what is asked of a leaf's rows; read and count what no side file has yet.

    What a run with another tokenizer asked is found as long as its files are there.

    Parameters
    ----------
    leaf
        The leaf.
    pack
        Its columns.
    asked
        What is asked.
    progress
        Told about the work.

    Raises
    ------
    PlayheadError
        When a row cannot be used, or the side files cannot be written.
    """
    workers = min(_MOST_PROCESSES, os.cpu_count() or 1)
    opened: dict[str, Mapping[str, NDArray[Any]] | None] = {}
    if asked.encoding is not None:
        opened[asked.encoding.digest] = open_token_columns(
            leaf, pack, asked.encoding, workers=workers, progress=progress
        )
    if asked.fields is not None:
        opened[asked.fields.digest] = open_field_columns(
            leaf, pack, asked.fields, workers=workers, progress=progress
        )

    def find(digest: str) -> Mapping[str, NDArray[Any]] | None:
        if digest not in opened:
            opened[digest] = known(digest)
        return opened[digest]

    known = find_side_columns(leaf, pack)
    return find


def find_side_columns(leaf: Leaf, pack: LeafPack) -> SideColumns:
    """Open what is known of a leaf's rows; nothing is read or counted that no side file has.

    Parameters
    ----------
    leaf
        The leaf.
    pack
        Its columns.
    """

    def find(digest: str) -> Mapping[str, NDArray[Any]] | None:
        found = find_token_columns(leaf, pack, digest)
        return found or find_field_columns(leaf, pack, digest)

    return find
