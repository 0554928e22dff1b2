"""Packs that do not say where in their archives members lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.storage.get_batch import wants_get_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.pack import LeafPack

__all__ = ["demand_member_offsets"]


def demand_member_offsets(packs: Sequence[LeafPack]) -> list[str]:
    """Check that samples of packs without member offsets are fetched by their names.

    Returns
    -------
    list[str]
        What to tell people about packs that have none.

    Raises
    ------
    ConfigError
        If there is such a pack, and archives are to be read by offsets.
    """
    without = sorted({pack.path for pack in packs if not pack.entry.has_offsets})
    if without and not wants_get_batch():
        raise ConfigError(
            "this pack has no member offsets, which reading its archives needs",
            where=without[0],
            fix="Set USE_AIS_GET_BATCH=true, which fetches members by their names, or build it"
            " again with `playhead pack` without --native-tar-paths-only",
        )
    return [
        f"the pack {path} has no member offsets: its samples come by batch requests alone"
        " (USE_AIS_GET_BATCH=true), until `playhead pack` builds it without"
        " --native-tar-paths-only"
        for path in without
    ]
