"""Starts jobs of `run_loader` as real processes, kills them, and reads what they left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("run_loader.py")

History = dict[tuple[int, int], dict[str, Any]]


@dataclass
class Job:
    """One process, and where it writes."""

    pid: int
    out: Path
    log: Path
    state: Path
    server: Server = field(repr=False)
    status: int | None = None

    def poll(self, seconds: float = 0) -> int | None:
        """The exit status, negative for a signal; None when it still runs after so many seconds."""
        if self.status is None:
            self.status = self.server.ask({"wait": self.pid, "timeout": seconds})["status"]
        return self.status

    def kill(self) -> None:
        """SIGKILL if it still runs, and wait until it is gone."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            assert self.poll(20) is not None

    def wait(self, seconds: float) -> int:
        """The exit status; a job that is not done in time is killed and fails the test."""
        status = self.poll(seconds)
        if status is None:
            self.kill()
            raise AssertionError(f"still running after {seconds} s:\n{self.log.read_text()}")
        return status

    def finish(self, seconds: float) -> None:
        """Wait until it is done; it must have ended well."""
        status = self.wait(seconds)
        assert status == 0, f"exit status {status}:\n{self.log.read_text()}"


def environment() -> dict[str, str]:
    """That of this process, and where `support` is found."""
    folders = [str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


class Server:
    """The process that forks jobs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        self._count = 0

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def load(self, module: str) -> None:
        """Import a module once for all later jobs."""
        self.ask({"import": module})

    def start(self, folder: Path, spec: dict[str, Any]) -> Job:
        """Run `spec` with its output, log and state in new files of `folder`."""
        self._count += 1
        folder.mkdir(parents=True, exist_ok=True)
        out, log, state = (
            folder / f"{self._count}.{kind}" for kind in ("jsonl", "log", "state.json")
        )
        spec = {**spec, "out": str(out), "log": str(log), "state_out": str(state)}
        return Job(self.ask(spec)["pid"], out, log, state, self)

    def close(self) -> None:
        assert self._process.stdin is not None
        # Workers that were forked meanwhile may hold the pipe open: its end would not be seen.
        self._process.stdin.write('{"stop": true}\n')
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait(20)
            assert self._process.stdout is not None
            self._process.stdout.close()


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The whole lines that a job wrote; a kill may tear the last one."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def history_of(jobs: list[Job]) -> History:
    """Batches by (step, slot); a batch that was taken twice must have been the same both times."""
    history: History = {}
    for job in jobs:
        for line in lines_of(job.out):
            known = history.setdefault((line["step"], line["slot"]), line)
            assert known == line, f"{job.out} took another batch than before"
    return history


def last_state(jobs: list[Job]) -> Path | None:
    """The oldest of the states that these jobs saved last: every rank did the steps before it."""
    if not all(job.state.exists() for job in jobs):
        return None
    return min((job.state for job in jobs), key=lambda path: json.loads(path.read_text())["step"])


def wait_for_lines(job: Job, count: int, seconds: float) -> None:
    """Until a job has written so many lines, or has ended well."""
    deadline = time.monotonic() + seconds
    while len(lines_of(job.out)) < count:
        if job.poll() is not None:
            job.finish(0)
            return
        assert time.monotonic() < deadline, f"{seconds} s:\n{job.log.read_text()}"
        time.sleep(0.005)
