"""Columns beside a pack that go on holding when its data have moved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playhead.storage.atomic import atomic_write
from playhead.tokens.side_columns import find_columns, side_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack

__all__ = ["Carried", "carry_columns"]

# What `side_path` adds to the name of a pack.
_SIDE = re.compile(r"\.(\w+)-([0-9a-f]+)-[0-9a-f]+\.arrow")


class Carried(NamedTuple):
    """A leaf whose data have moved."""

    leaf: Leaf
    """As a config names it now."""
    old: LeafPack
    """Its columns in the old pack."""
    new: LeafPack
    """The same columns in the new one."""


def carry_columns(leaves: Sequence[Carried]) -> int:
    """Copy the side files of leaves from one pack to another that has the same rows.

    Side files that were made with other texts, tags or options stay behind.

    Parameters
    ----------
    leaves
        All of one pack.

    Returns
    -------
    int
        How many were copied.

    Raises
    ------
    OSError
        If one cannot be read or written.
    """
    if not leaves:
        return 0
    pack = Path(leaves[0].old.path)
    made = (_SIDE.fullmatch(path.name.removeprefix(pack.name)) for path in pack.parent.iterdir())
    measures = sorted({(match[1], match[2]) for match in made if match is not None})
    count = 0
    for leaf, old, new in leaves:
        for kind, digest in measures:
            if find_columns(leaf, old, kind, digest) is None:
                continue
            with atomic_write(side_path(leaf, new, kind, digest)) as file:
                file.write(side_path(leaf, old, kind, digest).read_bytes())
            count += 1
    return count
