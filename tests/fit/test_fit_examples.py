"""The models of the examples: batches as they say, steps that train them, and a whole search."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import playhead
from playhead.fit.bucket import buckets_of
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.steps import prepare, train_step
from playhead.fit.training import Training

EXAMPLES = Path(__file__).parents[2] / "examples"
# By example: how it is made small, its bucket, and the shapes of its batch.
MODELS = {
    "fit_conformer_ctc": (
        "ConformerCTC(dim=16, layers=1, heads=2, tokens=16)",
        1.0,
        {"audio": (2, 16_000), "text": (2, 12)},
    ),
    "fit_lightning": (
        "Transcriber(dim=16, layers=1, tokens=16)",
        (1.5, 9),
        {"features": (2, 150, 80), "text": (2, 10)},
    ),
    "fit_speech_lm": (
        "SpeechLM(dim=16, layers=1, tokens=16)",
        25,
        {"audio": (2, 20 * 1280), "text": (2, 5)},
    ),
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Write a module that makes an example small, and return what `--model` names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])

    def write(example: str) -> str:
        made = MODELS[example][0]
        name = f"small_{example}"
        code = f"import {example}\n\n\ndef model():\n    return {example}.{made}\n"
        (tmp_path / f"{name}.py").write_text(code)
        return f"{name}:model"

    yield write
    for name in MODELS:
        sys.modules.pop(name, None)
        sys.modules.pop(f"small_{name}", None)


@pytest.mark.parametrize("example", MODELS)
def test_the_model_of_an_example_is_trained(example, small, recwarn):
    _, bound, shapes = MODELS[example]
    training = Training()
    model = open_model(ModelSource(kind="code", name=small(example)), "cpu", training)
    (bucket,) = buckets_of([bound], model.rule)
    batch = model.make_batch(2, bucket.input_length, bucket.output_length)
    assert {name: tuple(tensor.shape) for name, tensor in batch.items()} == shapes
    with torch.no_grad():
        assert 0 < model.loss(batch).item() < 100
    prepared = prepare(model, training)
    train_step(prepared, bucket, 2)
    weights = sum(weight.requires_grad for weight in model.module.parameters())
    assert len(prepared.optimizer.state) == weights
    assert not recwarn.list


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize("example", MODELS)
def test_a_search_finds_sizes_for_the_model_of_an_example(example, small, tmp_path):
    bound = MODELS[example][1]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "playhead", "oomptimizer", "--model", small(example)),
            *("--buckets", f"[{list(bound) if isinstance(bound, tuple) else bound}]"),
            *("--device", "cpu", "--memory", "100MiB", "--max-batch-size", "32"),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(playhead.__file__).parents[1]), str(EXAMPLES)]),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    sizes = done.stdout.split("bucket_batch_size=[")[1].partition("]")[0]
    assert 1 <= int(sizes) <= 32
