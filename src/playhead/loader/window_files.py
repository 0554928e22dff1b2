"""The files that the samples of a window are read from, as far as whole copies are kept of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.fetch.kept import kept_among
from playhead.index.concatenation import joined_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack
    from playhead.plan.window import HandedOut

__all__ = ["FileUse", "kept_files"]


class FileUse(NamedTuple):
    """A file, and between which steps it is needed."""

    uri: str
    """The file."""
    first: int
    """The first step that needs it."""
    last: int
    """The last one."""


def kept_files(
    samples: HandedOut, leaves: Sequence[Leaf], packs: Sequence[LeafPack], *, with_audio: bool
) -> list[FileUse]:
    """Return the files of which whole copies are kept, in the order in which they are needed.

    Parameters
    ----------
    samples
        What is handed out, in order.
    leaves, packs
        What its leaves are.
    with_audio
        Whether archives are read.
    """
    found: list[tuple[int, FileUse]] = []
    for number in np.unique(samples.leaf).tolist():
        leaf, pack = leaves[number], packs[number]
        mine = np.flatnonzero(samples.leaf == number)
        by_shard = samples.by_shard is not None and bool(samples.by_shard[mine].any())
        uris = pack.shards.uris
        # What is read in stretches of a table has its own way to keep them.
        kept = set() if pack.groups is not None else set(kept_among(uris, by_shard=by_shard))
        if not kept:
            continue
        rows = samples.row[mine]
        if leaf.concatenation is not None:
            rows = joined_rows(pack.duration_us, leaf.concatenation)[rows]
        first = np.full(len(uris), len(samples.leaf))
        last = np.full(len(uris), -1)
        for files, at in _files(pack, rows, mine, with_audio=with_audio):
            use = np.full(len(uris), len(samples.leaf))
            # Of several that are put in one place the one that comes last stays.
            use[files[::-1]] = at[::-1]
            first = np.minimum(first, use)
            use = np.full(len(uris), -1)
            use[files] = at
            last = np.maximum(last, use)
        for file in np.flatnonzero(last >= 0).tolist():
            if file in kept:
                steps = samples.step[[first[file], last[file]]].tolist()
                found.append((int(first[file]), FileUse(uris[file], *steps)))
    return [use for _, use in sorted(found)]


def _files(
    pack: LeafPack, rows: NDArray[np.int64], at: NDArray[np.int64], *, with_audio: bool
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The files of rows: numbers of files and the place of their row among all, pair by pair."""
    files: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    if not pack.entry.embedded:
        files.append((pack.shard[rows].astype(np.int64), at))
    if with_audio:
        tar = pack.tar[rows].astype(np.int64)
        files.append((tar[tar >= 0], at[tar >= 0]))
    if pack.entry.fields:
        parts = pack.parts(rows)
        file, place = parts.file.astype(np.int64), np.repeat(at, parts.num_parts)
        files.append((file[file >= 0], place[file >= 0]))
    return files
