"""Scanning manifests in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.errors import WorkerError
from playhead.index.build_scan import Rows, ScanTask, scan
from playhead.index.columns import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["new_pool", "scan_all"]


class _Scanned(NamedTuple):
    """What a worker leaves: a file of columns and its counts."""

    path: str
    dropped: Counter[str]


def new_pool(workers: int) -> ProcessPoolExecutor:
    """Start worker processes that end when this one does, however it ends."""
    # Forked children would inherit the build lock and keep it after their parent's death.
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_follow_parent
    )


def scan_all(
    tasks: Sequence[ScanTask], folder: Path, pool: ProcessPoolExecutor | None, ahead: int
) -> Iterator[Iterator[Rows]]:
    """Scan manifests in order: for each task an iterator of its rows.

    An iterator must be used up before the next is asked for; then the task's counts are complete.

    Raises
    ------
    WorkerError
        If a worker is killed.
    """
    if pool is None:
        yield from map(scan, tasks)
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".playhead-scan-") as scratch:
        waiting = deque(enumerate(tasks))
        running: deque[tuple[ScanTask, Future[_Scanned]]] = deque()
        while waiting or running:
            while waiting and len(running) < ahead:
                number, task = waiting.popleft()
                path = f"{scratch}/{number}"
                running.append((task, pool.submit(_scan_to_file, task, path)))
            task, future = running.popleft()
            try:
                result = future.result()
            except BrokenProcessPool:
                raise WorkerError(
                    "a worker process was killed, most likely for want of memory",
                    where=task.pair.manifest,
                    fix="Index with fewer workers (--workers)",
                ) from None
            task.dropped.update(result.dropped)
            yield _read_back(result.path)
            Path(result.path).unlink()


def _scan_to_file(task: ScanTask, path: str) -> _Scanned:
    with Path(path).open("wb") as file:
        for rows in scan(task):
            for name in COLUMNS:
                np.save(file, rows.columns[name], allow_pickle=False)
            data = np.frombuffer(rows.data or b"", np.uint8)
            np.save(file, data, allow_pickle=False)
            np.save(file, np.array(rows.position), allow_pickle=False)
    return _Scanned(path, task.dropped)


def _read_back(path: str) -> Iterator[Rows]:
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while file.tell() < size:
            columns = {name: _load(file) for name in COLUMNS}
            data = _load(file).tobytes()
            yield Rows(columns, data, int(_load(file)))


def _load(file: IO[bytes]) -> np.ndarray:
    return np.load(file, allow_pickle=False)


def _follow_parent() -> None:
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, name="playhead-parent", daemon=True).start()
