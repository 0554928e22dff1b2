"""Packs that a config names: used as they are, and never built by a loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import ConfigError, IndexMissingError, StaleIndexError
from playhead.index.build_target import why_declared_is_stale
from playhead.index.pack import open_pack
from playhead.paths import exists, scheme

if TYPE_CHECKING:
    from playhead.index.build_target import LeafSources
    from playhead.index.pack import LeafPack

__all__ = ["open_declared"]


def open_declared(sources: LeafSources, path: str) -> LeafPack:
    """Open the columns of a leaf in the pack that its config names.

    Parameters
    ----------
    sources
        The leaf with its files as they are now.
    path
        The pack.

    Raises
    ------
    IndexMissingError
        If there is none.
    IndexFileError
        If it cannot be used, or does not hold the leaf.
    StaleIndexError
        If its files are others, or have other sizes.
    """
    command = f"`playhead pack -o {path} CONFIG`"
    if scheme(path):
        raise ConfigError(
            "a pack is mapped into memory, and this one is not on a disk",
            where=path,
            fix="Fetch it with `playhead prefetch`, and name the copy",
        )
    if not exists(path):
        raise IndexMissingError(
            f"leaf {sources.leaf.name} declares a pack that does not exist",
            where=path,
            fix=f"Build it with {command}, or correct index_pack and index_pack_root",
        )
    pack = open_pack(path).leaf(sources.leaf.key, sources.source)
    why = why_declared_is_stale(pack, sources)
    if why is not None:
        raise StaleIndexError(
            f"the declared pack does not belong to the data of leaf {sources.leaf.name}: {why}",
            where=path,
            fix=f"Build it again with {command[:-1]} --overwrite`; if only paths changed, with "
            "`--rebind`",
        )
    return pack
