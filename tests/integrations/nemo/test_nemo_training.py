"""A real model of NeMo trains on loaders of Playhead, is killed, and goes on exactly.

NeMo runs in a Python of its own, named by PLAYHEAD_NEMO_PYTHON; `make peer-nemo` makes it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import playhead
from integrations.nemo.training import config, write_speech
from support.real_speech import made_once

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

REPOSITORY = Path(__file__).parents[3]
CHILD = Path(__file__).with_name("noting.py")
EXAMPLE = REPOSITORY / "examples/train_nemo.py"
SECONDS = 240.0


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("PLAYHEAD_NEMO_PYTHON", "")
    if not Path(named).is_file():
        pytest.skip("no Python with NeMo: `make peer-nemo`, PLAYHEAD_NEMO_PYTHON")
    return named


@pytest.fixture(scope="module")
def speech(tmp_path_factory, python) -> Path:
    return made_once(tmp_path_factory.mktemp("nemo") / "speech", write_speech)


@dataclass
class Training:
    """A folder in which a model is trained, by one run after the other."""

    python: str
    speech: Path
    folder: Path

    def run(
        self, name: str, *, steps: int, kill_after: int | None = None, **options: Any
    ) -> list[dict]:
        """Train up to a step; kill all processes once rank 0 has trained on so many batches."""
        self.folder.mkdir(exist_ok=True)
        options = {"trainer": {}, **options}
        content = config(self.speech, self.folder / "experiment", steps=steps, **options)
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(content))
        source = Path(playhead.__file__).parents[1]
        environment = {
            **os.environ,
            "RUN": name,
            "PYTHONPATH": os.pathsep.join([str(source)]),
            "PLAYHEAD_CACHE": str(self.folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        log = self.folder / f"{name}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [self.python, str(CHILD), str(self.folder), str(EXAMPLE), str(path)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                # All its ranks and workers are killed together.
                start_new_session=True,
            )
        try:
            deadline = time.monotonic() + SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                if kill_after is not None and len(self.trained(name)) >= kill_after:
                    break
                time.sleep(0.02)
            if kill_after is None:
                assert process.poll() == 0, log.read_text()[-4000:]
            else:
                assert process.poll() is None, log.read_text()[-4000:]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)
        return self.trained(name)

    def trained(self, name: str, rank: int = 0) -> list[dict]:
        """What a rank of a run was trained on, a line for each batch."""
        path = self.folder / f"trained-{rank}.jsonl"
        if not path.exists():
            return []
        whole = path.read_text().rpartition("\n")[0].splitlines()
        lines = [json.loads(line) for line in whole]
        return [line for line in lines if line.pop("run") == name]


@pytest.fixture
def training(python, speech, tmp_path):
    return lambda name: Training(python, speech, tmp_path / name)


def test_a_killed_run_goes_on_bit_for_bit_with_other_workers(training):
    whole = training("whole").run("all", steps=11)
    assert [line["step"] for line in whole] == list(range(11))
    killed = training("killed")
    before = killed.run("first", steps=11, kill_after=8)
    after = killed.run("second", steps=11, num_workers=0)
    again = after[0]["step"]
    assert 0 < again <= before[-1]["step"] + 1
    # The batch, its loss and the weights that it met, of every step of both.
    assert before == whole[: len(before)]
    assert after == whole[again:]


def by_step(lines: list[dict]) -> list[list[str]]:
    steps = sorted({line["step"] for line in lines})
    return [sorted(line["batch"] for line in lines if line["step"] == step) for step in steps]


def test_two_ranks_are_killed_and_one_goes_on_with_the_same_samples(training):
    accumulating = {"accumulate_grad_batches": 2}
    options = {"micro_batches_per_step": 2}
    whole = training("one").run("all", steps=8, trainer=accumulating, **options)
    two = training("two")
    on_two = {"devices": 2, "strategy": "ddp", "use_distributed_sampler": True}
    before = two.run("first", steps=8, kill_after=5, trainer=on_two, **options)
    before += two.trained("first", rank=1)
    after = two.run("second", steps=8, trainer=accumulating, **options)
    again = after[0]["step"]
    assert 0 < again < 8
    assert by_step(after) == by_step(whole)[again:]
    reached = by_step(before)
    # The ranks were killed in the middle of a step: perhaps one of them had just begun it.
    assert reached[:-1] == by_step(whole)[: len(reached) - 1]
    losses = [line["loss"] for line in whole[2 * again :]]
    assert [line["loss"] for line in after] == pytest.approx(losses, rel=1e-3)
