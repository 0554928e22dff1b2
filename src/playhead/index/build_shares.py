"""Packs whose manifests are read by many machines; the one that is last puts them together."""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import PlayheadError, WorkerError
from playhead.index.build_pace import Pace, part_cost
from playhead.index.build_pack import PackPlan, PackSettings, plan_pack, write_plan
from playhead.index.build_plans import plans_of
from playhead.index.build_result import (
    PackResult,
    is_done,
    named_os_errors,
    readable_pack,
    result_of,
)
from playhead.index.lock import build_lock
from playhead.index.pack import open_pack
from playhead.index.part_work import Share, deal
from playhead.index.partials import remove_forgotten, remove_partials, scan_paths, stored_scans
from playhead.index.pool import run_each
from playhead.index.scan_files import read_scan, save_scan
from playhead.index.source import Stamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playhead.index.build_rows import ScanTask
    from playhead.index.build_target import Target
    from playhead.index.pack import Pack
    from playhead.index.pool import Workers

__all__ = ["build_share"]

_log = logging.getLogger("playhead")


class _Work(NamedTuple):
    """A pack that is not up to date, and whose part each of its manifests is."""

    target: Target
    plan: PackPlan
    numbers: list[int]
    before: int | None


class _Job(NamedTuple):
    """One manifest of this part, and the file that its rows go to."""

    work: int
    task: ScanTask
    path: Path


def build_share(
    todo: Sequence[Target],
    share: Share,
    settings: PackSettings,
    *,
    workers: Workers,
    force: bool,
    wait_seconds: float,
) -> list[PackResult]:
    """Do one part of what packs need, and write those of which all parts are done.

    Manifests are dealt to parts by what they take, whether they are up to date or not: every part
    divides them alike. What is read of them lies in files beside the packs until all is there.

    Parameters
    ----------
    todo
        The packs.
    share
        Which part this is.
    settings
        How packs are made.
    workers
        Processes that read, or a cluster.
    force
        Read what is up to date too, and what this part has read before.
    wait_seconds
        How long to wait for another process that puts the same pack together.

    Returns
    -------
    list[PackResult]
        One for each pack.
    """
    results, plans = plans_of(todo, settings, force=force)
    costs = {plan.target.path: _costs_of_plan(plan) for plan in plans}
    for target in todo:
        if target.path in results and results[target.path].status == "fresh":
            costs[target.path] = _costs_of_pack(target, open_pack(target.path))
    # Every part deals them in the order of the packs, whichever it finds up to date.
    known = [target.path for target in todo if target.path in costs]
    numbers = iter(deal([cost for path in known for cost in costs[path]], share.count))
    dealt = {path: [next(numbers) for _ in costs[path]] for path in known}
    works = [
        _Work(plan.target, plan, dealt[plan.target.path], _written_at(plan.target.path))
        for plan in plans
    ]
    for work, error in zip(works, _scan_mine(works, share, workers, force=force), strict=True):
        path = work.target.path
        try:
            if error is not None:
                raise error
            with named_os_errors(work.target):
                results[path] = _put_together(work, settings, force, wait_seconds)
        except PlayheadError as error:
            results[path] = result_of(work.target, "failed", error=error)
    for folder in {target.path.parent for target in todo}:
        remove_forgotten(folder)
    return [results[target.path] for target in todo]


def _scan_mine(
    works: Sequence[_Work], share: Share, workers: Workers, *, force: bool
) -> list[PlayheadError | None]:
    """Read the manifests of this part that were not read yet; return why packs fail."""
    jobs: list[_Job] = []
    for number, work in enumerate(works):
        done = {} if force else stored_scans(work.plan)
        mine = [owner == share.number for owner in _owners_of_tasks(work.plan, work.numbers)]
        paths = scan_paths(work.plan)
        jobs += [
            _Job(number, task, paths[place])
            for place, task in enumerate(work.plan.tasks)
            if mine[place] and place not in done
        ]
    errors: list[PlayheadError | None] = [None] * len(works)
    for outcome in run_each(
        _scan_to_file,
        jobs,
        workers=workers,
        on_death=lambda job, why: _log.warning("%s: %s", job.task.pair.manifest, why),
    ):
        error, manifest = outcome.error, outcome.item.task.pair.manifest
        if isinstance(error, WorkerError):
            error = WorkerError(str(error), where=manifest)
        errors[outcome.item.work] = errors[outcome.item.work] or error
    return errors


def _scan_to_file(job: _Job) -> None:
    try:
        save_scan(job.path, job.task)
    except PlayheadError:
        raise
    except FileNotFoundError:
        # Another process with the same part was faster, and the pack is made: the folder is gone.
        if job.path.parent.exists():
            raise


def _put_together(
    work: _Work, settings: PackSettings, force: bool, wait_seconds: float
) -> PackResult:
    """Write a pack if all is there that it needs; say which parts are missing otherwise."""
    target = work.target
    missing = _missing_parts(work.plan, work.numbers)
    if missing and _written_at(target.path) == work.before:
        return result_of(target, "waiting", missing_parts=missing)
    with build_lock(target.path, wait_seconds=wait_seconds, on_wait=_log.warning):
        # Another part may have been faster; forced, only a pack that was not there before is new.
        is_new = not force or _written_at(target.path) != work.before
        pack = readable_pack(target.path) if is_new else None
        if pack is not None and is_done(target, pack, settings):
            remove_partials(target.path)
            return result_of(target, "built", pack)
        plan = plan_pack(target, None if force else pack, settings)
        missing = _missing_parts(plan, work.numbers)
        if missing:
            return result_of(target, "waiting", missing_parts=missing)
        scans = (
            read_scan(path, task) for path, task in zip(scan_paths(plan), plan.tasks, strict=True)
        )
        write_plan(plan, scans, Pace(None, ""))
        remove_partials(target.path)
    return result_of(target, "built", open_pack(target.path))


def _missing_parts(plan: PackPlan, numbers: Sequence[int]) -> tuple[int, ...]:
    done = stored_scans(plan)
    owners = _owners_of_tasks(plan, numbers)
    return tuple(sorted({owner for place, owner in enumerate(owners) if place not in done}))


def _owners_of_tasks(plan: PackPlan, numbers: Sequence[int]) -> list[int]:
    """The part of each manifest that must be read."""
    is_read = [part.known is None for leaf in plan.leaves for part in leaf.parts]
    return [number for number, read in zip(numbers, is_read, strict=True) if read]


def _costs_of_plan(plan: PackPlan) -> list[float]:
    """What each manifest of a pack takes, those that need not be read included."""
    return [
        part_cost(part.stamps[: None if leaf.has_offsets else 1])
        for leaf in plan.leaves
        for part in leaf.parts
    ]


def _costs_of_pack(target: Target, pack: Pack) -> list[float]:
    """The same of a pack that is up to date, which knows how large its files are."""
    costs: list[float] = []
    for member in target.members:
        entry = pack.entry(member.source)
        assert entry is not None
        end = entry.shard_start + entry.num_shards
        files = [Stamp(size, 0) for size in pack.shards.sizes[entry.shard_start : end].tolist()]
        for first, last in pairwise([*entry.manifests, entry.num_shards]):
            costs.append(part_cost(files[first : last if entry.has_offsets else first + 1]))
    return costs


def _written_at(path: Path) -> int | None:
    """When a pack was written, in nanoseconds; None if there is none."""
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return None
