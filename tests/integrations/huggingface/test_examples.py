"""The examples with Hugging Face are killed, and go on on other ranks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from support.corpus import nemo_corpus
from support.jobs import environment

EXAMPLES = Path(__file__).parents[3] / "examples"
TWO = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def start(arguments, folder):
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **environment(),
            "PLAYHEAD_CACHE": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
        },
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said[-4000:]


def kill_once_there(process, path):
    """SIGKILL as soon as something is there."""
    deadline = time.monotonic() + 200
    while not path.exists():
        assert process.poll() is None, process.communicate()[1][-4000:]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=20)


@pytest.fixture
def folder(tmp_path):
    manifests = [
        nemo_corpus(tmp_path / name, [0.3 + 0.03 * n for n in range(30)], prefix=name)
        for name in ("one", "two")
    ]
    entries = [{"type": "nemo", "manifest_filepath": str(path)} for path in manifests]
    blend = {"input_cfg": entries, "batch_duration": 4, "shuffle": True, "seed": 3}
    (tmp_path / "blend.yaml").write_text(json.dumps(blend))
    return tmp_path


def test_the_whisper_is_killed_and_goes_on_with_two_processes(folder):
    common = [str(EXAMPLES / "train_huggingface.py"), "blend.yaml", "--seconds", "2"]
    killed = start([*common, "--save-every", "1"], folder)
    kill_once_there(killed, folder / "whisper" / "checkpoint-3" / "trainer_state.json")
    reached = max(int(path.name[11:]) for path in (folder / "whisper").iterdir())
    steps = str(reached + 3)
    finish(start([*TWO, *common, "--save-every", "1", "--steps", steps], folder))
    state = json.loads((folder / f"whisper/checkpoint-{steps}/trainer_state.json").read_text())
    position = state["stateful_callbacks"]["PlayheadCallback"]["attributes"]["position"]
    assert position["step"] == state["global_step"] == int(steps)
    assert len(list((folder / "whisper").iterdir())) == 2


def test_the_loop_with_accelerate_is_killed_and_goes_on_with_two_processes(folder):
    common = [str(EXAMPLES / "train_accelerate.py"), "blend.yaml", "--cpu", "--save-every", "1"]
    killed = start(common, folder)
    kill_once_there(killed, folder / "accelerated" / "step-3")
    reached = max(int(path.name[5:]) for path in (folder / "accelerated").glob("step-*"))
    steps = reached + 3
    finish(start([*TWO, *common, "--steps", str(steps)], folder))
    assert [path.name for path in (folder / "accelerated").glob("step-*")] == [f"step-{steps}"]
    [state] = (folder / "accelerated" / f"step-{steps}").glob("custom_checkpoint_*.pkl")
    assert torch.load(state, weights_only=True)["step"] == steps


def test_where_a_blend_ends_the_loop_with_accelerate_goes_on_with_its_next_pass(folder):
    # 30 samples of one manifest are not enough for a second step of 8 batches.
    blend = {"manifest_filepath": str(next(folder.glob("one/*.json"))), "batch_duration": 4}
    (folder / "blend.yaml").write_text(json.dumps(blend))
    script = str(EXAMPLES / "train_accelerate.py")
    for steps in ("2", "3"):
        arguments = [script, "blend.yaml", "--cpu", "--save-every", "1", "--steps", steps]
        finish(start(arguments, folder))
    [state] = (folder / "accelerated" / "step-3").glob("custom_checkpoint_*.pkl")
    assert torch.load(state, weights_only=True)["step"] == 3
