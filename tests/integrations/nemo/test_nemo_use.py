"""What else NeMo does with loaders comes out as with its own.

NeMo runs in a Python of its own, named by PLAYHEAD_NEMO_PYTHON; `make peer-nemo` makes it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import playhead
from integrations.nemo.training import config, write_speech
from support.real_speech import made_once

pytestmark = pytest.mark.slow

CHILD = Path(__file__).with_name("using.py")
SECONDS = 200.0


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("PLAYHEAD_NEMO_PYTHON", "")
    if not Path(named).is_file():
        pytest.skip("no Python with NeMo: `make peer-nemo`, PLAYHEAD_NEMO_PYTHON")
    return named


@pytest.fixture(scope="module")
def folder(tmp_path_factory, python) -> Path:
    folder = tmp_path_factory.mktemp("nemo")
    speech = made_once(folder / "speech", write_speech)
    content = config(speech, folder, steps=3, trainer={})
    (folder / "config.json").write_text(json.dumps(content))
    return folder


def run(folder, *arguments) -> None:
    source = Path(playhead.__file__).parents[1]
    done = subprocess.run(
        arguments,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(source),
            "PLAYHEAD_CACHE": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if "No module named" in done.stderr and "playhead" not in done.stderr.splitlines()[-1]:
        missing = [line for line in done.stderr.splitlines() if "No module named" in line]
        pytest.skip(f"this part of NeMo cannot be imported: {missing[-1]}")
    assert done.returncode == 0, done.stderr[-4000:]


def test_a_model_transcribes_and_validates_as_before(python, folder):
    run(folder, python, str(CHILD), "model", "config.json", "model.json")
    answer = json.loads((folder / "model.json").read_text())
    loaders = [answer[name].pop("loader") for name in ("theirs", "ours")]
    assert loaders == ["DataLoader", "NemoLoader"]
    assert answer["ours"] == answer["theirs"]
    assert any(answer["ours"]["transcripts"])
    # NeMo would make of the float a number of batches, by the samples of its loader.
    assert answer["limit_train_batches"] == 1.0


def test_ranks_of_one_slot_get_the_same_batches_without_sending_them(python, folder):
    torchrun = [python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    run(folder, *torchrun, str(CHILD), "slot", "config.json", "slot")
    first, second = (json.loads((folder / f"slot.{rank}").read_text()) for rank in (0, 1))
    assert first == second
    assert first["loader"] == "NemoLoader"
    assert first["ranks"] == [0, 1]
    assert len({name for batch in first["batches"] for name in batch}) > 4
