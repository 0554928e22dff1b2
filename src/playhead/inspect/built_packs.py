"""The packs that Playhead built for leaves and that are up to date; none is built here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.index.build_result import readable_pack
from playhead.index.build_target import target_is_fresh, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.build_target import LeafSources
    from playhead.index.pack import Pack

__all__ = ["built_packs"]


def built_packs(sources: Sequence[LeafSources], refused: list[str]) -> dict[str, Pack]:
    """Open the packs of the leaves of a blend that are there and up to date, by their source.

    Parameters
    ----------
    sources
        All leaves of the blend without a declared pack: which packs many of them share depends on
        all of them.
    refused
        Gets what is wrong with packs that cannot be used.
    """
    packs: dict[str, Pack] = {}
    try:
        wanted = targets(sources, None)
    except PlayheadError as error:
        refused.append(str(error))
        return packs
    for target in wanted:
        try:
            pack = readable_pack(target.path)
            if pack is not None and target_is_fresh(target, pack):
                packs |= {member.source: pack for member in target.members}
        except (PlayheadError, OSError) as error:  # noqa: PERF203 - one bad pack hides no other
            refused.append(str(error))
    return packs
