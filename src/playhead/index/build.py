"""Packs for the leaves of a blend: found, or built by one process while the others wait."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import PlayheadError
from playhead.index.build_demand import demand_indexes
from playhead.index.build_pace import PATIENCE_SECONDS, Pace, Progress, part_cost
from playhead.index.build_pack import PackPlan, PackSettings, plan_pack, write_plan
from playhead.index.build_plans import plans_of
from playhead.index.build_result import (
    PackResult,
    named_os_errors,
    readable_pack,
    refusal_of,
    result_of,
)
from playhead.index.build_scan import scan
from playhead.index.build_shares import build_share
from playhead.index.build_target import (
    PACK_FOLDER,
    LeafSources,
    Target,
    leaf_sources,
    target_is_fresh,
    targets,
)
from playhead.index.build_workers import scan_plans
from playhead.index.declared import open_declared
from playhead.index.lock import build_lock
from playhead.index.pack import LeafPack, open_pack
from playhead.index.partials import remove_partials, stored_scans
from playhead.index.source import stamps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.build_rows import Rows
    from playhead.index.part_work import Share
    from playhead.index.pool import Workers

__all__ = ["WAIT_SECONDS", "PackResult", "build_packs", "open_leaves"]

WAIT_SECONDS: Final = 1800.0
"""How long one waits for another process that builds."""

_AUTO_WAIT_SECONDS = 86_400.0
_DEFAULT_COMMAND = "playhead index CONFIG"

_log = logging.getLogger("playhead")


def build_packs(
    leaves: Sequence[Leaf],
    *,
    indexes_root: str | None = None,
    workers: Workers = 1,
    force: bool = False,
    embed_rows: bool = False,
    skip_bad_rows: bool = False,
    progress: Progress | None = None,
    wait_seconds: float = WAIT_SECONDS,
    share: Share | None = None,
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
        Processes that read, or a cluster that sees the same files under the same names.
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
    share
        Do one part of the work, and write the packs of which all parts are done; everything if
        None, but for what parts have done already.

    Returns
    -------
    list[PackResult]
        One for each leaf whose files do not pair, then one for each pack; those that failed say
        why, and the others are built all the same.
    """
    pace = Pace(None, _DEFAULT_COMMAND, progress)
    settings = PackSettings(embed_rows=embed_rows, skip_bad_rows=skip_bad_rows)
    own, refused = _described(leaves)
    todo = targets(own, _under(indexes_root))
    if share is not None:
        return refused + build_share(
            todo, share, settings, workers=workers, force=force, wait_seconds=wait_seconds
        )
    results, plans = plans_of(todo, settings, force=force)
    pace.add(sum(sum(plan.costs) for plan in plans))

    def write(plan: PackPlan, scans: Iterable[Iterator[Rows]]) -> None:
        with (
            named_os_errors(plan.target),
            build_lock(plan.target.path, wait_seconds=wait_seconds, on_wait=_log.warning),
        ):
            write_plan(plan, scans, pace)
            remove_partials(plan.target.path)

    stored = [{} if force else stored_scans(plan) for plan in plans]
    for plan, error in scan_plans(plans, workers, write, _log.warning, stored):
        pack = open_pack(plan.target.path) if error is None else None
        status = "built" if error is None else "failed"
        results[plan.target.path] = result_of(plan.target, status, pack, error)
    return refused + [results[target.path] for target in todo]


def _described(leaves: Sequence[Leaf]) -> tuple[list[LeafSources], list[PackResult]]:
    """Pair the files of leaves without a declared pack, and say whose do not pair."""
    own: list[LeafSources] = []
    refused: list[PackResult] = []
    for leaf in leaves:
        try:
            sources = leaf_sources(leaf)
        except PlayheadError as error:
            refused.append(refusal_of(leaf, error))
            continue
        if sources.declared_pack is None:
            own.append(sources)
    return own, refused


def open_leaves(
    leaves: Sequence[Leaf],
    *,
    auto_index: bool = False,
    progress: Progress | None = None,
    pack_dir: str | None = None,
    command: str = _DEFAULT_COMMAND,
    patience_seconds: float = PATIENCE_SECONDS,
    wait_seconds: float | None = None,
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
        How long to wait for another process that builds; half an hour if None, a day with
        `auto_index`.

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
    described = [leaf_sources(leaf) for leaf in leaves]
    todo = targets([one for one in described if one.declared_pack is None], pack_dir)
    stale = [target for target in todo if not _is_fresh(target)]
    pace = Pace(None if auto_index else patience_seconds, command, progress)
    costs = [_cost(target) for target in stale]
    pace.add(sum(costs))
    demand_indexes(stale, command)
    if wait_seconds is None:
        wait_seconds = _AUTO_WAIT_SECONDS if auto_index else WAIT_SECONDS
    for target, cost in zip(stale, costs, strict=True):
        _ensure(target, cost, pace, wait_seconds)
    homes = {member.source: target.path for target in todo for member in target.members}
    packs = {path: open_pack(path) for path in set(homes.values())}
    return [
        open_declared(one, one.declared_pack)
        if one.declared_pack is not None
        else packs[homes[one.source]].leaf(one.leaf.key, one.source)
        for one in described
    ]


def _ensure(target: Target, cost: float, pace: Pace, wait_seconds: float) -> None:
    """Make a pack fresh, or wait until another process has."""
    with (
        named_os_errors(target),
        build_lock(target.path, wait_seconds=wait_seconds, on_wait=_log.warning),
    ):
        if _is_fresh(target):
            pace.skip(cost)
            return
        plan = plan_pack(target, readable_pack(target.path), PackSettings())
        pace.skip(cost - sum(plan.costs))
        write_plan(plan, map(scan, plan.tasks), pace)


def _is_fresh(target: Target) -> bool:
    pack = readable_pack(target.path)
    return pack is not None and target_is_fresh(target, pack)


def _cost(target: Target) -> float:
    cost = 0.0
    for member in target.members:
        now = stamps(member.paths)
        first = 0
        for pair in member.pairs:
            end = first + len(pair.files)
            cost += part_cost(now[first:end])
            first = end
    return cost


def _under(indexes_root: str | None) -> str | None:
    return None if indexes_root is None else str(Path(indexes_root) / PACK_FOLDER)
