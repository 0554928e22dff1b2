"""How many items one pass over a source has, out of indexes that exist; none is built."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from playhead.errors import PlayheadError
from playhead.index.build_target import leaf_sources
from playhead.index.idxpack2 import collection_key, open_idxpack
from playhead.index.pack import open_pack
from playhead.index.pack_kind import PACK_SUFFIX, kind_of_pack
from playhead.inspect.built_packs import built_packs
from playhead.paths import exists, index_path, scheme
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.index.build_target import LeafSources
    from playhead.index.pack import LeafPack
    from playhead.inspect.nemo_declared import DeclaredSource

__all__ = ["Roots", "Total", "totals_of"]

_ENTRY_BYTES: Final = 8
_MOST_MISSING: Final = 20
_CHECKERS: Final = 16
_MICROSECONDS_PER_HOUR: Final = 3_600_000_000
# What NeMo calls the paths of a key, and how it reads them.
_COLLECTIONS: Final = {
    "manifest_filepath": (("manifest", "jsonl"),),
    "tarred_audio_filepaths": (("tar", "nemo_tar"), ("tar_collection", "nemo_tar")),
    "paths": (("paths", "jsonl"), ("paths", "nemo_tar")),
    "data_dir": (("wds_tar", "wds_tar_v2"),),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Roots:
    """Where indexes are looked for, beside what the config says."""

    indexes: str | None = None
    """Folder of `.idx` files, which wins over the config's."""
    pack: str | None = None
    """A pack, or a folder of packs, which wins over the config's."""
    default_pack: str | None = None
    """A pack, or a folder of packs, for sources that name none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Total:
    """What indexes say of one pass over a source."""

    items: int | None = None
    """Its items; None where an index is missing."""
    shard_lengths: tuple[int, ...] = ()
    """Items of each of its files, where known."""
    hours: float | None = None
    """Hours of audio, where a pack of Playhead says it."""
    pack: str | None = None
    """The pack that says it."""
    keys: tuple[str, ...] = ()
    """Keys that its collection may have in a pack of NeMo, in hexadecimal digits."""
    matched_key: str | None = None
    """The one that it has."""
    missing: tuple[str, ...] = ()
    """Indexes that are not there, the first few."""
    notes: tuple[str, ...] = ()
    """What is odd about it."""


def totals_of(sources: Sequence[DeclaredSource], roots: Roots) -> list[Total]:
    """Look up how many items one pass over each of some sources has.

    A pack that the config or the caller names says it, or the `.idx` files of its data. Where one
    of these is missing the whole is not known. A pack that Playhead has built says it too.

    Parameters
    ----------
    sources
        The sources.
    roots
        Where to look.
    """
    totals = [_of_named_pack(source, roots) for source in sources]
    # Very many small files, maybe far away: all are looked at together.
    with ThreadPoolExecutor(_CHECKERS) as pool:
        for place in range(max((len(source.groups) for source in sources), default=0)):
            asked = [
                number
                for number, (source, total) in enumerate(zip(sources, totals, strict=True))
                if total.items is None and place < len(source.groups)
            ]
            paths = [_sidecars(sources[number], place, roots) for number in asked]
            counts = pool.map(_records, (path for group in paths for path in group))
            for number, group in zip(asked, paths, strict=True):
                found = list(islice(counts, len(group)))
                totals[number] = _with_sidecars(totals[number], group, found)
    own = _of_own_packs(sources)
    return [_with_own_pack(total, own.get(number)) for number, total in enumerate(totals)]


def _of_named_pack(source: DeclaredSource, roots: Roots) -> Total:
    pack = _pack_of(source, roots)
    return Total() if pack is None else _of_pack(source, pack)


def _sidecars(source: DeclaredSource, group: int, roots: Roots) -> list[str]:
    root = roots.indexes or source.indexes_root
    return [index_path(path, root) for path in source.groups[group]]


def _with_sidecars(total: Total, paths: Sequence[str], counts: Sequence[int | str | None]) -> Total:
    """What is known once one more list of files was looked at."""
    lengths = tuple(count for count in counts if isinstance(count, int))
    if paths and len(lengths) == len(paths):
        return replace(total, items=sum(lengths), shard_lengths=lengths)
    missing = [path for path, count in zip(paths, counts, strict=True) if count is None]
    wrong = dict.fromkeys(count for count in counts if isinstance(count, str))
    return replace(
        total,
        missing=(*total.missing, *missing)[:_MOST_MISSING],
        notes=(*total.notes, *wrong)[:_MOST_MISSING],
    )


def _with_own_pack(total: Total, own: Total | None) -> Total:
    is_wanted = total.items is None or total.hours is None
    if own is not None and is_wanted and total.items in (None, own.items):
        total = replace(total, items=own.items, hours=own.hours, pack=total.pack or own.pack)
    return total if total.items is None else replace(total, missing=())


def _pack_of(source: DeclaredSource, roots: Roots) -> str | None:
    """The pack of a source: the caller's, else the nearest of the config, else the default."""
    if roots.pack is not None:
        return _in_folder(roots.pack, source.pack_name)
    declared = source.index_pack
    if roots.default_pack is None or (declared is not None and exists(declared)):
        return declared
    return _in_folder(roots.default_pack, source.pack_name)


def _in_folder(root: str, name: str | None) -> str:
    """A pack itself, or the one of a folder that has the name, or the only one of it."""
    folder = Path(root)
    if not folder.is_dir():
        return root
    if name is not None:
        return str(folder / name)
    packs = sorted(folder.glob(f"*{PACK_SUFFIX}"))
    return str(packs[0]) if len(packs) == 1 else str(folder / f"*{PACK_SUFFIX}")


def _of_pack(source: DeclaredSource, pack: str) -> Total:
    if scheme(pack) or not exists(pack):
        return Total(pack=pack, notes=(f"there is no pack {pack}",))
    try:
        kind = kind_of_pack(pack)
        found = _of_nemo_pack(source, pack) if kind == "nemo" else _of_playhead_pack(source, pack)
    except (PlayheadError, OSError) as error:
        return Total(pack=pack, notes=(f"its pack cannot be used: {error}",))
    if found.items is None:
        return replace(found, notes=(f"the pack {pack} does not have it",))
    return found


def _of_nemo_pack(source: DeclaredSource, pack: str) -> Total:
    opened = open_idxpack(pack)
    keys = list(_keys_of(source))
    total = Total(pack=pack, keys=tuple(key.hex() for key in keys))
    held = [(key, lengths) for key in keys if (lengths := opened.lengths(key)) is not None]
    # The rows of a manifest and the members of its archives are as many.
    if len({sum(lengths) for _, lengths in held}) == 1:
        key, lengths = held[0]
        return replace(total, items=sum(lengths), shard_lengths=lengths, matched_key=key.hex())
    for paths in source.groups:
        files = [opened.find(path) for path in paths]
        lengths = tuple(file.records for file in files if file is not None and file.has_offsets)
        if paths and len(lengths) == len(paths):
            return replace(total, items=sum(lengths), shard_lengths=lengths)
    return total


def _keys_of(source: DeclaredSource) -> Iterator[bytes]:
    for name, collections in _COLLECTIONS.items():
        for form in _forms(source.specs.get(name)):
            for role, kind in collections:
                yield collection_key(role, kind, form)


def _forms(spec: Any) -> list[Any]:
    match spec:
        case None:
            return []
        case str():
            return [spec, [spec]]
        case [str() as only]:
            return [spec, only]
        case _:
            return [spec]


def _of_playhead_pack(source: DeclaredSource, pack: str) -> Total:
    if source.leaf is None:
        return Total(pack=pack)
    leaf = open_pack(pack).find(source.leaf.key, leaf_sources(source.leaf).source)
    return Total(pack=pack) if leaf is None else _of_leaf(leaf)


def _of_leaf(leaf: LeafPack) -> Total:
    # NeMo counts rows that are left out too.
    items = leaf.num_rows + sum(leaf.dropped.values())
    hours = int(np.maximum(leaf.duration_us, 0).sum()) / _MICROSECONDS_PER_HOUR
    return Total(items=items, hours=hours or None, pack=str(leaf.path))


def _of_own_packs(sources: Sequence[DeclaredSource]) -> dict[int, Total]:
    """What packs say that Playhead built for the sources when they were used, by their number."""
    parts: defaultdict[str, dict[int, LeafSources]] = defaultdict(dict)
    for number, source in enumerate(sources):
        if source.leaf is not None:
            with suppress(PlayheadError):
                described = leaf_sources(source.leaf)
                if described.declared_pack is None:
                    parts[source.part][number] = described
    totals: dict[int, Total] = {}
    for members in parts.values():
        # They are a help where there are any, and nobody asked for them.
        packs = built_packs(list(members.values()), [])
        for number, described in members.items():
            pack = packs.get(described.source)
            leaf = None if pack is None else pack.find(described.leaf.key, described.source)
            if leaf is not None:
                totals[number] = _of_leaf(leaf)
    return totals


def _records(idx: str) -> int | str | None:
    """How many records an `.idx` has; None if it is not there, else what is wrong with it."""
    try:
        size = access.size(idx)
    except FileNotFoundError:
        return None
    except (PlayheadError, OSError) as error:
        return f"an index cannot be looked at: {error}"
    if size < _ENTRY_BYTES or size % _ENTRY_BYTES:
        return f"{idx} has {size} bytes, which is not a whole number of entries"
    return size // _ENTRY_BYTES - 1
