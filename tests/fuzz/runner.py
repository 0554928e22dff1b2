"""Runs cases in processes that may crash or hang, and says how to repeat what went wrong."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzz.child import fast_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

CASE_SECONDS = 40.0
"""A case takes some hundredths of a second; this leaves room for a machine that is busy."""
START_SECONDS = 150.0
_TESTS = Path(__file__).parents[1]


@dataclass
class Tally:
    """What came of many cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        return sum(self.outcomes.values())

    def add(self, case: int, outcome: str, what: str | None = None) -> None:
        """Count an outcome; `what` tells of one that is wrong."""
        self.outcomes[outcome.partition(":")[0]] += 1
        if what is not None:
            again = f"PYTHONPATH=tests {sys.executable} -m fuzz.child {case}"
            self.failures.append(f"{what}: {outcome}\n    to repeat it: {again}")


def run(cases: range, processes: int) -> Tally:
    """Run cases in so many processes at a time."""
    tally = Tally()
    parts = [list(cases[offset::processes]) for offset in range(processes)]
    # A child that crashes leaves its files to whoever started it.
    with (
        tempfile.TemporaryDirectory(prefix="playhead-fuzz-", dir=fast_folder()) as folder,
        ThreadPoolExecutor(processes) as threads,
    ):
        list(threads.map(lambda part: _run_part(part, tally, folder), parts))
    return tally


def _run_part(cases: list[int], tally: Tally, folder: str) -> None:
    while cases:
        cases = _run_child(cases, tally, folder)


def _run_child(cases: list[int], tally: Tally, folder: str) -> list[int]:
    """Run cases in one process; return those after the one that ended it."""
    command = [sys.executable, "-m", "fuzz.child", *map(str, cases)]
    environment = {**os.environ, "PYTHONPATH": str(_TESTS), "OMP_NUM_THREADS": "1"}
    environment["TMPDIR"] = folder
    left = list(cases)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=_TESTS.parent
        )
        try:
            for said in _lines(process):
                if "outcome" in said:
                    left.remove(said["case"])
                    what = None if said["is_right"] else f"case {said['case']}, {said['what']}"
                    tally.add(said["case"], said["outcome"], what)
        except TimeoutError:
            process.kill()
            process.wait()
            tally.add(left[0], "HANGS", f"case {left[0]}")
            return left[1:]
        code = process.wait()
        if not left:
            return []
        errors.seek(0)
        text = errors.read().decode(errors="replace").strip().splitlines()
        if code > 0:
            tally.add(left[0], f"ENDS: exit code {code}, {text[-1:]}", f"case {left[0]}")
        else:
            frames = [line.strip() for line in text if "/playhead/" in line][:1]
            name = signal.Signals(-code).name if code else "no error"
            tally.add(left[0], f"CRASHES: {name} {frames}", f"case {left[0]}")
    return left[1:]


def _lines(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """What a process says, as it says it.

    Raises
    ------
    TimeoutError
        If it is silent for too long.
    """
    assert process.stdout is not None
    deadline, partial = time.monotonic() + START_SECONDS, b""
    with process.stdout:
        while True:
            wait = max(0.0, deadline - time.monotonic())
            if not select.select([process.stdout], [], [], wait)[0]:
                raise TimeoutError
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                return
            *lines, partial = (partial + data).split(b"\n")
            yield from map(json.loads, lines)
            deadline = time.monotonic() + CASE_SECONDS
