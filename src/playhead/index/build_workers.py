"""Scanning the manifests of many packs in several processes."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import PlayheadError, WorkerError
from playhead.index.build_scan import scan
from playhead.index.lock import machine_name
from playhead.index.pool import run_each
from playhead.index.scan_files import read_scan, save_scan

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from playhead.index.build_pack import PackPlan
    from playhead.index.build_rows import Rows, ScanTask
    from playhead.index.pool import Workers

    _Write = Callable[[PackPlan, Iterable[Iterator[Rows]]], None]

__all__ = ["scan_plans"]


class _Job(NamedTuple):
    """One manifest, and the file that its rows go to."""

    plan: int
    task: ScanTask
    path: Path


@dataclass(kw_only=True)
class _Progress:
    """A pack whose manifests are being scanned."""

    folder: Path
    missing: int
    paths: list[Path]


def scan_plans(
    plans: Sequence[PackPlan],
    workers: Workers,
    write: _Write,
    on_death: Callable[[str], None],
    stored: Sequence[Mapping[int, Path]],
) -> Generator[tuple[PackPlan, PlayheadError | None]]:
    """Scan the manifests of packs, all of them side by side, and write each pack when it can be.

    Parameters
    ----------
    plans
        The packs.
    workers
        Number of processes, this one alone if it is one; or a cluster.
    write
        Called with a pack and the rows of each of its tasks.
    on_death
        Told about workers that were killed and whose manifest is tried again.
    stored
        Of each pack the tasks that are done: their places, and the files that hold their rows.

    Yields
    ------
    tuple
        Each pack, and why it failed, or None.
    """
    if workers != 1:
        yield from _scan_in_workers(plans, workers, write, on_death, stored)
        return
    for plan, done in zip(plans, stored, strict=True):
        scans = (
            read_scan(done[place], task) if place in done else scan(task)
            for place, task in enumerate(plan.tasks)
        )
        yield plan, _written(plan, scans, write)


def _scan_in_workers(
    plans: Sequence[PackPlan],
    workers: Workers,
    write: _Write,
    on_death: Callable[[str], None],
    stored: Sequence[Mapping[int, Path]],
) -> Generator[tuple[PackPlan, PlayheadError | None]]:
    progress = [_start(plan, done) for plan, done in zip(plans, stored, strict=True)]
    try:
        jobs = [
            _Job(number, task, path)
            for number, (plan, state) in enumerate(zip(plans, progress, strict=True))
            for task, path in zip(plan.tasks, state.paths, strict=True)
            if path.parent == state.folder
        ]
        failed: set[int] = set()
        for plan, state in zip(plans, progress, strict=True):
            if state.missing == 0:
                yield plan, _written(plan, _read_back(plan, state), write)
        for outcome in run_each(
            _scan_to_file,
            jobs,
            workers=workers,
            on_death=lambda job, why: on_death(f"{job.task.pair.manifest}: {why}"),
        ):
            job, plan = outcome.item, plans[outcome.item.plan]
            state = progress[job.plan]
            if job.plan in failed:
                continue
            if outcome.error is not None:
                failed.add(job.plan)
                yield plan, _placed(outcome.error, job)
                continue
            state.missing -= 1
            if state.missing == 0:
                yield plan, _written(plan, _read_back(plan, state), write)
    finally:
        for state in progress:
            shutil.rmtree(state.folder, ignore_errors=True)


def _start(plan: PackPlan, done: Mapping[int, Path]) -> _Progress:
    parent = plan.target.path.parent
    _remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{_prefix()}{os.getpid()}-", dir=parent))
    paths = [done.get(number, folder / str(number)) for number in range(len(plan.tasks))]
    return _Progress(folder=folder, missing=len(plan.tasks) - len(done), paths=paths)


def _written(
    plan: PackPlan,
    scans: Iterable[Iterator[Rows]],
    write: _Write,
) -> PlayheadError | None:
    """Write a pack; return why it failed."""
    try:
        write(plan, scans)
    except PlayheadError as error:
        return error
    return None


def _scan_to_file(job: _Job) -> None:
    """Scan a manifest in a worker, and leave its rows in a file."""
    save_scan(job.path, job.task)


def _read_back(plan: PackPlan, state: _Progress) -> Iterator[Iterator[Rows]]:
    for task, path in zip(plan.tasks, state.paths, strict=True):
        yield read_scan(path, task)
        if path.parent == state.folder:
            path.unlink()


def _placed(error: PlayheadError, job: _Job) -> PlayheadError:
    """Name the manifest of a worker that died; other errors name theirs."""
    if isinstance(error, WorkerError):
        return WorkerError(str(error), where=job.task.pair.manifest)
    return error


def _prefix() -> str:
    return f".playhead-scan-{zlib.crc32(machine_name().encode()):08x}-"


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed processes of this machine left."""
    for scratch in folder.glob(f"{_prefix()}*"):
        pid = scratch.name.removeprefix(_prefix()).partition("-")[0]
        with suppress(ValueError, PermissionError):
            try:
                os.kill(int(pid), 0)
            except ProcessLookupError:
                shutil.rmtree(scratch, ignore_errors=True)
