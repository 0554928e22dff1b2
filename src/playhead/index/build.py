"""Packs for the leaves of a blend: found, or built by one process while the others wait."""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from playhead.errors import PlayheadError, StaleIndexError
from playhead.index.build_demand import demand_indexes
from playhead.index.build_pace import PATIENCE_SECONDS, Pace, Progress, part_cost
from playhead.index.build_pack import PackSettings, build_pack
from playhead.index.build_target import (
    PACK_FOLDER,
    Target,
    leaf_source,
    leaf_sources,
    target_is_fresh,
    targets,
    why_stale,
)
from playhead.index.build_workers import new_pool
from playhead.index.lock import build_lock
from playhead.index.pack import LeafPack, Pack, PackVersionError, open_pack
from playhead.index.source import stamps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf

__all__ = ["WAIT_SECONDS", "PackResult", "build_packs", "open_leaves"]

WAIT_SECONDS: Final = 1800.0
"""How long one waits for another process that builds."""

_DEFAULT_COMMAND = "playhead index CONFIG"

_log = logging.getLogger("playhead")


@dataclass(frozen=True, kw_only=True, slots=True)
class PackResult:
    """One pack after `build_packs`."""

    path: str
    """Its file."""
    keys: list[str]
    """Keys of its leaves."""
    status: Literal["built", "fresh", "failed"]
    """`fresh`: it was up to date and is as it was."""
    num_rows: int
    """Rows of all its leaves."""
    dropped: dict[str, int]
    """Rows left out, by reason."""
    error: PlayheadError | None = None
    """Why it failed."""


def build_packs(
    leaves: Sequence[Leaf],
    *,
    indexes_root: str | None = None,
    workers: int = 1,
    force: bool = False,
    embed_rows: bool = False,
    skip_bad_rows: bool = False,
    progress: Progress | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> list[PackResult]:
    """Build the packs of leaves, those that are up to date excepted.

    Parameters
    ----------
    leaves
        The leaves; those with a declared `index_pack` are left out.
    indexes_root
        Where the packs are kept, in its folder `playhead`; each leaf's own root, else the user's
        cache, if None.
    workers
        Processes that read.
    force
        Build all, and read all.
    embed_rows
        Put the manifests' rows into the packs.
    skip_bad_rows
        Count rows that cannot be used rather than fail.
    progress
        Told about the work.
    wait_seconds
        How long to wait for another process that builds the same pack.

    Returns
    -------
    list[PackResult]
        One for each pack; those that failed say why, and the others are built all the same.
    """
    pace = Pace(None, _DEFAULT_COMMAND, progress)
    todo = targets(
        [leaf for leaf in leaves if leaf.options.index_pack is None], _under(indexes_root)
    )
    for target in todo:
        pace.add(_cost(target))
    with new_pool(workers) if workers > 1 else nullcontext() as pool:
        settings = PackSettings(
            embed_rows=embed_rows, skip_bad_rows=skip_bad_rows, pool=pool, ahead=2 * workers
        )

        def build(target: Target) -> PackResult:
            try:
                built = _ensure(target, settings, pace, wait_seconds, force=force)
                pack = open_pack(target.path)
            except PlayheadError as error:
                return _result(target, "failed", None, error)
            return _result(target, "built" if built else "fresh", pack, None)

        with ThreadPoolExecutor(workers) as threads:
            return list(threads.map(build, todo))


def open_leaves(
    leaves: Sequence[Leaf],
    *,
    auto_index: bool = False,
    progress: Progress | None = None,
    pack_dir: str | None = None,
    command: str = _DEFAULT_COMMAND,
    patience_seconds: float = PATIENCE_SECONDS,
    wait_seconds: float = WAIT_SECONDS,
) -> list[LeafPack]:
    """Open the columns of leaves, building what is missing or out of date.

    Any number of processes may call it at once: one builds, the others wait, and if it dies
    another one takes its place.

    Parameters
    ----------
    leaves
        The leaves.
    auto_index
        Build however long it takes.
    progress
        Told about the work.
    pack_dir
        Where packs are kept; each leaf's `indexes_root`, else the user's cache, if None.
    command
        What errors tell people to run instead.
    patience_seconds
        How long building may take without `auto_index`.
    wait_seconds
        How long to wait for another process that builds.

    Returns
    -------
    list[LeafPack]
        The columns, in the order of `leaves`.

    Raises
    ------
    BuildError
        If building takes too long, or another process does.
    IndexFileError
        If a pack cannot be used.
    IndexMissingError, StaleIndexError
        If a leaf is `indexed: true` and has neither a pack nor `.idx` files, or they are old.
    DataError
        If a source breaks its format.
    """
    built = [leaf for leaf in leaves if leaf.options.index_pack is None]
    todo = targets(built, pack_dir)
    stale = [target for target in todo if _fresh_pack(target) is None]
    pace = Pace(None if auto_index else patience_seconds, command, progress)
    for target in stale:
        demand_indexes(target, command)
        pace.add(_cost(target))
    for target in stale:
        _ensure(target, PackSettings(), pace, wait_seconds, force=False)
    homes = {member.source: target.path for target in todo for member in target.members}
    packs = {path: open_pack(path) for path in set(homes.values())}
    opened: list[LeafPack] = []
    for leaf in leaves:
        if leaf.options.index_pack is not None:
            opened.append(_open_declared(leaf, leaf.options.index_pack))
            continue
        source = leaf_source(leaf)
        opened.append(packs[homes[source]].leaf(leaf.key, source))
    return opened


def _ensure(
    target: Target, settings: PackSettings, pace: Pace, wait_seconds: float, *, force: bool
) -> bool:
    """Make a pack fresh; whether that took building it."""
    if not force and _fresh_pack(target) is not None:
        pace.skip(_cost(target))
        return False
    with build_lock(target.path, wait_seconds=wait_seconds, on_wait=_log.warning):
        if not force and _fresh_pack(target) is not None:
            pace.skip(_cost(target))
            return False
        old = None if force else _readable_pack(target.path)
        build_pack(target, old, settings, pace)
    return True


def _fresh_pack(target: Target) -> Pack | None:
    """Return the pack if it is up to date."""
    pack = _readable_pack(target.path)
    return pack if pack is not None and target_is_fresh(target, pack) else None


def _readable_pack(path: Path) -> Pack | None:
    """Return a pack if there is one of this version.

    Raises
    ------
    IndexFileError
        If it is damaged: packs appear whole, so that says something of the disk.
    """
    if not path.exists():
        return None
    try:
        return open_pack(path)
    except PackVersionError:
        return None


def _open_declared(leaf: Leaf, path: str) -> LeafPack:
    """Open a pack that the config names."""
    sources = leaf_sources(leaf)
    pack = open_pack(path).leaf(leaf.key, sources.source)
    why = why_stale(pack, sources, compare_times=False)
    if why is not None:
        raise StaleIndexError(
            f"the declared pack does not belong to the data of leaf {leaf.name}: {why}",
            where=path,
            fix="Build it again with `playhead index`, or leave index_pack out",
        )
    return pack


def _cost(target: Target) -> float:
    cost = 0.0
    for member in target.members:
        now = stamps(member.paths)
        first = 0
        for pair in member.pairs:
            end = first + 1 + len(pair.tars)
            cost += part_cost(now[first:end])
            first = end
    return cost


def _under(indexes_root: str | None) -> str | None:
    return None if indexes_root is None else str(Path(indexes_root) / PACK_FOLDER)


def _result(
    target: Target,
    status: Literal["built", "fresh", "failed"],
    pack: Pack | None,
    error: PlayheadError | None,
) -> PackResult:
    dropped: Counter[str] = Counter()
    for entry in () if pack is None else pack.leaves:
        dropped.update(entry.dropped)
    return PackResult(
        path=str(target.path),
        keys=[member.leaf.key for member in target.members],
        status=status,
        num_rows=0 if pack is None else sum(entry.num_rows for entry in pack.leaves),
        dropped=dict(dropped),
        error=error,
    )
