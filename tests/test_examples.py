"""The examples run, and go on on other ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import torch

from support.corpus import nemo_corpus, tarred_corpus

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(arguments, folder):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PLAYHEAD_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


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


def test_the_mesh_loop_stops_and_goes_on_with_another_mesh(tmp_path):
    endless_blend(tmp_path)
    script = str(EXAMPLES / "train_mesh.py")
    said_at = []
    # 2 x 2 to step 4, then 1 x 2 to step 8; and 1 x 1 all the way.
    for ranks, split, steps, name in ((4, 2, 4, "a"), (2, 2, 8, "a"), (1, 1, 8, "b")):
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--standalone"]
        options = ["--tensor-parallel", str(split), "--steps", str(steps), "--save-every", "2"]
        said = run(
            [*torchrun, script, "blend.yaml", *options, "--checkpoint", f"{name}.pt"], tmp_path
        )
        said_at.append([line.partition(":")[0] for line in said.splitlines() if "loss" in line])
    assert said_at[0] + said_at[1] == said_at[2] == [f"step {n}" for n in (2, 4, 6, 8)]
    split, whole = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in "ab")
    assert split["loader"] == whole["loader"]
    for name, value in whole["model"].items():
        torch.testing.assert_close(split["model"][name], value, rtol=1e-4, atol=1e-6)


def test_the_training_loop_stops_and_goes_on_with_two_processes(tmp_path):
    endless_blend(tmp_path)
    script = str(EXAMPLES / "train.py")
    common = ["blend.yaml", "--save-every", "2"]
    assert "step 4: loss" in run([script, *common, "--steps", "5"], tmp_path)
    two = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", script]
    assert "step 6: loss" in run([*two, *common, "--steps", "8"], tmp_path)
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert saved["step"] == saved["loader"]["step"] == 8
