"""Processes killed at any moment and started again on other ranks and workers: the same bytes."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.jobs import history_of, last_state, lines_of, wait_for_lines
from support.real_speech import write_blend

if TYPE_CHECKING:
    from pathlib import Path

    from support.jobs import Job, Server

pytestmark = pytest.mark.e2e

STEP = 6


def spec_of(config: Path, steps: int, **options: Any) -> dict[str, Any]:
    overrides = {"micro_batches_per_step": STEP, "info": True, "window_draws": 250}
    return {
        "config": str(config),
        "dataset": "augmented",
        "notes": "ignore",
        "steps": steps,
        "overrides": {**overrides, **options},
    }


def start_ranks(
    server: Server, folder: Path, spec: dict[str, Any], ranks: int, state: Path | None
) -> list[Job]:
    """All ranks, in at most two processes."""
    groups = [list(range(ranks))[half::2] for half in range(min(2, ranks))]
    state_in = None if state is None else str(state)
    return [
        server.start(folder, {**spec, "ranks": group, "world_size": ranks, "state_in": state_in})
        for group in groups
    ]


def run_and_kill(
    server: Server, folder: Path, config: Path, *, steps: int, kills: int
) -> list[Job]:
    """Start, kill at a random moment, start on other ranks and workers, … and let it end.

    A run that ends before its last kill is started again from nothing.
    """
    rng = random.Random(kills)
    jobs: list[Job] = []
    state: Path | None = None
    killed = 0
    while True:
        ranks = rng.choice([1, 2, 3, 6])
        # Workers are forked by every rank: many of both would only measure this machine.
        workers = rng.choice([0, 0, 1, 2, 4]) if ranks < 3 else 0
        method = "spawn" if workers == 1 and rng.random() < 0.25 else "fork"
        spec = spec_of(config, steps, num_workers=workers, multiprocessing_context=method)
        started = start_ranks(server, folder, spec, ranks, state)
        jobs += started
        if killed == kills:
            for job in started:
                job.finish(120)
            return jobs
        if rng.random() < 0.2:
            time.sleep(rng.uniform(0, 0.3))
        else:
            for job in started:
                wait_for_lines(job, rng.randint(1, 8), 60)
            time.sleep(rng.uniform(0, 0.03))
        ended = all([job.poll() == 0 for job in started])  # noqa: C419  (every one is polled)
        for job in started:
            job.kill()
        killed += not ended
        state = None if ended else last_state(started) or state


def check_kills(server: Server, folder: Path, config: Path, *, steps: int, kills: int) -> None:
    (whole,) = start_ranks(server, folder / "whole", spec_of(config, steps), 1, None)
    jobs = run_and_kill(server, folder / "killed", config, steps=steps, kills=kills)
    whole.finish(120)
    uninterrupted = lines_of(whole.out)
    assert [(line["step"], line["slot"]) for line in uninterrupted] == [
        (step, slot) for step in range(steps) for slot in range(STEP)
    ]
    history = history_of(jobs)
    assert [history[key] for key in sorted(history)] == uninterrupted


@pytest.fixture
def blend(tmp_path: Path, prompts: Path, digits: Path) -> Path:
    return write_blend(tmp_path / "blend.yaml", prompts, digits, batch_duration=8)


@pytest.mark.timeout(240)
def test_twenty_kills(server: Server, tmp_path: Path, blend: Path) -> None:
    check_kills(server, tmp_path, blend, steps=40, kills=20)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_hundred_kills(server: Server, tmp_path: Path, blend: Path) -> None:
    check_kills(server, tmp_path, blend, steps=200, kills=100)
