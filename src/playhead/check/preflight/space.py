"""Rules on the room that indexes and caches need on disks of this machine."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.check.preflight.changes import diff
from playhead.check.preflight.modes import mode_of, passes_by_shards
from playhead.check.preflight.packs import pack_states
from playhead.check.preflight.rule import Seen, rule
from playhead.errors import PlayheadError
from playhead.index.source import stamps
from playhead.loader.locality import cache_settings_of
from playhead.storage.compression import has_middle, is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.blend import Blend
    from playhead.check.preflight.subject import Subject

__all__: list[str] = []

# A pack takes 64 bytes a row, and the shortest rows are about a hundred bytes long.
_PACK_SHARE = 0.64
# Rows that are embedded are as long as they were before they were compressed.
_EMBEDDED_SHARE = 10.0


@rule("index-space", "fail", "A pack that does not fit on its disk is not built")
def index_space(subject: Subject) -> Iterator[Seen]:
    """Packs that are to be built, against the room that is left where they go."""
    needed: dict[Path, int] = {}
    for state in pack_states(subject):
        if state.state not in ("missing", "outdated"):
            continue
        embeds = any(is_compressed(path) for _, one in state.members for path in one.paths)
        share = _EMBEDDED_SHARE if embeds else _PACK_SHARE
        folder = state.target.path.parent
        needed[folder] = needed.get(folder, 0) + round(state.row_bytes * share)
    for folder, size in needed.items():
        free = _free(folder)
        if free < size:
            yield Seen(
                f"{_bytes(free)} are free at {folder}, and packs may take {_bytes(size)}",
                str(folder),
                advice="Make room, or set indexes_root (or PLAYHEAD_CACHE) to another disk",
            )


@rule("cache-bytes", "fail", "A shard is read whole, so the cache has to hold one")
def cache_bytes(subject: Subject) -> Iterator[Seen]:
    """Caches that are smaller than the largest shard."""
    sources = {id(named.leaf): found.paths for named, found in subject.sources}
    for _, options, blend, spot in subject.parts:
        by_shard = passes_by_shards(blend)
        for leaf in blend.leaves:
            if mode_of(leaf, by_shard=by_shard) != "shards":
                continue
            largest = _largest(sources.get(id(leaf), ()))
            if largest is not None and largest[1] > options.cache_bytes:
                yield Seen(
                    f"`cache_bytes` is {options.cache_bytes:,}, and {largest[0]} has"
                    f" {largest[1]:,} bytes",
                    str(spot.at("cache_bytes")),
                    diff(spot, add={"cache_bytes": largest[1] * 4}),
                    "Give the cache room for several shards",
                )
                break


@rule("cache-space", "warning", "A cache that fills its disk stops the job, and others on the node")
def cache_space(subject: Subject) -> Iterator[Seen]:
    """Caches of shards, against the room that is left where they go."""
    for _, options, blend, spot in subject.parts:
        by_shard = passes_by_shards(blend)
        if all(mode_of(leaf, by_shard=by_shard) != "shards" for leaf in blend.leaves):
            continue
        folder = Path(cache_settings_of(options).folder)
        free = _free(folder)
        if free < min(options.cache_bytes, _size_of(blend, subject)):
            yield Seen(
                f"{_bytes(free)} are free at {folder}, and `cache_bytes` is"
                f" {_bytes(options.cache_bytes)}",
                str(spot.at("cache_bytes")),
                diff(spot, add={"cache_bytes": _rounded(free * 9 // 10)}),
                "Lower it, or set cache_dir to a disk with more room",
            )


def _size_of(blend: Blend, subject: Subject) -> float:
    """Bytes of a blend's files, which are all that a cache can hold; infinite if nobody knows."""
    own = {id(leaf) for leaf in blend.leaves}
    found = [one.paths for named, one in subject.sources if id(named.leaf) in own]
    paths = list(dict.fromkeys(path for some in found for path in some))
    # What is decompressed takes more room, and what a command writes has no size.
    if len(found) < len(blend.leaves) or not all(map(has_middle, paths)):
        return inf
    try:
        return sum(one.size for one in stamps(paths))
    except PlayheadError:
        return inf


def _rounded(count: int) -> int:
    """Round a number of bytes down to whole GiB, or MiB: the same from one run to the next.

    Examples
    --------
    >>> _rounded((5 << 30) + 7) == 5 << 30, _rounded((3 << 20) + 7) == 3 << 20
    (True, True)
    """
    unit = 30 if count >> 30 else 20
    return max(1, count >> unit) << unit


def _largest(paths: Sequence[str]) -> tuple[str, int] | None:
    try:
        sizes = [one.size for one in stamps(paths)]
    except PlayheadError:
        # Another rule says which file is missing.
        return None
    place = max(range(len(sizes)), key=sizes.__getitem__, default=None)
    return None if place is None else (paths[place], sizes[place])


def _free(folder: Path) -> int:
    """Bytes that are left where a folder is, or would be."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    found = os.statvfs(there)
    return found.f_bavail * found.f_frsize


def _bytes(count: int) -> str:
    """Write a number of bytes as people do.

    Examples
    --------
    >>> _bytes(3 << 30), _bytes(2000)
    ('3.0 GiB', '2.0 KiB')
    """
    amount, unit = float(count), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.1f} {unit}"
