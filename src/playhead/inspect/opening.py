"""The sources of a config with the columns that are there: nothing is built, read or written."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import PlayheadError
from playhead.index.build_target import leaf_sources
from playhead.index.declared import open_declared
from playhead.inspect.built_packs import built_packs
from playhead.loader.columns import columns_of
from playhead.loader.opened import asked_of, planning_of, tokens_of
from playhead.loader.row_facts import find_side_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend import Blend
    from playhead.blend.leaf import Leaf
    from playhead.index.build_target import LeafSources
    from playhead.index.pack import LeafPack
    from playhead.loader.run import Planning
    from playhead.plan.columns import LeafColumns

__all__ = ["OpenedBlend", "open_blend"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OpenedBlend:
    """A blend, and what of its columns is there."""

    blend: Blend
    """The blend."""
    packs: tuple[LeafPack | None, ...]
    """The pack of each leaf; None where there is none that is up to date."""
    columns: tuple[LeafColumns | None, ...]
    """What the plan sees of each leaf."""
    planning: Planning | None
    """What its plan is a function of; None where something is missing."""
    missing: tuple[str, ...]
    """What is not there, a sentence each."""
    notes: tuple[str, ...]
    """What people should know."""


def open_blend(blend: Blend, *, tokenizer: Any, micro_batches_per_step: int) -> OpenedBlend:
    """Open the packs of a blend that are up to date.

    Parameters
    ----------
    blend
        The blend.
    tokenizer
        What makes tokens of texts; None where nothing does.
    micro_batches_per_step
        What a step has where the blend does not say it.
    """
    notes: list[str] = []
    packs, missing = _packs(blend.leaves)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns = tuple(
            None if pack is None else _columns(blend, leaf, pack)
            for leaf, pack in zip(blend.leaves, packs, strict=True)
        )
        planning = None
        try:
            planning = _planning(blend, packs, tokenizer, micro_batches_per_step, notes)
        except PlayheadError as error:
            notes.append(f"what comes next cannot be planned: {error}")
    notes += [str(warning.message) for warning in caught]
    return OpenedBlend(
        blend=blend,
        packs=tuple(packs),
        columns=columns,
        planning=planning,
        missing=tuple(missing),
        notes=tuple(notes),
    )


def _packs(leaves: Sequence[Leaf]) -> tuple[list[LeafPack | None], list[str]]:
    """The pack of each leaf that is up to date, and what is wrong with the others."""
    found: dict[int, LeafPack] = {}
    missing: list[str] = []
    described: list[tuple[int, LeafSources]] = []
    for number, leaf in enumerate(leaves):
        try:
            sources = leaf_sources(leaf)
            if sources.declared_pack is not None:
                found[number] = open_declared(sources, sources.declared_pack)
            else:
                described.append((number, sources))
        except PlayheadError as error:  # noqa: PERF203 - one bad leaf hides no other
            missing.append(str(error))
    packs = built_packs([sources for _, sources in described], missing)
    for number, sources in described:
        pack = packs.get(sources.source)
        leaf_pack = None if pack is None else pack.find(sources.leaf.key, sources.source)
        if leaf_pack is not None:
            found[number] = leaf_pack
        else:
            missing.append(f"leaf {sources.leaf.name} has no pack that is up to date")
    return [found.get(number) for number in range(len(leaves))], missing


def _columns(blend: Blend, leaf: Leaf, pack: LeafPack) -> LeafColumns | None:
    sides = [find_side_columns(leaf, pack)]
    by_status = blend.options.keep is not None
    try:
        return columns_of([leaf], [pack], sides, by_status=by_status)[0]
    except PlayheadError:
        return None


def _planning(
    blend: Blend,
    packs: Sequence[LeafPack | None],
    tokenizer: Any,
    micro_batches_per_step: int,
    notes: list[str],
) -> Planning | None:
    there = [pack for pack in packs if pack is not None]
    if len(there) < len(packs):
        return None
    encoding = tokens_of(blend, there, tokenizer, say=notes.append)
    sides = [find_side_columns(leaf, pack) for leaf, pack in zip(blend.leaves, there, strict=True)]
    asked = asked_of(blend, encoding)
    return planning_of(blend, there, sides, asked, micro_batches_per_step)
