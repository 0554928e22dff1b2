"""Packs for the leaves of a blend: found, or built by one process while the others wait."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from playhead.errors import BuildError, PlayheadError, StaleIndexError
from playhead.index.build_demand import demand_indexes
from playhead.index.build_pace import PATIENCE_SECONDS, Pace, Progress, part_cost
from playhead.index.build_pack import PackPlan, PackSettings, plan_pack, write_plan
from playhead.index.build_scan import scan
from playhead.index.build_target import (
    PACK_FOLDER,
    LeafSources,
    Target,
    leaf_sources,
    target_is_fresh,
    targets,
    why_declared_is_stale,
)
from playhead.index.build_workers import scan_plans
from playhead.index.disk_errors import fix_of
from playhead.index.lock import build_lock
from playhead.index.pack import LeafPack, Pack, PackVersionError, open_pack
from playhead.index.source import stamps

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.build_rows import Rows

__all__ = ["WAIT_SECONDS", "PackResult", "build_packs", "open_leaves"]

WAIT_SECONDS: Final = 1800.0
"""How long one waits for another process that builds."""

_AUTO_WAIT_SECONDS = 86_400.0
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
    settings = PackSettings(embed_rows=embed_rows, skip_bad_rows=skip_bad_rows)
    own = [leaf_sources(leaf) for leaf in leaves if leaf.options.index_pack is None]
    todo = targets(own, _under(indexes_root))
    results: dict[Path, PackResult] = {}
    plans: list[PackPlan] = []
    for target in todo:
        try:
            with _named_os_errors(target):
                target.path.parent.mkdir(parents=True, exist_ok=True)
                old = None if force else _readable_pack(target.path)
                if old is not None and _is_done(target, old, embed=embed_rows):
                    results[target.path] = _result(target, "fresh", old, None)
                    continue
                plan = plan_pack(target, old, settings)
        except PlayheadError as error:
            results[target.path] = _result(target, "failed", None, error)
            continue
        pace.add(sum(plan.costs))
        plans.append(plan)

    def write(plan: PackPlan, scans: Iterable[Iterator[Rows]]) -> None:
        with (
            _named_os_errors(plan.target),
            build_lock(plan.target.path, wait_seconds=wait_seconds, on_wait=_log.warning),
        ):
            write_plan(plan, scans, pace)

    for plan, error in scan_plans(plans, workers, write, _log.warning):
        pack = open_pack(plan.target.path) if error is None else None
        status = "built" if error is None else "failed"
        results[plan.target.path] = _result(plan.target, status, pack, error)
    return [results[target.path] for target in todo]


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
    todo = targets([one for one in described if one.leaf.options.index_pack is None], pack_dir)
    stale = [target for target in todo if not _is_fresh(target)]
    pace = Pace(None if auto_index else patience_seconds, command, progress)
    costs = [_cost(target) for target in stale]
    pace.add(sum(costs))
    for target in stale:
        demand_indexes(target, command)
    if wait_seconds is None:
        wait_seconds = _AUTO_WAIT_SECONDS if auto_index else WAIT_SECONDS
    for target, cost in zip(stale, costs, strict=True):
        _ensure(target, cost, pace, wait_seconds)
    homes = {member.source: target.path for target in todo for member in target.members}
    packs = {path: open_pack(path) for path in set(homes.values())}
    return [
        _open_declared(one, one.leaf.options.index_pack)
        if one.leaf.options.index_pack is not None
        else packs[homes[one.source]].leaf(one.leaf.key, one.source)
        for one in described
    ]


def _ensure(target: Target, cost: float, pace: Pace, wait_seconds: float) -> None:
    """Make a pack fresh, or wait until another process has."""
    with (
        _named_os_errors(target),
        build_lock(target.path, wait_seconds=wait_seconds, on_wait=_log.warning),
    ):
        if _is_fresh(target):
            pace.skip(cost)
            return
        plan = plan_pack(target, _readable_pack(target.path), PackSettings())
        pace.skip(cost - sum(plan.costs))
        write_plan(plan, map(scan, plan.tasks), pace)


@contextmanager
def _named_os_errors(target: Target) -> Generator[None]:
    """Say what the system says (a full disk, a file that may not be read) as an error of ours."""
    try:
        yield
    except OSError as error:
        if isinstance(error, PlayheadError):
            raise
        where = error.filename or target.path
        raise BuildError(
            f"the pack cannot be built: {error.strerror or error}",
            where=str(where),
            fix=fix_of(error),
        ) from error


def _is_fresh(target: Target) -> bool:
    pack = _readable_pack(target.path)
    return pack is not None and target_is_fresh(target, pack)


def _is_done(target: Target, pack: Pack, *, embed: bool) -> bool:
    """Whether a pack is up to date and has its rows embedded if that is wanted."""
    embedded = not embed or all(entry.embedded for entry in pack.leaves)
    return embedded and target_is_fresh(target, pack)


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


def _open_declared(sources: LeafSources, path: str) -> LeafPack:
    """Open a pack that the config names."""
    pack = open_pack(path).leaf(sources.leaf.key, sources.source)
    why = why_declared_is_stale(pack, sources)
    if why is not None:
        raise StaleIndexError(
            f"the declared pack does not belong to the data of leaf {sources.leaf.name}: {why}",
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
            end = first + len(pair.files)
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
