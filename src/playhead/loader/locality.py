"""How passes are ordered where nobody says it, and whether the shards of a window can be kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import ConfigError
from playhead.fetch.kept import kept_among
from playhead.loader.columns import has_tables
from playhead.paths import scheme
from playhead.storage.access import OBJECT_SCHEMES
from playhead.storage.cache import cache_folder
from playhead.storage.compression import has_middle, is_archive
from playhead.storage.get_batch import served_by_aistore
from playhead.storage.shard_cache import CacheSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.config import Options
    from playhead.index.pack import LeafPack
    from playhead.plan.settings import Locality

__all__ = [
    "cache_notes",
    "cache_settings_of",
    "goes_by_shards",
    "locality_of",
    "may_keep",
    "shard_bytes_of",
]


def locality_of(leaves: Sequence[Leaf], packs: Sequence[LeafPack]) -> Locality:
    """Return how passes are ordered by where the data lie.

    Rows that are read in stretches, objects of plain stores and what can only be read from its
    start go by shards; files of disks and what AIStore serves by rows.

    Parameters
    ----------
    leaves, packs
        The leaves of a blend and their columns.
    """
    by_shards = has_tables(packs) or any(
        goes_by_shards(uri) for leaf in leaves for uris in leaf.paths.values() for uri in uris
    )
    return "shards" if by_shards else "rows"


def goes_by_shards(uri: str) -> bool:
    """Whether a pass with this file in it goes from shard to shard where nobody says how.

    Examples
    --------
    >>> goes_by_shards("s3://b/a.tar"), goes_by_shards("/data/a.tar")
    (True, False)
    """
    if scheme(uri) in OBJECT_SCHEMES and not served_by_aistore(uri):
        return True
    # Of a compressed manifest the rows are in the pack.
    return is_archive(uri) and not has_middle(uri)


def cache_settings_of(options: Options) -> CacheSettings:
    """Return where shards are kept whole."""
    given = options.cache_dir
    folder = cache_folder("shards") if given is None else Path(given).expanduser()
    return CacheSettings(folder=str(folder), limit_bytes=options.cache_bytes)


def shard_bytes_of(pack: LeafPack) -> NDArray[np.int64]:
    """Bytes of the files of a leaf as they are kept, shape (S,), as far as its index tells.

    Of what is compressed, and of what a command writes, that is where the last member ends.
    """
    ends = np.zeros_like(pack.shards.sizes)
    has_tar = pack.tar >= 0
    np.maximum.at(ends, pack.tar[has_tar], (pack.audio_offset + pack.audio_size)[has_tar])
    return np.maximum(pack.shards.sizes, ends)


def may_keep(packs: Sequence[LeafPack]) -> bool:
    """Whether whole copies may be kept of any file of a blend, however its passes are ordered."""
    return any(
        pack.groups is None and bool(kept_among(pack.shards.uris, by_shard=True)) for pack in packs
    )


def cache_notes(
    leaves: Sequence[Leaf], packs: Sequence[LeafPack], locality: Locality, limit_bytes: int
) -> list[str]:
    """Compare shards that are kept with what may be kept.

    Parameters
    ----------
    leaves, packs
        The leaves of a blend and their columns.
    locality
        How passes are ordered.
    limit_bytes
        What may be kept.

    Returns
    -------
    list[str]
        What people should know.

    Raises
    ------
    ConfigError
        If a shard is larger than that.
    """
    in_use = 0
    for leaf, pack in zip(leaves, packs, strict=True):
        uris = pack.shards.uris
        kept = [] if pack.groups is not None else kept_among(uris, by_shard=locality == "shards")
        if not kept:
            continue
        sizes = shard_bytes_of(pack)[kept]
        largest = int(sizes.argmax())
        if sizes[largest] > limit_bytes:
            raise ConfigError(
                f"the shards that are kept on this machine may have {limit_bytes:,} bytes in all,"
                f" and one of leaf {leaf.name} alone has {int(sizes[largest]):,} bytes",
                where=uris[kept[largest]],
                fix="Set cache_bytes to more, at best to twice what a window needs, or locality to"
                " rows where the store can read ranges",
            )
        in_use += int(sizes[largest])
    if in_use > limit_bytes:
        note = (
            f"one shard of each leaf has {in_use:,} bytes together, and the shards that are kept on"
            f" this machine may have {limit_bytes:,} bytes (cache_bytes): shards will be fetched"
            " more than once, or read range by range"
        )
        return [note]
    return []
