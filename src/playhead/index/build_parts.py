"""Which manifests of a leaf must be read, and which an older pack still knows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from playhead.index.source import Stamp, stamps

if TYPE_CHECKING:
    from playhead.formats import SourcePair
    from playhead.index.build_target import LeafSources
    from playhead.index.pack import LeafPack

__all__ = [
    "BAD_ROW",
    "BLANK_LINE",
    "EMPTY_MANIFEST",
    "EXCLUDED_LINE",
    "NOT_ROWS",
    "NO_ROW",
    "UNUSED_MEMBER",
    "Known",
    "Part",
    "parts",
]

BAD_ROW = "bad row"
"""The reason under which rows that cannot be used are counted."""

BLANK_LINE = "blank line"
"""The reason under which lines that hold nothing are counted."""

EXCLUDED_LINE = "excluded line"
"""The reason under which lines are counted that a config leaves out by their numbers."""

NO_ROW = "tar member that is no row"
"""The reason under which members are counted that belong to no sample of their archive."""

UNUSED_MEMBER = "tar member without a row"
"""The reason under which members are counted that no row of their manifest asks for."""

EMPTY_MANIFEST = "manifest without rows"
"""The reason under which sources are counted that hold no row at all."""

NOT_ROWS = frozenset({BLANK_LINE, EMPTY_MANIFEST, NO_ROW, UNUSED_MEMBER})
"""The reasons under which something else than rows is counted."""


class Known(NamedTuple):
    """A manifest's rows in an older pack."""

    rows: slice
    """Of the leaf."""
    shard: int
    """Place of the manifest in the leaf's shard table."""
    dropped: dict[str, int]
    """Rows left out, by reason."""


class Part(NamedTuple):
    """A manifest and its archives."""

    pair: SourcePair
    """Their paths."""
    shard: int
    """Place of the manifest in the leaf's shard table; its archives follow."""
    stamps: list[Stamp]
    """Sizes and times of the manifest and its archives."""
    known: Known | None
    """Its rows in the older pack; None if it must be read."""


def parts(
    sources: LeafSources, previous: LeafPack | None, *, embed: bool, skip_bad_rows: bool
) -> list[Part]:
    """Split a leaf into its manifests.

    Parameters
    ----------
    sources
        The leaf's files.
    previous
        The leaf in an older pack.
    embed
        Whether the rows' bytes are wanted.
    skip_bad_rows
        Whether a manifest whose bad rows were left out may be taken over.
    """
    now = stamps(sources.paths)
    old = {} if previous is None or (embed and not previous.entry.embedded) else _known(previous)
    result: list[Part] = []
    shard = 0
    for pair in sources.pairs:
        end = shard + len(pair.files)
        files = tuple(zip(sources.paths[shard:end], now[shard:end], strict=True))
        known = old.get(files)
        if known is not None and BAD_ROW in known.dropped and not skip_bad_rows:
            known = None
        result.append(Part(pair, shard, now[shard:end], known))
        shard = end
    return result


def _known(leaf: LeafPack) -> dict[tuple[tuple[str, Stamp], ...], Known]:
    """Find the rows of each manifest by the paths, sizes and times of its files."""
    table = leaf.shards
    stored = [
        Stamp(*pair) for pair in zip(table.sizes.tolist(), table.mtimes_ns.tolist(), strict=True)
    ]
    ends = np.cumsum(table.rows).tolist()
    dropped: list[str | None] = table.dropped.to_pylist()
    starts = [*leaf.entry.manifests, len(table)]
    known: dict[tuple[tuple[str, Stamp], ...], Known] = {}
    for shard, end in pairwise(starts):
        files = tuple(zip(table.uris[shard:end], stored[shard:end], strict=True))
        said = dropped[shard]
        rows = slice(ends[shard] - int(table.rows[shard]), ends[shard])
        try:
            counts: dict[str, int] = {} if said is None else msgspec.json.decode(said)
        except msgspec.DecodeError:
            # A damaged table of files tells nothing: the manifest is read again.
            continue
        known[files] = Known(rows, shard, counts)
    return known
