"""Worker processes that may be killed: the item that one had in hand is known and tried again."""

from __future__ import annotations

import signal
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from playhead.errors import BuildError, PlayheadError, WorkerError
from playhead.index.disk_errors import fix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from multiprocessing.connection import Connection, PipeConnection
    from multiprocessing.process import BaseProcess

__all__ = ["Cluster", "Outcome", "Workers", "at_most", "attempt", "outcome_of", "run_each"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Waking up now and then lets Ctrl-C through; how long an item takes is not limited.
_WAKE_SECONDS = 1.0
_EXIT_SECONDS = 5.0
_FEWER = "Use fewer workers (`--workers`), or more memory"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome(Generic[_Item, _Result]):
    """What became of one item."""

    item: _Item
    """The item."""
    result: _Result | None = None
    """What the task gave; None where it failed."""
    error: PlayheadError | None = None
    """Why it failed."""


class Cluster(Protocol):
    """Other machines that do tasks instead of processes of this one."""

    def run_each(
        self,
        task: Callable[[_Item], _Result],
        items: Sequence[_Item],
        *,
        on_death: Callable[[_Item, str], None],
    ) -> Iterator[Outcome[_Item, _Result]]:
        """Do one task for each item, as `run_each`."""
        ...


Workers: TypeAlias = int | Cluster
"""What does tasks: so many processes of this machine, this one alone if it is one, or a cluster."""


def at_most(workers: Workers, number: int) -> Workers:
    """Return fewer processes where there is little to do; a cluster stays as it is.

    Examples
    --------
    >>> at_most(8, 3), at_most(2, 3)
    (3, 2)
    """
    return min(workers, number) if isinstance(workers, int) else workers


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection | PipeConnection
    item: int = -1


def run_each(
    task: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    workers: Workers,
    on_death: Callable[[_Item, str], None],
) -> Generator[Outcome[_Item, _Result]]:
    """Do one task for each item, in processes or on a cluster, and give outcomes as they come.

    An item whose process is killed is tried once more, at the end and with no other beside it.

    Parameters
    ----------
    task
        A function of a module, which takes an item and may raise.
    items
        What to do it for; picklable.
    workers
        Number of processes, or a cluster; with one or less, everything happens in this process.
    on_death
        Called with the item and what happened when a worker was killed and its item will be tried
        again.

    Yields
    ------
    Outcome
        One for each item. A worker that was killed twice is a `WorkerError`.
    """
    if not isinstance(workers, int):
        yield from workers.run_each(task, items, on_death=on_death)
        return
    if workers <= 1:
        for item in items:
            yield outcome_of(item, attempt(task, item))
        return
    killed: list[int] = []

    def note(index: int, cause: str) -> None:
        killed.append(index)
        on_death(items[index], f"{cause}. {_FEWER}")

    yield from _run(task, items, deque(range(len(items))), workers, note)
    again: list[tuple[int, str]] = []
    for index in killed:
        yield from _run(task, items, deque([index]), 1, lambda *death: again.append(death))
    for index, cause in again:
        yield Outcome(
            item=items[index], error=WorkerError(f"{cause}, for the second time", fix=_FEWER)
        )


def _run(
    task: Callable[[_Item], _Result],
    items: Sequence[_Item],
    queue: deque[int],
    workers: int,
    on_death: Callable[[int, str], None],
) -> Generator[Outcome[_Item, _Result]]:
    """Run the items whose numbers are queued; one whose worker was killed gets no outcome."""
    hired = [_hire(task) for _ in range(min(workers, len(queue)))]
    team = {worker.connection: worker for worker in hired}
    try:
        for worker in team.values():
            _assign(worker, queue, items)
        while any(worker.item >= 0 for worker in team.values()):
            for connection in wait(list(team), timeout=_WAKE_SECONDS):
                worker = team[connection]  # pyright: ignore[reportArgumentType]  (ours are connections)
                item = worker.item
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    del team[worker.connection]
                    cause = _cause_of_death(worker)
                    if item >= 0:
                        on_death(item, cause)
                    if queue:
                        worker = _hire(task)
                        team[worker.connection] = worker
                        _assign(worker, queue, items)
                    continue
                _assign(worker, queue, items)
                yield outcome_of(items[item], answer)
    finally:
        for worker in team.values():
            _dismiss(worker)


def _hire(task: Callable[[Any], Any]) -> _Worker:
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, task.__module__])
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(task, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _assign(worker: _Worker, queue: deque[int], items: Sequence[Any]) -> None:
    worker.item = queue.popleft() if queue else -1
    if worker.item >= 0:
        # A worker that is dead already is noticed when its answer is read.
        with suppress(OSError):
            worker.connection.send(items[worker.item])


def _dismiss(worker: _Worker) -> None:
    worker.connection.close()
    if worker.item >= 0:
        worker.process.terminate()
    worker.process.join(_EXIT_SECONDS)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join(_EXIT_SECONDS)


def _cause_of_death(worker: _Worker) -> str:
    worker.connection.close()
    worker.process.join(_EXIT_SECONDS)
    code = worker.process.exitcode
    who = f"worker process {worker.process.pid}"
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"{who} was killed by {signal.Signals(-code).name}"
    return f"{who} ended with exit code {code}"


def _serve(task: Callable[[Any], Any], connection: Connection) -> None:
    # Ctrl-C reaches the whole group of processes: the parent alone decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            connection.send(attempt(task, connection.recv()))


def attempt(task: Callable[[_Item], _Result], item: _Item) -> _Result | PlayheadError:
    """Do a task; return what it gives, or why it failed.

    Parameters
    ----------
    task
        What to do; may raise.
    item
        What to do it for.
    """
    try:
        return task(item)
    except PlayheadError as error:
        return error
    except MemoryError:
        return WorkerError("there was not enough memory", fix=_FEWER)
    except OSError as error:
        return BuildError(f"{error.strerror or error}", where=_file_of(error), fix=fix_of(error))


def _file_of(error: OSError) -> str | None:
    return None if error.filename is None else str(error.filename)


def outcome_of(item: _Item, answer: _Result | PlayheadError) -> Outcome[_Item, _Result]:
    """Say what became of an item.

    Parameters
    ----------
    item
        The item.
    answer
        What `attempt` returned.
    """
    if isinstance(answer, PlayheadError):
        return Outcome(item=item, error=answer)
    return Outcome(item=item, result=answer)
