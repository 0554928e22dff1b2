"""Ranks on one machine: started as a launcher starts them, killed as a scheduler kills them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from playhead.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path
    from types import FrameType

__all__ = ["leaving_in_order", "run_ranks"]

_POLL_SECONDS = 0.02
# What a command ends with that was asked for something wrong.
_WRONG_INPUT = 2
# What a scheduler, a service manager or a terminal that is closed ends a process with.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def leaving_in_order() -> Generator[None]:
    """Have SIGTERM and SIGHUP leave the block as an exception, so that it can be tidied up.

    Without it they end the process where it is, and what it started goes on without it. In a thread
    other than the main one nothing changes: signals are handled in the main one alone.

    Raises
    ------
    SystemExit
        When such a signal comes: 128 and its number, as a shell says it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # What is ignored, as under nohup, is to be ignored still.
    before = {
        number: signal.signal(number, leave)
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_ranks(
    name: str,
    ranks: int,
    command: Callable[[int], Sequence[str]],
    logs: Path,
    *,
    deadline_seconds: float,
    is_time_to_kill: Callable[[], bool] | None = None,
) -> float:
    """Run processes that work together to their end, and return the wall seconds.

    Each has RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, and what
    it says is in `<name>.<rank>.err`. Where one fails, or whoever runs them is interrupted, the
    others are killed.

    Parameters
    ----------
    name
        What they are called in messages, and their logs.
    ranks
        How many processes.
    command
        What this interpreter is to run as a rank: its arguments.
    logs
        Folder for what they say.
    deadline_seconds
        After this they are killed.
    is_time_to_kill
        Asked again and again; once it says yes, all of them are killed, and that is no failure.

    Raises
    ------
    WorkerError
        When a process fails, or the deadline passes; its last words are in the message. The exit
        code is 2 where all that fail end with it, since they were asked for something wrong.
    """
    begin = time.monotonic()
    port = _free_port()
    processes: list[subprocess.Popen[bytes]] = []
    with leaving_in_order():
        try:
            # One after the other, so that those started are known when a later one fails to start.
            for rank in range(ranks):
                said = logs / f"{name}.{rank}.err"
                processes.append(_start(command(rank), rank, ranks, port, said))
            while any(process.poll() is None for process in processes):
                if is_time_to_kill is not None and is_time_to_kill():
                    _kill(processes)
                    return time.monotonic() - begin
                if any(process.poll() for process in processes):
                    break
                if time.monotonic() - begin > deadline_seconds:
                    raise WorkerError(
                        f"{name} was not done after {deadline_seconds:.0f} s",
                        fix=f"Look at the logs in {logs}, or allow more time",
                    )
                time.sleep(_POLL_SECONDS)
            # Those that are killed now for the failure of another did not fail themselves.
            failed = [rank for rank, process in enumerate(processes) if process.poll()]
        finally:
            _kill(processes)
    if failed:
        said = [logs / f"{name}.{rank}.err" for rank in failed]
        error = WorkerError(
            "; ".join(
                f"rank {rank} of {name} {_how_it_ended(processes[rank], log)}"
                for rank, log in zip(failed, said, strict=True)
            ),
            where=", ".join(map(str, said)),
            fix="Look there for all that was said",
        )
        if all(processes[rank].returncode == _WRONG_INPUT for rank in failed):
            error.exit_code = _WRONG_INPUT
        raise error
    return time.monotonic() - begin


def _how_it_ended(process: subprocess.Popen[bytes], log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    if process.returncode < 0:
        # Whoever is killed has no time for last words.
        signal_name = signal.Signals(-process.returncode).name
        hint = ", as happens when memory runs out" if signal_name == "SIGKILL" else ""
        return f"was killed by {signal_name}{hint}"
    if not lines:
        is_full = not shutil.disk_usage(log.parent).free
        return f"failed: it said nothing{', as the disk of its log is full' if is_full else ''}"
    return f"failed: {lines[-1].removeprefix('playhead: ')}"


def _start(
    command: Sequence[str], rank: int, ranks: int, port: int, said: Path
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    with said.open("wb") as words:
        return subprocess.Popen(  # noqa: S603  (our own module, in our own interpreter)
            [sys.executable, *command],
            env=environment,
            stdout=words,
            stderr=words,
            # Workers are killed with the rank that they belong to, and with nobody else.
            start_new_session=True,
        )


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        # A rank that died leaves its workers behind, one that came to its end does not.
        if process.poll() != 0:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
