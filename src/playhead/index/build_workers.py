"""Scanning the manifests of many packs in several processes."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from playhead.errors import PlayheadError, WorkerError
from playhead.index.build_rows import Rows, ScanTask
from playhead.index.build_scan import scan
from playhead.index.columns import COLUMNS, PART_COLUMNS, Parts
from playhead.index.lock import machine_name
from playhead.index.pool import run_each

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.index.build_pack import PackPlan
    from playhead.index.columns import Block

    _Write = Callable[[PackPlan, Iterable[Iterator[Rows]]], None]

__all__ = ["scan_plans"]

# With the number of parts of each row.
_NUM_PARTS = 1 + len(PART_COLUMNS)
_NUM_BESIDE = 4 + _NUM_PARTS


class _Job(NamedTuple):
    """One manifest, and the file that its columns go to."""

    plan: int
    task: ScanTask
    path: str


@dataclass(kw_only=True)
class _Progress:
    """A pack whose manifests are being scanned."""

    folder: Path
    missing: int
    paths: list[str] = field(default_factory=list)


def scan_plans(
    plans: Sequence[PackPlan],
    workers: int,
    write: _Write,
    on_death: Callable[[str], None],
) -> Generator[tuple[PackPlan, PlayheadError | None]]:
    """Scan the manifests of packs, all of them side by side, and write each pack when it can be.

    Parameters
    ----------
    plans
        The packs.
    workers
        Number of processes; this one alone if it is one.
    write
        Called with a pack and the rows of each of its tasks.
    on_death
        Told about workers that were killed and whose manifest is tried again.

    Yields
    ------
    tuple
        Each pack, and why it failed, or None.
    """
    if workers > 1:
        yield from _scan_in_workers(plans, workers, write, on_death)
        return
    for plan in plans:
        yield plan, _written(plan, map(scan, plan.tasks), write)


def _scan_in_workers(
    plans: Sequence[PackPlan],
    workers: int,
    write: _Write,
    on_death: Callable[[str], None],
) -> Generator[tuple[PackPlan, PlayheadError | None]]:
    progress = [_start(plan) for plan in plans]
    try:
        jobs = [
            _Job(number, task, path)
            for number, (plan, state) in enumerate(zip(plans, progress, strict=True))
            for task, path in zip(plan.tasks, state.paths, strict=True)
        ]
        failed: set[int] = set()
        for plan, state in zip(plans, progress, strict=True):
            if state.missing == 0:
                yield plan, _written(plan, map(_read_back, state.paths), write)
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
            if outcome.result is not None:
                job.task.dropped = outcome.result
            state.missing -= 1
            if state.missing == 0:
                yield plan, _written(plan, map(_read_back, state.paths), write)
    finally:
        for state in progress:
            shutil.rmtree(state.folder, ignore_errors=True)


def _start(plan: PackPlan) -> _Progress:
    parent = plan.target.path.parent
    _remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{_prefix()}{os.getpid()}-", dir=parent))
    paths = [str(folder / str(number)) for number in range(len(plan.tasks))]
    return _Progress(folder=folder, missing=len(plan.tasks), paths=paths)


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


def _scan_to_file(job: _Job) -> Counter[str]:
    """Scan a manifest in a worker: leave its columns in a file, return what was left out."""
    with Path(job.path).open("wb") as file:
        for rows in scan(job.task):
            for name in COLUMNS:
                _save(file, rows.columns[name])
            for part in _beside(rows):
                _save(file, part)
    return job.task.dropped


def _save(file: IO[bytes], column: NDArray[Any]) -> None:
    # Into a file of the system NumPy writes by itself, and does not say why it cannot.
    buffer = BytesIO()
    np.save(buffer, column, allow_pickle=False)
    file.write(buffer.getbuffer())


def _read_back(path: str) -> Iterator[Rows]:
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while file.tell() < size:
            columns = {name: _load(file) for name in COLUMNS}
            yield _rows(columns, [_load(file) for _ in range(_NUM_BESIDE)])
    Path(path).unlink()


def _beside(rows: Rows) -> list[NDArray[Any]]:
    """What rows have beside their columns, as arrays."""
    data, parts = rows.data or [], rows.parts
    empty = np.zeros(0, np.int64)
    return [
        np.frombuffer(msgspec.json.encode([rows.statuses, rows.data is not None]), np.uint8),
        np.array(list(map(len, data)), np.int64),
        np.frombuffer(b"".join(data), np.uint8),
        np.array([rows.position, parts is not None], np.int64),
        *((empty,) * _NUM_PARTS if parts is None else parts),
    ]


def _rows(columns: Block, beside: list[NDArray[Any]]) -> Rows:
    head, sizes, content, facts, *parts = beside
    statuses, is_embedded = msgspec.json.decode(head.tobytes())
    data = None
    if is_embedded:
        ends, whole = np.cumsum(sizes).tolist(), content.tobytes()
        data = [whole[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
    return Rows(columns, data, int(facts[0]), statuses, Parts(*parts) if facts[1] else None)


def _load(file: IO[bytes]) -> NDArray[Any]:
    return np.load(file, allow_pickle=False)


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
