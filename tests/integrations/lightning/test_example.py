"""The example is killed, and goes on with another number of processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from support.corpus import nemo_corpus

EXAMPLE = Path(__file__).parents[3] / "examples/train_lightning.py"


def start(arguments, folder):
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env={**os.environ, "PLAYHEAD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def end(job):
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait(20)


def step_of(checkpoint):
    saved = torch.load(checkpoint, weights_only=True)
    return saved["callbacks"]["PlayheadCallback"]["loaders"][0]["position"]["step"]


@pytest.mark.e2e
@pytest.mark.slow
def test_the_example_is_killed_and_goes_on(tmp_path):
    manifest = nemo_corpus(tmp_path / "plain", [0.3 + 0.02 * n for n in range(30)])
    entries = [{"type": "nemo", "manifest_filepath": str(manifest)}] * 2
    blend = {"input_cfg": entries, "batch_duration": 2, "shuffle": True, "seed": 3}
    (tmp_path / "blend.yaml").write_text(json.dumps(blend))
    last = tmp_path / "checkpoints/last.ckpt"
    job = start([str(EXAMPLE), "blend.yaml", "--save-every", "2", "--steps", "100000"], tmp_path)
    try:
        deadline = time.monotonic() + 200
        while not last.exists():
            assert job.poll() is None, (tmp_path / "log").read_text()[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        end(job)
    steps = step_of(last) + 3
    two = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", str(EXAMPLE)]
    job = start([*two, "blend.yaml", "--save-every", "1", "--steps", str(steps)], tmp_path)
    try:
        assert job.wait(200) == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        end(job)
    assert f"step {steps}: loss" in (tmp_path / "log").read_text()
    assert step_of(last) == steps
