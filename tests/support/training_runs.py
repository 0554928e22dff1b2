"""Runs of `train_torch`: started, killed, and what became part of the model that they left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from support.jobs import environment, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from support.jobs import Job, Server

SCRIPT = Path(__file__).with_name("train_torch.py")

# Ranks that are started again would find the addresses of those before in the launcher's store.
_OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

Lines = dict[tuple[int, int], dict[str, Any]]


@dataclass
class Start:
    """What one process did from where it started."""

    pid: int
    step: int
    rank: int
    ranks: int
    lines: list[dict[str, Any]]


def starts_of(logs: Path) -> list[Start]:
    """Every process that got so far as to train, by the step that it started at."""
    starts = []
    for path in logs.glob("*.jsonl"):
        first, *lines = lines_of(path) or [{}]
        if first:
            starts.append(Start(first["pid"], first["start"], first["rank"], first["of"], lines))
    return sorted(starts, key=lambda start: start.step)


def survived(*stages: Path) -> Lines:
    """What the model at the end was trained on: of each stage, what the next one went on from.

    Steps after the checkpoint that a run went on from are gone with the processes that made them.
    """
    history: Lines = {}
    starts = [start for logs in stages for start in starts_of(logs)]
    for start in starts:
        later = [other.step for other in starts if other.step > start.step]
        end = min(later, default=None)
        for line in start.lines:
            if end is None or line["step"] < end:
                place = line["step"], line["slot"]
                assert place not in history, f"{place} was trained on twice"
                history[place] = line
    return history


def content_of(history: Lines) -> list[dict[str, Any]]:
    """What was trained on in which step and slot, without the loss that it gave."""
    return [
        {name: value for name, value in history[place].items() if name != "loss"}
        for place in sorted(history)
    ]


def losses_of(history: Lines) -> list[float]:
    """The mean loss of the samples of each step."""
    sums: Counter[int] = Counter()
    samples: Counter[int] = Counter()
    for (step, _), line in history.items():
        sums[step] += line["loss"]
        samples[step] += len(line["ids"])
    return [sums[step] / samples[step] for step in sorted(sums)]


def names_of(lines: Iterable[dict[str, Any]]) -> Counter[str]:
    """How often each sample came, but for the repeats that fill a last step."""
    return Counter(
        name
        for line in lines
        for name, repeated in zip(line["ids"], line["repeated"], strict=True)
        if not repeated
    )


def saved_step(spec: dict[str, Any]) -> int:
    """Steps before the last whole checkpoint; 0 where there is none."""
    path = Path(spec["checkpoint"])
    if spec.get("save", "file") != "file":
        return max((int(done.parent.name) for done in path.glob("*/.metadata")), default=0)
    return torch.load(path, weights_only=True)["step"] if path.exists() else 0


def wait_until_killable(
    spec: dict[str, Any], before: int, failed: Callable[[], str], seconds: float = 90
) -> None:
    """Until training is inside a later step than that of a new checkpoint.

    Parameters
    ----------
    spec
        What is trained.
    before
        Steps before the checkpoint that is not new.
    failed
        What a process said that has ended; empty while all of them run.
    seconds
        How long it may take.
    """
    deadline = time.monotonic() + seconds
    logs = Path(spec["logs"])
    while (saved := saved_step(spec)) <= before or _furthest(logs) <= saved:
        assert not (said := failed()), said
        assert time.monotonic() < deadline, f"no checkpoint after step {before} in {seconds} s"
        time.sleep(0.01)


def _furthest(logs: Path) -> int:
    """The furthest step in which any process has trained."""
    return max((line["step"] for start in starts_of(logs) for line in start.lines[-1:]), default=0)


def last_words(jobs: list[Job]) -> str:
    """What the jobs said that have ended."""
    return "\n".join(job.log.read_text() for job in jobs if job.poll() is not None)


def start_group(server: Server, folder: Path, spec: dict[str, Any], ranks: int) -> list[Job]:
    """Processes that train together; one by itself has no group."""
    Path(spec["logs"]).mkdir(parents=True, exist_ok=True)
    if ranks == 1:
        return [server.start(folder, {"train": spec})]
    place = {"rendezvous": str(folder / "rendezvous"), "world_size": ranks}
    return [
        server.start(folder, {"train": {**spec, **place, "rank": rank}}) for rank in range(ranks)
    ]


class Torchrun:
    """A launcher and the processes that it starts."""

    def __init__(self, folder: Path, spec: dict[str, Any], *options: str) -> None:
        self.logs = Path(spec["logs"])
        self.logs.mkdir(parents=True, exist_ok=True)
        self.spec = folder / "spec.json"
        self.spec.write_text(json.dumps(spec))
        self.said = folder / "said.log"
        with self.said.open("wb") as said:
            self.launcher = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *options, SCRIPT, self.spec],
                env={**environment(), "OMP_NUM_THREADS": "1", **_OWN_STORE},
                stdout=said,
                stderr=said,
            )

    def last_words(self) -> str:
        """What was said, once the launcher has ended."""
        return "" if self.launcher.poll() is None else self.said.read_text()

    def finish(self, seconds: float) -> None:
        """Wait for the end, which must be a good one."""
        try:
            status = self.launcher.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(self.said.read_text()) from None
        assert status == 0, self.said.read_text()

    def kill(self) -> None:
        """SIGKILL to the launcher, and to every process that it started."""
        self.launcher.kill()
        self.launcher.wait(20)
        for start in starts_of(self.logs):
            # A number may be another process by now.
            with suppress(FileNotFoundError, ProcessLookupError):
                if os.fsencode(self.spec) in Path(f"/proc/{start.pid}/cmdline").read_bytes():
                    os.kill(start.pid, signal.SIGKILL)
