"""A pack for data that were moved, from the pack that they had where they were before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from playhead.errors import StaleIndexError
from playhead.index.blend_pack import check_output
from playhead.index.build_result import named_os_errors
from playhead.index.exclusions import add_exclusions, moved_exclusions
from playhead.index.pack import Pack, open_pack
from playhead.index.pack_table import ShardTable
from playhead.index.pack_write import rewrite_pack
from playhead.index.rebind_checks import check_content
from playhead.index.source import stamps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.build_pace import Progress
    from playhead.index.build_target import LeafSources, Target
    from playhead.index.pack import LeafPack
    from playhead.index.pack_table import LeafEntry

__all__ = ["rebind_pack"]

# Options of input types that say where data are, which is what a move changes.
_PLACES = frozenset(
    {"audio_path_prefix_map", "audio_root", "tar_routing_filepath", "tar_routing_index"}
)
_FIX = "Build a pack from the data, without --rebind"


def rebind_pack(
    target: Target, old_path: str, *, overwrite: bool = False, progress: Progress | None = None
) -> Pack:
    """Write the pack of a blend whose data lie elsewhere by now; they are not read again.

    Inputs are matched by their files, else by their keys, else by their order. They must be of the
    same types and options, with as many files of the same sizes, and samples of their bytes must be
    the same; see `check_content`. Rows that are left out of the old pack are left out of the new.

    Parameters
    ----------
    target
        The new pack.
    old_path
        The old one.
    overwrite
        Replace a pack that is where the new one goes.
    progress
        Told about the work.

    Returns
    -------
    Pack
        The new pack.

    Raises
    ------
    StaleIndexError
        If the data are others; the first difference is named.
    IndexFileError
        If the old pack cannot be used.
    ConfigError
        If the new one may not be written there.
    """
    check_output(str(target.path), overwrite=overwrite)
    old = open_pack(old_path)
    entries: list[LeafEntry] = []
    tables: list[ShardTable] = []
    matched = _matched(target.members, old)
    for number, (entry, sources) in enumerate(matched):
        if progress is not None:
            progress(sources.leaf.name, number, len(matched))
        leaf = old.leaf(entry.key, entry.source)
        tables.append(_moved(leaf, sources))
        check_content(leaf, sources)
        entries.append(
            replace(entry, key=sources.leaf.key, source=sources.source, options=sources.options)
        )
    with named_os_errors(target):
        target.path.parent.mkdir(parents=True, exist_ok=True)
        left_out = [
            one
            for was, now in matched
            for one in moved_exclusions(old.leaf(was.key, was.source), now.source, now.paths)
        ]
        if left_out:
            # Before the pack: where that is, all that is left out of it is said.
            add_exclusions(str(target.path), left_out)
        rewrite_pack(target.path, old_path, entries, tables)
    return open_pack(target.path)


def _matched(members: Sequence[LeafSources], old: Pack) -> list[tuple[LeafEntry, LeafSources]]:
    """Give each leaf of the old pack its data, in the order of the pack."""
    if len(members) != len(old.leaves):
        raise StaleIndexError(
            f"the blend has {len(members)} inputs, the pack {len(old.leaves)}",
            where=old.path,
            fix=_FIX,
        )
    left = list(members)
    found: dict[int, LeafSources] = {}
    for is_it in (_is_same, _is_namesake, _is_any):
        for place, entry in enumerate(old.leaves):
            if place in found:
                continue
            at = next((at for at, sources in enumerate(left) if is_it(entry, sources)), None)
            if at is not None:
                found[place] = left.pop(at)
    return [(entry, found[place]) for place, entry in enumerate(old.leaves)]


def _is_same(entry: LeafEntry, sources: LeafSources) -> bool:
    return entry.source == sources.source


def _is_namesake(entry: LeafEntry, sources: LeafSources) -> bool:
    return entry.key == sources.leaf.key


def _is_any(entry: LeafEntry, sources: LeafSources) -> bool:
    del entry, sources
    return True


def _moved(old: LeafPack, new: LeafSources) -> ShardTable:
    """The table of a leaf's files where they are now.

    Raises
    ------
    StaleIndexError
        If they cannot be the same files.
    """
    entry, name = old.entry, new.leaf.name
    _demand("type", entry.type, new.leaf.type, name)
    _demand("options", _lasting(entry.options), _lasting(new.options), name)
    _demand("manifests", len(entry.manifests), len(new.pairs), name)
    _demand("files", len(old.shards), len(new.paths), name)
    firsts = np.cumsum([0, *(len(pair.files) for pair in new.pairs)])[:-1].tolist()
    _demand("places of manifests among the files", entry.manifests, firsts, name)
    now = stamps(new.paths)
    for was, path, size, stamp in zip(
        old.shards.uris, new.paths, old.shards.sizes.tolist(), now, strict=True
    ):
        if stamp.size != size:
            raise StaleIndexError(
                f"these are not the data of the pack: {path} has {stamp.size:,} bytes, and {was} "
                f"had {size:,}",
                where=f"leaf {name}",
                fix=_FIX,
            )
    return ShardTable(
        pa.array(new.paths, pa.string()),
        old.shards.sizes,
        np.array([stamp.mtime_ns for stamp in now], np.int64),
        old.shards.rows,
        old.shards.dropped,
    )


def _demand(what: str, old: Any, new: Any, leaf: str) -> None:
    if old != new:
        raise StaleIndexError(
            f"these are not the data of the pack: {what}: {old!r} in the pack, {new!r} in the "
            "config",
            where=f"leaf {leaf}",
            fix=_FIX,
        )


def _lasting(options: dict[str, Any]) -> Any:
    """The options that shape columns, those left out that say where data are."""
    own = {name: value for name, value in options.get("own", {}).items() if name not in _PLACES}
    return msgspec.json.decode(msgspec.json.encode({**options, "own": own}))
