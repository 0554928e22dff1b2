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


def test_the_training_loop_stops_and_goes_on_with_two_processes(tmp_path):
    manifest = nemo_corpus(tmp_path / "plain", [0.3 + 0.02 * n for n in range(30)])
    pattern, tars = tarred_corpus(tmp_path / "tarred", [0.4 + 0.02 * n for n in range(30)], 2)
    entries = [
        {"type": "nemo", "manifest_filepath": str(manifest)},
        {"type": "nemo_tarred", "manifest_filepath": pattern, "tarred_audio_filepaths": tars},
    ]
    blend = {"input_cfg": entries, "batch_duration": 4, "shuffle": True, "seed": 3}
    (tmp_path / "blend.yaml").write_text(json.dumps(blend))
    script = str(EXAMPLES / "train.py")
    common = ["blend.yaml", "--save-every", "2"]
    assert "step 4: loss" in run([script, *common, "--steps", "5"], tmp_path)
    two = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", script]
    assert "step 6: loss" in run([*two, *common, "--steps", "8"], tmp_path)
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert saved["step"] == saved["loader"]["step"] == 8
