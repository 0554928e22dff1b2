"""Training processes: started as a launcher starts ranks, and killed as a scheduler kills them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Stage", "run_stage"]

_DEADLINE_SECONDS = 300.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """Some processes that train together until they are done, or killed."""

    name: str
    """What their logs are called."""
    ranks: int
    """How many processes."""
    workers: int
    """Worker processes of each of their loaders."""
    kill_at: int | None
    """Step during which all of them are killed; None lets them finish."""


def run_stage(
    stage: Stage,
    command: list[str],
    logs: Path,
    steps_in: Callable[[Path], int],
) -> float:
    """Run a stage to its end and return its wall seconds.

    Parameters
    ----------
    stage
        What to run.
    command
        The training command without what differs from rank to rank.
    logs
        Folder of the logs of ranks, `<stage>.<rank>.jsonl`.
    steps_in
        Counts the steps in a log, to know when to kill.

    Raises
    ------
    WorkerError
        When a process fails, or the deadline passes; its last words are in the message.
    """
    begin = time.monotonic()
    port = _free_port()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        # One after the other, so that those started are known when a later one fails to start.
        processes.extend(_start(stage, rank, command, logs, port) for rank in range(stage.ranks))
        while any(process.poll() is None for process in processes):
            if (
                stage.kill_at is not None
                and steps_in(logs / f"{stage.name}.0.jsonl") >= stage.kill_at
            ):
                _kill(processes)
                return time.monotonic() - begin
            if any(process.poll() for process in processes):
                break
            if time.monotonic() - begin > _DEADLINE_SECONDS:
                raise WorkerError(
                    f"stage {stage.name} was not done after {_DEADLINE_SECONDS:.0f} s",
                    fix=f"Look at the logs in {logs}",
                )
            time.sleep(_POLL_SECONDS)
        # Those that are killed now for the failure of another did not fail themselves.
        failed = [rank for rank, process in enumerate(processes) if process.poll()]
    finally:
        _kill(processes)
    if failed:
        logs_of_failed = [logs / f"{stage.name}.{rank}.err" for rank in failed]
        raise WorkerError(
            "; ".join(
                f"rank {rank} of stage {stage.name} failed: {_last_words(log)}"
                for rank, log in zip(failed, logs_of_failed, strict=True)
            ),
            where=", ".join(map(str, logs_of_failed)),
        )
    return time.monotonic() - begin


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _start(
    stage: Stage, rank: int, command: list[str], logs: Path, port: int
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(stage.ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    with (logs / f"{stage.name}.{rank}.err").open("wb") as errors:
        return subprocess.Popen(  # noqa: S603  (our own module, in our own interpreter)
            [
                sys.executable,
                *command,
                f"--workers={stage.workers}",
                f"--log={logs / f'{stage.name}.{rank}.jsonl'}",
            ],
            env=environment,
            stdout=errors,
            stderr=errors,
            # Workers are killed with the rank that they belong to, and with nobody else.
            start_new_session=True,
        )


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
