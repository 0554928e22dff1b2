"""Jobs on real speech that are killed, and go on on other ranks, train on what one run would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from support import train_hugging_face
from support.jobs import environment
from support.real_speech import SOUNDS, asterisk_prompts, made_once, write_digits, write_nemo

pytestmark = pytest.mark.e2e

SCRIPT = Path(train_hugging_face.__file__)
STEP = 4


@pytest.fixture(scope="session")
def blend(tmp_path_factory):
    """Prompts and digits, half of each, at the rate that a Whisper hears."""

    def make(folder):
        (folder / "prompts").mkdir(parents=True)
        (folder / "prompts" / "wav").symlink_to(SOUNDS)
        write_nemo(folder / "prompts", asterisk_prompts())
        write_digits(folder / "digits")
        entries = [
            {"type": "nemo", "weight": 0.5, "manifest_filepath": str(folder / path)}
            for path in ("prompts/nemo.json", "digits/manifest.json")
        ]
        options = {"batch_duration": 12, "max_duration": 4.0, "sample_rate": 16000, "shuffle": True}
        blend = {"input_cfg": entries, "seed": 5, "num_workers": 1, **options}
        (folder / "blend.yaml").write_text(json.dumps(blend))

    return made_once(tmp_path_factory.getbasetemp() / "speech", make) / "blend.yaml"


def spec_of(framework, blend, folder, *, ranks=1, kill_at=None, dropout=0.0):
    folder.mkdir(exist_ok=True)
    return {
        "framework": framework,
        "blend": str(blend),
        "overrides": {"micro_batches_per_step": STEP},
        "folder": str(folder),
        "accumulation": STEP // ranks,
        "steps": 10,
        "save_every": 3,
        "kill_at": kill_at,
        "dropout": dropout,
    }


def run(spec, ranks):
    """Run a job as processes, and return whether it ended by itself."""
    folder = Path(spec["folder"])
    (folder / "spec.json").write_text(json.dumps(spec))
    launcher = ["-W", "error"]
    if ranks > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    with (folder / "log.txt").open("ab") as log:
        done = subprocess.run(
            [sys.executable, *launcher, str(SCRIPT), str(folder / "spec.json")],
            env={**environment(), "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
            timeout=200,
            check=False,
        )
    if done.returncode and spec["kill_at"] is None:
        raise AssertionError((folder / "log.txt").read_text()[-4000:])
    return done.returncode == 0


def trained_in(folder):
    """What all ranks have noted of a folder since it was last asked, in the order of steps."""
    lines = []
    for path in folder.glob("notes.*.jsonl"):
        lines += [json.loads(line) for line in path.read_text().splitlines()]
        path.unlink()
    return sorted((line["step"], line["batch"]) for line in lines)


@pytest.mark.parametrize(
    ("framework", "ranks"),
    [
        ("trainer", [1, 1]),
        ("accelerate", [1, 1]),
        pytest.param("trainer", [2, 1, 2], marks=pytest.mark.slow),
        pytest.param("accelerate", [2, 1, 2], marks=pytest.mark.slow),
    ],
)
def test_what_is_trained_on_is_that_of_an_uninterrupted_run(
    blend, tmp_path, monkeypatch, framework, ranks
):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(blend.parent / "cache"))
    same_ranks = len(set(ranks)) == 1
    dropout = 0.2 if same_ranks else 0.0
    train_hugging_face.run(spec_of(framework, blend, tmp_path / "whole", dropout=dropout))
    whole = trained_in(tmp_path / "whole")
    assert len(whole) == 10 * STEP

    folder = tmp_path / "killed"
    # Killed inside a step, each time after another checkpoint: of step 3, and of step 6.
    kills, begins = [[4, 2], [7, 2], None], [0, 3, 6]
    for count, begin, kill in zip(ranks, begins, [*kills[: len(ranks) - 1], None], strict=False):
        spec = spec_of(framework, blend, folder, ranks=count, kill_at=kill, dropout=dropout)
        assert run(spec, count) == (kill is None)
        trained = trained_in(folder)
        end = 10 if kill is None else kill[0]
        assert [line for line in trained if line[0] < end] == [
            line for line in whole if begin <= line[0] < end
        ]
        assert set(trained) <= set(whole)
        assert kill is None or trained[-1][0] == kill[0], "it was not killed inside a step"

    weights, again = (
        torch.load(path / "weights.pt", weights_only=True) for path in (tmp_path / "whole", folder)
    )
    for name, value in weights.items():
        if same_ranks:
            assert torch.equal(value, again[name]), name
        else:
            assert torch.allclose(value, again[name], atol=1e-4), name
