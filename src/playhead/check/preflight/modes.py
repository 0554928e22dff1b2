"""How the samples of a leaf are fetched, as the data's place and the environment decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from playhead.fetch.kept import is_kept
from playhead.loader.locality import goes_by_shards
from playhead.storage.access import is_remote
from playhead.storage.get_batch import served_by_aistore, wants_get_batch, wants_individual_gets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend import Blend
    from playhead.blend.leaf import Leaf

__all__ = ["MODES", "Mode", "is_true", "mode_of", "passes_by_shards"]

Mode: TypeAlias = Literal["local", "shards", "ranges", "ais-batch", "ais-individual", "ais-ranges"]
"""How the samples of a leaf are fetched."""

MODES: Final[dict[Mode, str]] = {
    "local": "byte ranges of local files",
    "shards": "whole shards, through the cache on disk",
    "ranges": "byte ranges of objects",
    "ais-batch": "batch requests to AIStore",
    "ais-individual": "one request to AIStore for each object",
    "ais-ranges": "byte ranges of objects in AIStore",
}
"""What each way is, for people."""


def is_true(environment: Mapping[str, str], name: str) -> bool:
    """Whether an environment variable is `true`, in any case of its letters."""
    return environment.get(name, "").strip().lower() == "true"


def passes_by_shards(blend: Blend) -> bool:
    """Whether passes go from shard to shard, as far as the paths and options of a blend tell.

    Parameters
    ----------
    blend
        The blend. That its tables are read in stretches only their packs tell.
    """
    if blend.options.locality is not None:
        return blend.options.locality == "shards"
    uris = (uri for leaf in blend.leaves for files in leaf.paths.values() for uri in files)
    return any(map(goes_by_shards, uris))


def mode_of(leaf: Leaf, *, by_shard: bool) -> Mode:
    """Say how the samples of a leaf are fetched.

    Parameters
    ----------
    leaf
        The leaf: of its archives the first tells, else its first file.
    by_shard
        Whether passes go from shard to shard.
    """
    files = leaf.paths.get("tar") or next(iter(leaf.paths.values()))
    uri = files[0]
    if is_kept(uri, by_shard=by_shard):
        return "shards"
    if not served_by_aistore(uri):
        return "ranges" if is_remote(uri) else "local"
    if not wants_get_batch():
        return "ais-ranges"
    return "ais-individual" if wants_individual_gets() else "ais-batch"
