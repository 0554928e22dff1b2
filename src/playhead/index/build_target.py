"""Which leaf's columns go into which pack, and whether that pack is up to date."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from playhead.blend.types import has_texts
from playhead.errors import ConfigError
from playhead.formats import format_of
from playhead.index.foreign import is_foreign
from playhead.index.source import stamps
from playhead.paths import scheme
from playhead.storage.cache import cache_folder

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
    "leaf_sources",
    "target_is_fresh",
    "targets",
    "why_declared_is_stale",
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
    """Each manifest, followed by its archives and fields."""
    offsets_from: str | None = None
    """A pack of NeMo that the leaf declares, which says where members of archives begin."""

    @property
    def declared_pack(self) -> str | None:
        """The pack that is used as it is declared; None where one has to be built."""
        return None if self.offsets_from is not None else self.leaf.options.index_pack

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


def leaf_sources(leaf: Leaf) -> LeafSources:
    """Pair the files of a leaf and name what its columns are made from.

    Raises
    ------
    ConfigError
        If its manifests and archives do not pair, or a path is not UTF-8.
    """
    local = {role: tuple(map(_absolute, paths)) for role, paths in leaf.paths.items()}
    for paths in local.values():
        _check_text(paths, leaf.name)
    pairs = format_of(leaf).sources(replace(leaf, paths=local))
    pack = leaf.options.index_pack
    identity = msgspec.json.encode([leaf.type, sorted(local.items()), _shaping(leaf)])
    return LeafSources(
        leaf=leaf,
        source=hashlib.blake2b(identity, digest_size=8).hexdigest(),
        pairs=pairs,
        paths=[path for pair in pairs for path in pair.files],
        offsets_from=pack if pack is not None and is_foreign(pack) else None,
    )


def _check_text(paths: Sequence[str], leaf: str) -> None:
    """Refuse names that no pack can hold: those whose bytes are not UTF-8."""
    try:
        "".join(paths).encode()
    except UnicodeEncodeError:
        bad = next(path for path in paths if any("\ud800" <= char <= "\udfff" for char in path))
        raise ConfigError(
            f"a path of leaf {leaf} is not UTF-8",
            where=ascii(bad),
            fix="Rename the file, or link to it by a name that is",
        ) from None


def targets(leaves: Sequence[LeafSources], pack_dir: str | None) -> list[Target]:
    """Decide which packs hold the leaves.

    Parameters
    ----------
    leaves
        Leaves without a declared pack; those of one source are one.
    pack_dir
        The folder of the packs; each leaf's `indexes_root`, else the user's cache, if None.
    """
    folders: dict[Path, dict[str, LeafSources]] = {}
    for sources in leaves:
        folder = _folder(sources.leaf, pack_dir)
        folders.setdefault(folder, {}).setdefault(sources.source, sources)
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


def target_is_fresh(target: Target, pack: Pack) -> bool:
    """Whether a pack holds all leaves of a target, made from their files as they are now."""
    uris, table = pack.shards.uris, pack.shards
    places: list[int] = []
    for member in target.members:
        entry = pack.entry(member.source)
        if entry is None:
            return False
        end = entry.shard_start + entry.num_shards
        if uris[entry.shard_start : end] != member.paths:
            return False
        places += range(entry.shard_start, end)
    now = np.array(stamps([uris[place] for place in places]), np.int64).reshape(-1, 2)
    then = np.stack([table.sizes[places], table.mtimes_ns[places]], axis=1)
    return np.array_equal(now, then)


def why_declared_is_stale(pack: LeafPack, sources: LeafSources) -> str | None:
    """Say why a declared pack does not belong to a leaf's files; None if it does.

    Times are not compared: who declares a pack may have copied the data together with it.
    """
    table = pack.shards
    for then, now in zip(table.uris, sources.paths, strict=False):
        if then != now:
            return f"it was made from {then}, not {now}"
    if len(table) != len(sources.paths):
        return f"it was made from {len(table)} files, not {len(sources.paths)}"
    for path, now, size in zip(
        sources.paths, stamps(sources.paths), table.sizes.tolist(), strict=True
    ):
        if now.size != size:
            return f"{path} had {size} bytes and has {now.size}"
    return None


def _absolute(path: str) -> str:
    # The first test is for speed: there may be a hundred thousand paths.
    if (path.startswith("/") and "/." not in path and "//" not in path) or scheme(path):
        return path
    return os.path.abspath(path)  # noqa: PTH100 - `Path.absolute` keeps `..`


def _shaping(leaf: Leaf) -> dict[str, Any]:
    options = leaf.options
    return {
        "channel_selector": options.channel_selector,
        "input_sampling_rate": options.input_sampling_rate,
        # Only where there are any: packs of the other types keep their names.
        **({"own": dict(leaf.own)} if leaf.own else {}),
        **({"text_field": options.text_field} if has_texts(leaf.type) else {}),
        **({"transforms": leaf.transforms} if leaf.transforms else {}),
    }


def _folder(leaf: Leaf, pack_dir: str | None) -> Path:
    if pack_dir is not None:
        return Path(pack_dir)
    root = leaf.options.indexes_root
    if root is not None:
        if scheme(root):
            raise ConfigError(
                "packs are mapped into memory, and this indexes_root is not on a disk",
                where=root,
                fix="Fetch what is there by `playhead prefetch --indexes-root DIR CONFIG`, and set "
                "indexes_root to DIR",
            )
        return Path(root) / PACK_FOLDER
    return cache_folder("packs")


def _file_name(sources: LeafSources) -> str:
    return re.sub(r"[^\w.-]", "_", sources.leaf.key) + "-" + sources.source


def _joint(group: Sequence[LeafSources]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for member in group:
        digest.update(member.source.encode())
    return digest.hexdigest()
