"""Real models of NeMo: made from a class and a config, and from a `.nemo` file.

NeMo runs in a Python of its own, named by PLAYHEAD_NEMO_PYTHON; `make peer-nemo` makes it.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest

import playhead
from fit.models.nemo_configs import MODELS, configs
from playhead.errors import ConfigError, MissingExtraError, SourceNotFoundError
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.training import Training

CHILD = Path(__file__).with_name("nemo_child.py")
SECONDS = 280.0
FLOAT, INT = "torch.float32", "torch.int64"
AUDIO = [[[2, 12_000], FLOAT], [[2], INT]]
TEXT = [[[2, 9], INT], [[2], INT]]
EMPTY = [[[0], FLOAT]]


def cases(folder: Path) -> dict[str, dict]:
    made = {}
    for name, model in configs(str(folder / "tokenizer")).items():
        (folder / f"{name}.yaml").write_text(json.dumps({"name": "small", "model": model}))
        config = str(folder / f"{name}.yaml")
        source = {"kind": "module", "name": f"{MODELS}.{name}", "config": config}
        made[name] = {"source": source}
    saved = str(folder / "saved.nemo")
    made["EncDecCTCModelBPE"]["save"] = saved
    (folder / "broken.nemo").write_text("no archive")
    pretrained = {"kind": "pretrained", "name": saved}
    ctc = made["EncDecCTCModelBPE"]["source"]
    return {
        **made,
        "saved": {"source": pretrained, "optimizer": "novograd"},
        "broken": {"source": {"kind": "pretrained", "name": str(folder / "broken.nemo")}},
        "optimizer": {"source": pretrained, "optimizer": "lion"},
        "class": {"source": {**ctc, "name": f"{MODELS}.NoModel"}},
        "mismatch": {"source": {**ctc, "name": f"{MODELS}.EncDecRNNTBPEModel"}},
    }


def run_nemo(*arguments, folder):
    python = os.environ.get("PLAYHEAD_NEMO_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("no Python with NeMo: `make peer-nemo`, PLAYHEAD_NEMO_PYTHON")
    places = [str(Path(playhead.__file__).parents[1]), str(folder)]
    done = subprocess.run(
        [python, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(places),
            "PLAYHEAD_CACHE": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What came of all cases, by name, what the process printed, and where it worked."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("nemo")
    (folder / "tokenizer").mkdir()
    (folder / "text").write_text("people talk and machines write down what was said\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"),
        model_prefix=str(folder / "tokenizer" / "tokenizer"),
        vocab_size=22,
        pad_id=3,
        minloglevel=2,
    )
    vocabulary = (folder / "tokenizer" / "tokenizer.vocab").read_text().splitlines()
    pieces = [line.split("\t")[0] for line in vocabulary]
    (folder / "tokenizer" / "vocab.txt").write_text("\n".join(pieces[1:]))
    (folder / "cases.json").write_text(json.dumps(cases(folder)))
    done = run_nemo(str(CHILD), str(folder), folder=folder)
    return {
        **json.loads((folder / "seen.json").read_text()),
        "printed": done.stdout + done.stderr,
        "folder": folder,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "batch", "items"),
    [
        ("EncDecCTCModelBPE", "tuple", AUDIO + TEXT),
        ("EncDecRNNTBPEModel", "tuple", AUDIO + TEXT),
        ("EncDecMultiTaskModel", "PromptedAudioToTextMiniBatch", AUDIO + TEXT + EMPTY * 4),
        ("EncDecDenoiseMaskedTokenPredModel", "AudioNoiseBatch", AUDIO * 3),
    ],
)
def test_a_class_and_a_config_make_a_model_that_is_trained(seen, name, batch, items):
    found = seen[name]
    assert "error" not in found, found
    assert found["class"] == name
    assert found["batch"] == batch
    assert sorted(found["items"], key=str) == sorted(items, key=str)
    assert math.isfinite(found["loss"])
    assert found["optimizer"] == "AdamW"
    assert found["states"] > 10


@pytest.mark.slow
def test_a_saved_model_is_the_same_model(seen):
    made, saved = seen["EncDecCTCModelBPE"], seen["saved"]
    assert saved["optimizer"] == "Novograd"
    for fact in ("class", "items", "states"):
        assert saved[fact] == made[fact]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "exit_code", "message"),
    [
        ("EncDecCTCModel", 1, "The class EncDecCTCModel has a schema that fails: "),
        (
            "EncDecSpeakerLabelModel",
            1,
            "The class EncDecSpeakerLabelModel has no oom",
        ),
        ("broken", 1, "The model cannot be opened: "),
        ("optimizer", 2, "NeMo makes no optimizer 'lion' (--optimizer-name). Choose one of "),
        ("class", 2, f"The module {MODELS} has no class NoModel"),
        ("mismatch", 1, "The model cannot be opened: "),
    ],
)
def test_what_cannot_be_trained_is_told_in_one_line(seen, name, exit_code, message):
    found = seen[name]
    assert found.get("exit_code") == exit_code, found
    assert found["error"].startswith(message)
    assert "\n" not in found["error"]


@pytest.mark.slow
def test_nemo_keeps_to_itself(seen):
    assert seen["printed"] == ""


@pytest.mark.slow
@pytest.mark.e2e
def test_a_search_finds_sizes_for_a_saved_model(seen):
    folder = seen["folder"]
    profile = folder / "profile.yaml"
    command = ["-m", "playhead", "oomptimizer", "--pretrained-name", str(folder / "saved.nemo")]
    device = ["--device", "cpu", "--memory", "60MiB", "--max-batch-size", "64"]
    done = run_nemo(
        *command, *device, "--buckets", "[2,6]", "--output", str(profile), folder=folder
    )
    sizes = [int(size) for size in re.search(r"batch_size=\[(\d+),(\d+)\]$", done.stdout).groups()]
    assert 1 <= sizes[1] < sizes[0] <= 64
    # What steps hold was foretold exactly: the model runs on fake tensors.
    tries = re.findall(r"tensors (\S+ \S+) \(predicted (\S+ \S+)\)", done.stderr + done.stdout)
    assert tries
    assert all(held == predicted for held, predicted in tries)
    assert f"bucket_batch_size: [{sizes[0]}, {sizes[1]}]" in profile.read_text()


def opened(**source):
    return open_model(ModelSource(**source), "cpu", Training())


def test_nemo_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "it.yaml").write_text("model: {}")
    for source in (
        {"kind": "pretrained", "name": "nvidia/some-model"},
        {"kind": "module", "name": f"{MODELS}.Any", "config": str(tmp_path / "it.yaml")},
    ):
        with pytest.raises(MissingExtraError, match="pip install nemo-toolkit"):
            opened(**source)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "has no section `model`"),
        ("model: 3", "has no section `model`"),
        ("data: {}", "has no section `model`"),
        ("model: [", "The config cannot be read"),
        ("model: {a: '${b}'}", "The config cannot be read"),
    ],
)
def test_a_config_without_a_model_is_told(tmp_path, text, message):
    config = tmp_path / "it.yaml"
    config.write_text(text)
    with pytest.raises(ConfigError, match=message) as told:
        opened(kind="module", name="a.B", config=str(config))
    assert str(config) in str(told.value)
    assert "\n" not in str(told.value)


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(SourceNotFoundError, match="The model does not exist"):
        opened(kind="pretrained", name=str(tmp_path / "absent.nemo"))
    with pytest.raises(SourceNotFoundError, match="The config does not exist"):
        opened(kind="module", name="a.B", config=str(tmp_path / "absent.yaml"))
    with pytest.raises(ConfigError, match=r"The class a\.B has no config \(--module-name\)"):
        opened(kind="module", name="a.B")


def test_any_class_with_a_schema_is_made_from_its_config(tmp_path, own_code):
    module = own_code("""
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self, cfg):
                super().__init__()
                assert type(cfg) is dict
                self.sample_rate = cfg["rate"]
                self.scale = nn.Linear(1, 1)
                self.oomptimizer_schema = {"cls": tuple, "inputs": [{"type": "dummy"}]}
    """)
    config = tmp_path / "it.yaml"
    config.write_text("rate: 8000\nmodel: {rate: '${rate}'}")
    model = opened(kind="module", name=f"{module}.Model", config=str(config))
    assert model.rule.input_rate == 8000
    with pytest.raises(ConfigError, match="has no class Other"):
        opened(kind="module", name=f"{module}.Other", config=str(config))
    with pytest.raises(ConfigError, match="There is no module nowhere"):
        opened(kind="module", name="nowhere.Other", config=str(config))
    with pytest.raises(ConfigError, match="'Model' names no class"):
        opened(kind="module", name="Model", config=str(config))
