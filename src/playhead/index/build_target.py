"""Which leaf's columns go into which pack, and whether that pack is up to date."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import platformdirs

from playhead.errors import NotSupportedError
from playhead.formats import get_format
from playhead.index.source import stamps
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats import SourcePair
    from playhead.index.pack import LeafPack, Pack

__all__ = [
    "MAX_SINGLE_PACKS",
    "PACK_FOLDER",
    "LeafSources",
    "Target",
    "leaf_source",
    "leaf_sources",
    "target_is_fresh",
    "targets",
    "why_stale",
]

MAX_SINGLE_PACKS: Final = 256
"""Up to so many leaves have a pack each; more share packs, as the system limits maps."""

PACK_FOLDER: Final = "playhead"
"""The folder of packs in an `indexes_root`."""

_NUM_GROUPS = 64


@dataclass(frozen=True, kw_only=True)
class LeafSources:
    """A leaf with its files in the order of its shard table."""

    leaf: Leaf
    """The leaf."""
    source: str
    """Identity of its type, files and the options that shape its columns: 16 hex digits."""
    pairs: list[SourcePair]
    """Its manifests with their archives, paths absolute."""
    paths: list[str]
    """Each manifest, followed by its archives."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that shape its columns."""
        return _shaping(self.leaf)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A pack and the leaves that it is to hold."""

    path: Path
    """Its file."""
    members: list[LeafSources]
    """Its leaves; two that are the same data are one."""


def leaf_source(leaf: Leaf) -> str:
    """Name what a leaf's columns are made from: 16 hex digits."""
    identity = msgspec.json.encode([leaf.type, sorted(_local(leaf).items()), _shaping(leaf)])
    return hashlib.blake2b(identity, digest_size=8).hexdigest()


def leaf_sources(leaf: Leaf) -> LeafSources:
    """Pair the files of a leaf.

    Raises
    ------
    ConfigError
        If its manifests and archives do not pair.
    """
    pairs = get_format(leaf.type).sources(replace(leaf, paths=_local(leaf)))
    return LeafSources(
        leaf=leaf,
        source=leaf_source(leaf),
        pairs=pairs,
        paths=[path for pair in pairs for path in (pair.manifest, *pair.tars)],
    )


def targets(leaves: Sequence[Leaf], pack_dir: str | None) -> list[Target]:
    """Decide which packs hold the leaves.

    Parameters
    ----------
    leaves
        Leaves without a declared pack.
    pack_dir
        The folder of the packs; each leaf's `indexes_root`, else the user's cache, if None.
    """
    folders: dict[Path, dict[str, LeafSources]] = {}
    for leaf in leaves:
        sources = leaf_sources(leaf)
        folders.setdefault(_folder(leaf, pack_dir), {}).setdefault(sources.source, sources)
    result: list[Target] = []
    for folder, members in folders.items():
        if len(members) <= MAX_SINGLE_PACKS:
            result += [
                Target(path=folder / f"{_file_name(m)}.idxpack", members=[m])
                for m in members.values()
            ]
            continue
        groups: dict[int, list[LeafSources]] = {}
        for source in sorted(members):
            groups.setdefault(int(source, 16) % _NUM_GROUPS, []).append(members[source])
        result += [
            Target(path=folder / f"group-{_joint(group)}.idxpack", members=group)
            for group in groups.values()
        ]
    return result


def why_stale(pack: LeafPack, sources: LeafSources, *, compare_times: bool) -> str | None:
    """Say why a leaf's files are not those that its columns were made from; None if they are."""
    table = pack.shards
    for then, now in zip(table.uris, sources.paths, strict=False):
        if then != now:
            return f"it was made from {then}, not {now}"
    if len(table) != len(sources.paths):
        return f"it was made from {len(table)} files, not {len(sources.paths)}"
    times = table.mtimes_ns.tolist()
    for path, now, size, time in zip(
        sources.paths, stamps(sources.paths), table.sizes.tolist(), times, strict=True
    ):
        if now.size != size:
            return f"{path} had {size} bytes and has {now.size}"
        if compare_times and now.mtime_ns != time:
            return f"{path} was written again"
    return None


def target_is_fresh(target: Target, pack: Pack) -> bool:
    """Whether a pack holds all leaves of a target, up to date."""
    for sources in target.members:
        leaf = pack.find(sources.leaf.key, sources.source)
        if leaf is None or leaf.entry.source != sources.source:
            return False
        if why_stale(leaf, sources, compare_times=True) is not None:
            return False
    return True


def _local(leaf: Leaf) -> dict[str, tuple[str, ...]]:
    """Return the leaf's paths, absolute."""
    return {
        role: tuple(path if scheme(path) else os.path.abspath(path) for path in paths)  # noqa: PTH100 - a Path costs microseconds a file
        for role, paths in leaf.paths.items()
    }


def _shaping(leaf: Leaf) -> dict[str, Any]:
    options = leaf.options
    return {
        "channel_selector": options.channel_selector,
        "input_sampling_rate": options.input_sampling_rate,
    }


def _folder(leaf: Leaf, pack_dir: str | None) -> Path:
    if pack_dir is not None:
        return Path(pack_dir)
    root = leaf.options.indexes_root
    if root is not None:
        if scheme(root):
            raise NotSupportedError(
                "an indexes_root that is not local is not supported yet",
                where=root,
                fix="Give a folder",
            )
        return Path(root) / PACK_FOLDER
    cache = os.environ.get("PLAYHEAD_CACHE") or platformdirs.user_cache_dir("playhead")
    return Path(cache) / "packs"


def _file_name(sources: LeafSources) -> str:
    return re.sub(r"[^\w.-]", "_", sources.leaf.key) + "-" + sources.source


def _joint(group: Sequence[LeafSources]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for member in group:
        digest.update(member.source.encode())
    return digest.hexdigest()
