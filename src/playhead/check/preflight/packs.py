"""Which packs a config has, and whether they are up to date; nothing is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from playhead.errors import IndexFileError, PlayheadError
from playhead.index.build_pace import part_cost
from playhead.index.build_result import readable_pack
from playhead.index.build_target import target_is_fresh, targets
from playhead.index.source import stamps

if TYPE_CHECKING:
    from playhead.check.preflight.subject import Named, Subject
    from playhead.index.build_target import LeafSources, Target
    from playhead.index.pack import Pack

__all__ = ["PackState", "pack_states"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackState:
    """One pack that training will make or open."""

    target: Target
    """What it is to hold, and where it is."""
    members: tuple[tuple[Named, LeafSources], ...]
    """The leaves in it."""
    state: Literal["fresh", "missing", "outdated", "damaged", "unknown"]
    """`unknown`: its files could not be looked at."""
    pack: Pack | None
    """The pack, where there is one."""
    error: PlayheadError | None
    """What is wrong with it, or with its files."""
    seconds: float
    """How long building it takes, as a first guess; 0 where it is fresh."""
    row_bytes: int
    """Bytes of the manifests that it is made from."""


def pack_states(subject: Subject) -> list[PackState]:
    """Look at the packs of all leaves that declare none."""
    known: list[PackState] | None = subject.facts.get("packs")
    if known is None:
        own = [pair for pair in subject.sources if pair[1].declared_pack is None]
        known = subject.facts["packs"] = _states(own)
    return known


def _states(own: list[tuple[Named, LeafSources]]) -> list[PackState]:
    of_source: dict[str, list[tuple[Named, LeafSources]]] = {}
    for named, sources in own:
        of_source.setdefault(sources.source, []).append((named, sources))
    found: list[PackState] = []
    for target in _targets([sources for _, sources in own]):
        members = tuple(pair for one in target.members for pair in of_source[one.source])
        found.append(_state(target, members))
    return found


def _targets(sources: list[LeafSources]) -> list[Target]:
    try:
        return targets(sources, None)
    except PlayheadError:
        # A root that cannot be one: another rule says so.
        return []


def _state(target: Target, members: tuple[tuple[Named, LeafSources], ...]) -> PackState:
    state: Literal["fresh", "missing", "outdated", "damaged", "unknown"]
    pack, error, seconds, row_bytes = None, None, 0.0, 0
    try:
        pack = readable_pack(target.path)
        state = "missing" if pack is None else "outdated"
    except IndexFileError as damaged:
        state, error = "damaged", damaged
    try:
        if pack is not None and target_is_fresh(target, pack):
            state = "fresh"
        else:
            seconds, row_bytes = _cost(target)
    except PlayheadError as lost:
        state, error = "unknown", lost
    return PackState(
        target=target,
        members=members,
        state=state,
        pack=pack,
        error=error,
        seconds=seconds,
        row_bytes=row_bytes,
    )


def _cost(target: Target) -> tuple[float, int]:
    seconds, row_bytes = 0.0, 0
    for member in target.members:
        now = stamps(member.paths)
        first = 0
        for pair in member.pairs:
            end = first + len(pair.files)
            seconds += part_cost(now[first:end])
            row_bytes += now[first].size
            first = end
    return seconds, row_bytes
