"""The examples run, and go on on other ranks."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from support.corpus import nemo_corpus, tarred_corpus

EXAMPLES = Path(__file__).parents[1] / "examples"


def start(arguments, folder):
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PLAYHEAD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(arguments, folder):
    with start(arguments, folder) as process:
        try:
            said, errors = process.communicate(timeout=150)
        finally:
            process.kill()
    assert process.returncode == 0, errors[-3000:]
    return said


def endless_blend(folder):
    """A blend of a plain and a tarred leaf, in `blend.yaml`."""
    manifest = nemo_corpus(folder / "plain", [0.3 + 0.02 * n for n in range(30)])
    pattern, tars = tarred_corpus(folder / "tarred", [0.4 + 0.02 * n for n in range(30)], 2)
    entries = [
        {"type": "nemo", "manifest_filepath": str(manifest)},
        {"type": "nemo_tarred", "manifest_filepath": pattern, "tarred_audio_filepaths": tars},
    ]
    blend = {"input_cfg": entries, "batch_duration": 4, "shuffle": True, "seed": 3}
    (folder / "blend.yaml").write_text(json.dumps(blend))


def ranks_of(torchrun):
    """The processes that a torchrun started, once it has."""
    listed = Path(f"/proc/{torchrun.pid}/task/{torchrun.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def test_the_mesh_loop_of_which_a_rank_is_killed_goes_on_with_another_mesh(tmp_path):
    endless_blend(tmp_path)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    script = [str(EXAMPLES / "train_mesh.py"), "blend.yaml", "--save-every", "2"]
    checkpoint = tmp_path / "checkpoint.pt"
    split = start([*torchrun, "2", *script, "--tensor-parallel", "2"], tmp_path)
    try:
        while not checkpoint.exists():
            assert split.poll() is None, split.communicate()[1]
            time.sleep(0.05)
        os.kill(ranks_of(split)[1], signal.SIGKILL)
        assert split.wait(60) != 0
    finally:
        # It ends its ranks.
        split.terminate()
        split.communicate()
    saved = torch.load(checkpoint, weights_only=True)["step"]
    steps = ["--steps", str(saved + 4)]
    said = run([*torchrun, "1", *script, *steps], tmp_path)
    assert f"step {saved + 2}: loss" in said
    run([*torchrun, "1", *script, *steps, "--checkpoint", "whole.pt"], tmp_path)
    killed, whole = (
        torch.load(tmp_path / name, weights_only=True) for name in ("checkpoint.pt", "whole.pt")
    )
    assert killed["step"] == whole["step"] == saved + 4
    assert killed["loader"] == whole["loader"]
    for name, value in whole["model"].items():
        torch.testing.assert_close(killed["model"][name], value, rtol=1e-3, atol=1e-5)


def test_the_training_loop_stops_and_goes_on_with_two_processes(tmp_path):
    endless_blend(tmp_path)
    script = str(EXAMPLES / "train.py")
    common = ["blend.yaml", "--save-every", "2"]
    assert "step 4: loss" in run([script, *common, "--steps", "5"], tmp_path)
    two = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", script]
    assert "step 6: loss" in run([*two, *common, "--steps", "8"], tmp_path)
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert saved["step"] == saved["loader"]["step"] == 8


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A folder with a blend of one manifest, which ends, in the environment of a single rank."""
    manifest = nemo_corpus(tmp_path / "plain", [0.3 + 0.02 * n for n in range(30)])
    blend = {
        "manifest_filepath": str(manifest),
        "batch_duration": 1,
        "shuffle": True,
        "num_workers": 0,
    }
    (tmp_path / "blend.yaml").write_text(json.dumps(blend))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    one = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**one, "MASTER_PORT": port, "PLAYHEAD_CACHE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("train", []),
        ("train_ddp", []),
        pytest.param("train_mesh", [], marks=pytest.mark.slow),
        ("train_dcp", []),
        ("train_torchdata", ["--workers=0"]),
    ],
)
def test_where_a_blend_ends_training_goes_on_and_is_resumed_in_any_pass(
    alone, monkeypatch, name, options
):
    def weights(folder, *steps):
        saved = alone / folder
        place = f"--checkpoints={saved}" if name == "train_dcp" else f"--checkpoint={saved}"
        for count in steps:
            script = str(EXAMPLES / f"{name}.py")
            every = [f"--steps={count}", "--save-every=1"]
            monkeypatch.setattr("sys.argv", [script, "blend.yaml", *every, *options, place])
            torch.manual_seed(0)
            runpy.run_path(script, run_name="__main__")
        if saved.is_dir():
            dcp_to_torch_save(max(saved.iterdir()), alone / "whole")
            saved = alone / "whole"
        state = torch.load(saved, weights_only=name != "train_dcp")
        assert state["step"] == steps[-1]
        return state["model"]

    # A pass has three steps: it is stopped at the end of one, and inside of another.
    whole, stopped = weights("straight", 7), weights("stopped", 3, 4, 7)
    for key, value in whole.items():
        assert torch.equal(stopped[key], value)
