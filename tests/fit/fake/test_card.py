"""Where fake tensors of CUDA seem to be, with torch's own rules and no card."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from playhead.fit.bucket import Bucket
from playhead.fit.fake import card as cards
from playhead.fit.fake import predictor as predictors
from playhead.fit.fake.card import unusable
from playhead.fit.fake.predictor import Predictor, predictor
from playhead.fit.training import Training
from support.fit_models import two_layers
from support.small_models import small

CARD = torch.device("cuda", 1)
PLAIN = Training(dtype="float32", ddp=False)


@pytest.fixture
def made(monkeypatch):
    """A card that can be asked; the devices of real tensors that are made."""
    devices = []
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: SimpleNamespace(name="A card", uuid="abc")
    )
    monkeypatch.setattr(torch, "zeros", lambda *_, device: devices.append(device))
    monkeypatch.setattr(cards, "takes_one_process", lambda _: False)
    return devices


def test_cuda_is_started_on_the_very_card(made):
    assert unusable(CARD) is None
    assert made == [CARD]


def test_nothing_is_put_on_a_card_that_takes_one_process(made, monkeypatch):
    monkeypatch.setattr(cards, "takes_one_process", lambda uuid: uuid == "GPU-abc")
    assert unusable(CARD) == "cuda:1 takes one process at a time, and probes are such processes"
    assert made == []


def test_a_full_card_is_a_reason_in_one_line(made, monkeypatch):
    def full(*_, device):
        raise torch.OutOfMemoryError(f"CUDA out of memory.\nGPU {device.index} is full")

    monkeypatch.setattr(torch, "zeros", full)
    assert unusable(CARD) == "OutOfMemoryError: CUDA out of memory. GPU 1 is full"


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU, it can be started")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_where_cuda_cannot_be_started_there_is_an_estimate_that_says_so(monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    made = predictor(small("Small"), PLAIN, device)
    assert made.method == "estimate"
    assert made.notes[0].startswith("there are no fake tensors of CUDA, so this is an estimate: ")


def test_a_model_that_cannot_be_made_on_the_card_is_foretold_without(monkeypatch):
    opened = predictors.opened_fake
    monkeypatch.setattr(predictors, "unusable", lambda _: None)
    monkeypatch.setattr(predictors, "current", lambda _: cards.nullcontext())

    def fails_on_cuda(open_on, device, fake):
        if device == "cuda":
            raise RuntimeError("no kernel image")
        return opened(open_on, device, fake)

    monkeypatch.setattr(predictors, "opened_fake", fails_on_cuda)
    made = Predictor(lambda _: two_layers(), PLAIN, method="cuda", card=CARD)
    assert made.method == "estimate"
    assert made.notes[0].endswith("RuntimeError: no kernel image")


@pytest.mark.parametrize("method", ["cpu", "estimate"])
def test_predictions_off_the_card_ask_it_for_nothing(monkeypatch, method):
    def asked(*_, **__):
        raise AssertionError("CUDA would start here")

    monkeypatch.setattr(torch.accelerator, "current_stream", asked)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_, **__: CARD)
    made = Predictor(lambda _: two_layers(), PLAIN, method=method)
    bucket = Bucket(bound=1.0, input_length=20, output_length=3)
    assert made.predict(bucket, 2) is not None, made.blocked
