"""Doing something for stretches of rows: in this process, in threads, or in other processes."""

from __future__ import annotations

import gc
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.index.pool import at_most, run_each

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.index.pool import Workers

__all__ = ["Stretch", "do_all", "stretches"]

_ROWS = 2048
_BYTES = 8 << 20
# Fewer rows are done before a process has started.
_FEW_ROWS = 8192
_YOUNG_OBJECTS = 50_000
_MAIN = b"__main__"


class Stretch(NamedTuple):
    """Rows from `start` to before `stop`."""

    start: int
    stop: int


def stretches(start: int, stop: int, row_size: NDArray[Any]) -> list[Stretch]:
    """Cut rows into stretches of a few thousand, and fewer where rows are long.

    Parameters
    ----------
    start, stop
        The rows.
    row_size
        Bytes of every row of the leaf, shape (N,).
    """
    rows = _ROWS
    if stop > start:
        mean = int(row_size[start:stop].sum(dtype="int64")) // (stop - start)
        rows = max(1, min(_ROWS, _BYTES // max(1, mean)))
    return [Stretch(first, min(first + rows, stop)) for first in range(start, stop, rows)]


def do_all(
    task: Callable[[Stretch], Any],
    todo: Sequence[Stretch],
    *,
    workers: Workers,
    in_threads: bool,
    on_death: Callable[[str], None],
) -> Generator[tuple[Stretch, Any]]:
    """Do a task for each stretch and give what it returned, in any order.

    Parameters
    ----------
    task
        What to do; where it cannot be pickled, or is made of what the main script defines, this
        process does everything.
    todo
        The stretches.
    workers
        How many threads or processes may work at a time; or a cluster.
    in_threads
        Whether the task lets other threads run.
    on_death
        Told when a process was killed and its stretch will be tried again.

    Raises
    ------
    PlayheadError
        What the task raises, or `WorkerError` if a process was killed twice over one stretch.
    """
    workers = at_most(workers, len(todo))
    num_rows = todo[-1].stop - todo[0].start if todo else 0
    if in_threads and isinstance(workers, int) and workers > 1:
        yield from _in_threads(task, todo, workers)
    elif workers not in (0, 1) and num_rows > _FEW_ROWS and _travels(task):
        yield from _elsewhere(task, todo, workers, on_death)
    else:
        with _seldom_collected():
            for stretch in todo:
                yield stretch, task(stretch)


def _in_threads(
    task: Callable[[Stretch], Any], todo: Sequence[Stretch], workers: int
) -> Generator[tuple[Stretch, Any]]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="playhead-tokens")
    try:
        with _seldom_collected():
            yield from zip(todo, pool.map(task, todo), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _elsewhere(
    task: Callable[[Stretch], Any],
    todo: Sequence[Stretch],
    workers: Workers,
    on_death: Callable[[str], None],
) -> Generator[tuple[Stretch, Any]]:
    with _main_left_alone():
        outcomes: Iterator[Any] = run_each(
            task,
            todo,
            workers=workers,
            on_death=lambda stretch, why: on_death(
                f"rows {stretch.start} to {stretch.stop} are tried again: {why}"
            ),
        )
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            yield outcome.item, outcome.result


@contextmanager
def _seldom_collected() -> Generator[None]:
    """Let many short-lived lists come and go before anyone looks for cycles among them."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(before[0], _YOUNG_OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _travels(task: Callable[[Stretch], Any]) -> bool:
    """Whether another process can have the task without running the main script."""
    with suppress(Exception):
        return _MAIN not in pickle.dumps(task)
    return False


@contextmanager
def _main_left_alone() -> Generator[None]:
    """Keep processes that start from running the main script.

    They would do so to know what it defines, which nothing here needs. It may load a whole training
    job, and where it does not guard itself it would start that.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
