"""Lightning on real speech, killed at any moment: it trains on what it would have trained on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.jobs import environment, lines_of
from support.real_speech import leaves

pytestmark = pytest.mark.e2e

JOB = Path(__file__).parents[1] / "support/lightning_job.py"
STEP, STEPS = 4, 11


@pytest.fixture
def config(tmp_path: Path, prompts: Path, digits: Path) -> Path:
    entry = leaves(prompts)
    spoken = {"type": "nemo", "manifest_filepath": str(digits / "manifest.json"), "weight": 1}
    common = {"sample_rate": 8000, "batch_duration": 12}
    content = {
        "train_ds": {
            **common,
            "input_cfg": [{**entry["nemo"], "weight": 2}, {**entry["tarred"], "weight": 1}, spoken],
            "shuffle": True,
            "seed": 7,
            "window_draws": 300,
            "num_workers": 1,
        },
        "validation_ds": {**common, "manifest_filepath": str(prompts / "nemo_segments.json")},
    }
    content["validation_ds"]["text_field"] = "transcript"
    content["validation_ds"]["lang_field"] = "language"
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(content))
    return path


def start(folder: Path, number: int, config: Path, **options: Any) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    spec = {
        "package": "lightning",
        "config": str(config),
        "folder": str(folder),
        "notes": str(folder / f"notes.{number}"),
        "ranks": 1,
        "step": STEP,
        "steps": STEPS,
        "pause": 0.01,
        **options,
    }
    path = folder / f"spec.{number}.json"
    path.write_text(json.dumps(spec))
    with (folder / f"log.{number}").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(JOB), str(path)],
            stdout=log,
            stderr=log,
            env={**environment(), "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )


def end(job: subprocess.Popen[bytes]) -> None:
    """Kill a job and the ranks that it started, which are a session of their own."""
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait(20)


def notes_of(folder: Path, number: int) -> list[dict[str, Any]]:
    return [line for path in sorted(folder.glob(f"notes.{number}.*")) for line in lines_of(path)]


def run_and_kill(folder: Path, config: Path, ranks: list[int], seed: int, **options: Any) -> None:
    """A job after another on so many ranks each; all but the last are killed at some moment."""
    rng = random.Random(seed)
    for number, count in enumerate(ranks):
        saved = folder / "last.ckpt"
        before = saved.stat().st_mtime_ns if saved.exists() else None
        job = start(folder, number, config, ranks=count, **options)
        try:
            if number == len(ranks) - 1:
                status = job.wait(240)
                assert status == 0, (folder / f"log.{number}").read_text()[-3000:]
                continue
            wanted, deadline = rng.randint(STEP + 2, 3 * STEP), time.monotonic() + 240
            while len(notes_of(folder, number)) < wanted or (
                not saved.exists() or saved.stat().st_mtime_ns == before
            ):
                said = (folder / f"log.{number}").read_text()[-3000:]
                assert job.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.003)
        finally:
            end(job)


def check(folder: Path, whole: Path, jobs: int) -> None:
    expected = {(line["step"], line["slot"]): line for line in notes_of(whole, 0)}
    assert set(expected) == {(step, slot) for step in range(STEPS) for slot in range(STEP)}
    trained: dict[tuple[int, int], dict[str, Any]] = {}
    for number in range(jobs):
        lines = notes_of(folder, number)
        assert lines
        first = min(line["step"] for line in lines)
        # Nothing that was in a checkpoint is trained on again, and nothing is left out before it.
        assert {slot for step, slot in trained if step == first - 1} in (set(), set(range(STEP)))
        for line in lines:
            # The optimizer stands where the data do.
            assert line["at"] == line["step"]
            assert line == expected[line["step"], line["slot"]]
            trained[line["step"], line["slot"]] = line
    assert trained == expected


@pytest.mark.parametrize(
    ("package", "ranks"),
    [
        ("lightning", [1, 1]),
        pytest.param("pytorch_lightning", [1, 1, 1], marks=pytest.mark.slow),
    ],
)
def test_a_killed_trainer_goes_on_with_what_would_have_come_next(package, ranks, config, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_and_kill(whole, config, [1], 0)
    run_and_kill(killed, config, ranks, 1, package=package, estimated=True)
    check(killed, whole, len(ranks))
    assert (killed / "done.json").read_text() == (whole / "done.json").read_text()


@pytest.mark.slow
def test_it_goes_on_with_other_ranks(config, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_and_kill(whole, config, [1], 0)
    run_and_kill(killed, config, [2, 1, 2], 2)
    check(killed, whole, 3)
    one, other = (json.loads((folder / "done.json").read_text()) for folder in (whole, killed))
    assert one["step"] == other["step"] == STEPS
    assert other["weight"][0] == pytest.approx(one["weight"][0], rel=1e-5)
