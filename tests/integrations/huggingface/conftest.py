"""Small corpora, Trainers that note what they are trained on, and loaders for both."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

import playhead
from playhead.integrations.huggingface import PlayheadTrainerMixin
from support.corpus import nemo_corpus
from support.small_whisper import WhisperInputs, digest_of, small_whisper

SECONDS = [0.2 + 0.04 * (n * 17 % 41) for n in range(41)]


class SpeechTrainer(PlayheadTrainerMixin, Seq2SeqTrainer):
    """Notes the step of every batch that it trains on, and what it was given in the batch."""

    def __init__(self, *more: Any, **options: Any) -> None:
        super().__init__(*more, **options)
        self.seen: list[tuple[int, str]] = []
        self.keys: set[str] = set()

    def training_step(self, model: Any, inputs: Any, *more: Any) -> Any:
        self.seen.append((self.state.global_step, digest_of(inputs)))
        self.keys.update(inputs)
        inputs = {name: inputs[name] for name in ("input_features", "labels")}
        return super().training_step(model, inputs, *more)


@pytest.fixture(scope="session")
def manifests(tmp_path_factory):
    folder = tmp_path_factory.mktemp("huggingface")
    return [
        nemo_corpus(folder / name, seconds, prefix=name)
        for name, seconds in (("one", SECONDS[:25]), ("two", SECONDS[25:]))
    ]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def one_thread():
    """Models as small as these wait for threads more than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def make_loader(manifests):
    def make(dataset=None, *, places=None, **options):
        config = {
            "input_cfg": [{"type": "nemo", "manifest_filepath": str(path)} for path in manifests],
            "batch_duration": 4.0,
            "shuffle": True,
            "seed": 3,
            "num_workers": 0,
            "micro_batches_per_step": 2,
            **options,
        }
        return playhead.dataloader(config, dataset=dataset or WhisperInputs(), **(places or {}))

    return make


@pytest.fixture
def make_trainer(tmp_path):
    def make(loader, *, dropout=0.0, kind=SpeechTrainer, more=None, **arguments):
        return kind(
            model=small_whisper(dropout),
            args=Seq2SeqTrainingArguments(
                **{
                    "output_dir": str(tmp_path / "out"),
                    "gradient_accumulation_steps": 2,
                    "report_to": [],
                    "disable_tqdm": True,
                    "use_cpu": True,
                    "logging_steps": 1,
                    **arguments,
                }
            ),
            train_dataset=loader,
            **(more or {}),
        )

    return make


@pytest.fixture
def state_of():
    """What the Trainer's state in a checkpoint says, and the position in it."""

    def read(checkpoint):
        state = json.loads((checkpoint / "trainer_state.json").read_text())
        position = state["stateful_callbacks"]["PlayheadCallback"]["attributes"]["position"]
        return SimpleNamespace(**state, position=position)

    return read
