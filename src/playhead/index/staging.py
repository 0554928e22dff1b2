"""Which indexes and packs of a blend exist elsewhere, and where they go on a machine's disk."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.index.build_target import PACK_FOLDER, targets
from playhead.index.found import place
from playhead.paths import index_path, scheme
from playhead.storage import access
from playhead.storage.cache import cache_folder
from playhead.storage.compression import is_archive, is_compressed
from playhead.storage.copying import Copy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.build_target import LeafSources
    from playhead.index.sidecars import Sidecar

__all__ = ["Staging", "plan_staging"]

_SUFFIX = ".idx"
# What NeMo keeps beside the `.idx` of a compressed manifest, and of a tar of samples.
_BESIDE_COMPRESSED = (".gzidx",)
_BESIDE_TAR = (".wds-v2.idx", ".wds-v2.idx.meta.json", ".wds-v2.meta.json")
_ROUTES = ("tar_routing_filepath", "tar_routing_index")


@dataclass(kw_only=True)
class Staging:
    """What is to be copied, each file by where it goes."""

    root: str
    """The folder that everything goes to."""
    wanted: dict[str, Copy] = field(default_factory=dict[str, Copy])
    """What a loader may ask for: its absence is a failure."""
    optional: dict[str, Copy] = field(default_factory=dict[str, Copy])
    """What may exist or not."""

    def want(self, source: str, target: str, *, is_optional: bool = False) -> None:
        """Add a file.

        Raises
        ------
        ConfigError
            If another one goes to the same place.
        """
        known = self.wanted.get(target) or self.optional.get(target)
        if known is not None and known.source != source:
            raise ConfigError(
                f"the files {known.source} and {source} would have the same copy",
                where=target,
                fix="Stage them with two commands, into two folders",
            )
        if is_optional and known is None:
            self.optional[target] = Copy(source, target)
        elif not is_optional:
            self.optional.pop(target, None)
            self.wanted[target] = Copy(source, target)


def plan_staging(
    sidecars: Sequence[Sidecar],
    leaves: Sequence[LeafSources],
    *,
    root: str,
    source_root: str | None,
    manifests: bool = False,
) -> Staging:
    """Say which files a machine needs beside the data, and where they belong.

    Parameters
    ----------
    sidecars
        The data files that configs name, with their `.idx` where those are.
    leaves
        The leaves of the same configs.
    root
        The folder that everything goes to.
    source_root
        Where indexes and packs are whose entries name no `indexes_root`, or name `root`; if None,
        `.idx` are beside the data and packs in the user's cache.
    manifests
        Whether manifests are wanted too.

    Raises
    ------
    ConfigError
        If two files would go to one place, or one out of the folder.
    StorageError, OSError
        If a store or a disk cannot be looked at.
    """
    staging = Staging(root=root)
    packed = _stage_packs(staging, leaves, source_root)
    for sidecar in sidecars:
        idx = index_path(sidecar.path, source_root) if _is_below(sidecar.idx, root) else sidecar.idx
        target = place(sidecar.path, sidecar.kind, root).idx
        staging.want(idx, target, is_optional=_absolute(sidecar.path) in packed)
        if sidecar.kind == "wds_tar":
            _stage_beside(staging, idx, target, _BESIDE_TAR)
        if manifests and sidecar.kind == "jsonl":
            staging.want(sidecar.path, target.removesuffix(_SUFFIX))
    for leaf in leaves:
        _stage_compressed(staging, leaf, source_root, manifests=manifests)
        _stage_routes(staging, leaf)
    return staging


def _stage_packs(
    staging: Staging, leaves: Sequence[LeafSources], source_root: str | None
) -> set[str]:
    """Stage packs that are declared or built, and return the files that need no `.idx` for that."""
    packed: set[str] = set()
    folders: dict[str, list[LeafSources]] = {}
    for sources in leaves:
        pack = sources.leaf.options.index_pack
        if sources.declared_pack is None:
            folder = _pack_folder(_source_root(sources, staging.root, source_root))
            folders.setdefault(folder, []).append(sources)
        if pack is not None and not _is_below(pack, staging.root):
            _stage_pack(staging, pack, index_path(pack, staging.root).removesuffix(_SUFFIX))
            packed.update(sources.paths)
    for folder, members in folders.items():
        there = {path.rpartition("/")[2] for path in _files_in(folder)}
        for target in targets(members, staging.root):
            name = target.path.name
            if name in there:
                to = str(Path(staging.root) / PACK_FOLDER / name)
                _stage_pack(staging, f"{folder}/{name}", to)
                packed.update(path for member in target.members for path in member.paths)
    return packed


def _stage_pack(staging: Staging, pack: str, target: str) -> None:
    staging.want(pack, target)
    for path in _files_in(pack.rpartition("/")[0]):
        if path.startswith(f"{pack}.") and path.endswith(".arrow"):
            staging.want(path, target + path[len(pack) :])


def _stage_compressed(
    staging: Staging, sources: LeafSources, source_root: str | None, *, manifests: bool
) -> None:
    """Stage what belongs to compressed manifests: Playhead needs no `.idx` of them, NeMo does."""
    root = _source_root(sources, staging.root, source_root)
    for pair in sources.pairs:
        for path in (pair.manifest, *(shard.path for shard in pair.fields)):
            if not is_compressed(path) or is_archive(path):
                continue
            target = place(path, "jsonl", staging.root).idx
            idx = index_path(path, root)
            staging.want(idx, target, is_optional=True)
            _stage_beside(staging, idx, target, _BESIDE_COMPRESSED)
            if manifests:
                staging.want(path, target.removesuffix(_SUFFIX))


def _stage_routes(staging: Staging, sources: LeafSources) -> None:
    """Stage the routing files of NeMo's `share_gpt`, which Playhead does not read."""
    for name in _ROUTES:
        route = sources.leaf.own.get(name)
        if route and not _is_below(route, staging.root):
            target = index_path(route, staging.root).removesuffix(_SUFFIX)
            staging.want(route, target, is_optional=True)


def _stage_beside(staging: Staging, idx: str, target: str, suffixes: Sequence[str]) -> None:
    for suffix in suffixes:
        source = idx.removesuffix(_SUFFIX) + suffix
        staging.want(source, target.removesuffix(_SUFFIX) + suffix, is_optional=True)


def _source_root(sources: LeafSources, root: str, source_root: str | None) -> str | None:
    own = sources.leaf.options.indexes_root
    return source_root if own is None or _absolute(own) == _absolute(root) else own


def _pack_folder(root: str | None) -> str:
    return str(cache_folder("packs")) if root is None else f"{root.rstrip('/')}/{PACK_FOLDER}"


def _files_in(folder: str) -> list[str]:
    """Paths of the files of a folder; none where there is no folder."""
    if scheme(folder):
        return access.list_files(folder)
    with suppress(FileNotFoundError, NotADirectoryError):
        return [f"{folder or '.'}/{name}" for name in os.listdir(folder or ".")]  # noqa: PTH208
    return []


def _is_below(path: str, root: str) -> bool:
    return not scheme(path) and Path(_absolute(path)).is_relative_to(_absolute(root))


def _absolute(path: str) -> str:
    return path if scheme(path) else os.path.abspath(path)  # noqa: PTH100 - no resolving of links
