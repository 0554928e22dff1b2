"""Predictions: what steps on fake tensors hold is what steps on real ones do."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from playhead.errors import FitError
from playhead.fit.bucket import Bucket, buckets_of
from playhead.fit.fake.predictor import Predictor, predictor
from playhead.fit.live_tensors import rounded
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.training import Training
from support.fit_models import Small, two_layers
from support.real_steps import real_peak
from support.speech_models import TINY_WAV2VEC2, TINY_WHISPER, frames, wav2vec2, whisper

BUCKET = Bucket(bound=1.0, input_length=20, output_length=3)
PLAIN = Training(dtype="float32", ddp=False)


def predicted(make, training, bucket, batch_size, method="cpu", **options):
    made = Predictor(lambda _: make(), training, method=method, **options)
    peak = made.predict(bucket, batch_size)
    assert made.blocked is None
    return peak


@settings(max_examples=4)
@given(
    optimizer=st.sampled_from(["sgd", "adam", "adamw"]),
    dtype=st.sampled_from(["float32", "bfloat16", "float16"]),
    ddp=st.booleans(),
    ema=st.booleans(),
    accumulate=st.integers(1, 3),
    size=st.integers(1, 50),
    length=st.integers(1, 40),
)
def test_fake_is_real_for_any_training(size, length, **training):
    training = Training(**training)
    bucket = Bucket(bound=1.0, input_length=length, output_length=3)
    real = real_peak(two_layers(), training, bucket, size)
    assert predicted(two_layers, training, bucket, size) == real


SPEECH = {
    "whisper": (partial(whisper, **TINY_WHISPER), frames(100, 20)),
    "wav2vec2": (partial(wav2vec2, **TINY_WAV2VEC2), frames(6000, 3)),
}


@pytest.mark.parametrize(
    ("name", "attention", "dtype"),
    [
        ("whisper", "sdpa", "bfloat16"),
        ("wav2vec2", "eager", "float32"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in product(SPEECH, ["sdpa", "eager"], ["float32", "bfloat16", "float16"])
        ),
    ],
)
def test_fake_is_real_for_speech_models(name, attention, dtype):
    make, bucket = SPEECH[name]
    training = Training(dtype=dtype, ddp=False)
    made = Predictor(lambda _: make(attention), training, method="cpu")
    for size in (3, 1):
        real = real_peak(make(attention), training, bucket, size)
        assert made.predict(bucket, size) == real, made.blocked


def frozen_encoder():
    model = two_layers(hidden=256)
    model.module[0].requires_grad_(requires_grad=False)
    return model


def test_what_is_frozen_has_neither_gradients_nor_states():
    training = Training(dtype="float32")
    peak = predicted(frozen_encoder, training, BUCKET, 4)
    assert peak == real_peak(frozen_encoder(), training, BUCKET, 4)
    first = frozen_encoder().module[0]
    weights = rounded(first.weight.nbytes) + rounded(first.bias.nbytes)
    # Two states, two counts of steps, and room in DDP's bucket for what is not frozen alone.
    states = 2 * weights + 2 * rounded(4)
    whole = predicted(lambda: two_layers(hidden=256), training, BUCKET, 4)
    assert whole - peak >= states + weights


def checkpointed():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(16, 512), nn.GELU(), nn.Linear(512, 16))

        def forward(self, batch):
            return checkpoint(self.inner, batch, use_reentrant=False)

    return Small(Twice())


@pytest.mark.parametrize("method", ["cpu", "estimate"])
def test_checkpointed_layers_hold_less(method):
    training = Training(dtype="bfloat16", ddp=False)
    peak = predicted(checkpointed, training, BUCKET, 50, method)
    whole = predicted(lambda: Small(checkpointed().module.inner), training, BUCKET, 50, method)
    assert peak < whole
    if method == "cpu":
        assert peak == real_peak(checkpointed(), training, BUCKET, 50)


LARGE = Bucket(bound=1.0, input_length=2000, output_length=3)


@pytest.mark.parametrize("method", ["cpu", "estimate"])
def test_each_part_of_the_training_adds_its_exact_bytes(method):
    """At a batch so large that the peak is in the middle of the step, where all of them are."""

    def peak(**training):
        return predicted(two_layers, Training(dtype="float32", **training), LARGE, 64, method)

    sizes = [weight.nbytes for weight in two_layers().module.parameters()]
    each = sum(map(rounded, sizes))
    sgd = peak(ddp=False, optimizer="sgd")
    assert peak(ddp=True, optimizer="sgd") - sgd == rounded(sum(sizes))
    assert peak(ddp=False, optimizer="sgd", ema=True) - sgd == each
    # Two moments and a count of steps for each weight.
    assert peak(ddp=False, optimizer="adamw") - sgd == 2 * each + len(sizes) * rounded(4)
    # From the second micro-batch on, gradients are there before it starts.
    assert peak(ddp=False, optimizer="sgd", accumulate=2) - sgd == each


def test_a_size_that_no_memory_holds_costs_no_more():
    peak = predicted(two_layers, PLAIN, LARGE, 10**6)
    assert peak > 10**12


def test_the_same_question_is_not_worked_out_again():
    model = two_layers()
    made = Predictor(lambda _: model, PLAIN, method="cpu")
    first = made.predict(BUCKET, 4)
    asked = len(model.batches)
    assert made.predict(BUCKET, 4) == first
    assert len(model.batches) == asked


def test_weights_that_two_layers_share_count_once():
    def tied():
        model = two_layers(16, 16)
        model.module[2].weight = model.module[0].weight
        return model

    assert predicted(tied, PLAIN, BUCKET, 2) == real_peak(tied(), PLAIN, BUCKET, 2)


class LooksInside(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, batch):
        scores = self.inner(batch)
        return scores[scores > 0]


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.looks = LooksInside()

    def forward(self, batch):
        return self.looks(batch)


def test_a_model_that_cannot_run_on_fake_tensors_says_what_blocks_it():
    made = Predictor(lambda _: Small(Outer()), PLAIN, method="cpu")
    assert made.predict(BUCKET, 2) is None
    why = made.blocked
    assert "\n" not in why
    assert why.startswith("aten::nonzero needs values that fake tensors do not have")
    assert "in looks (LooksInside)" in why
    line = LooksInside.forward.__code__.co_firstlineno + 2
    assert why.endswith(f"{__file__}:{line}")
    # And nothing is tried again.
    assert made.predict(BUCKET, 1) is None


def test_code_that_wants_bytes_is_named_likewise():
    class Converts(Outer):
        def forward(self, batch):
            return batch + float(super().forward(batch).detach().numpy().sum())

    made = Predictor(lambda _: Small(Converts()), PLAIN, method="cpu")
    assert made.predict(BUCKET, 2) is None
    assert __file__ in made.blocked


def test_a_model_that_cannot_be_trained_is_an_error():
    def frozen():
        model = two_layers()
        model.module.requires_grad_(requires_grad=False)
        return model

    with pytest.raises(FitError, match="Nothing in small is trained"):
        Predictor(lambda _: frozen(), PLAIN).predict(BUCKET, 1)


def test_a_model_that_cannot_be_opened_is_the_error_that_opening_it_is():
    def missing():
        raise FitError("there is no such model")

    with pytest.raises(FitError, match="There is no such model"):
        Predictor(lambda _: missing(), PLAIN)


def test_layers_that_are_left_out_by_chance_count():
    """Of a real step, nobody knows how many layers it has."""

    def make():
        return wav2vec2(**TINY_WAV2VEC2, layerdrop=0.5)

    made = Predictor(lambda _: make(), PLAIN, method="cpu")
    whole = wav2vec2(**TINY_WAV2VEC2)
    bucket = frames(6000, 3)
    assert made.predict(bucket, 2) == real_peak(whole, PLAIN, bucket, 2)
    assert any("looked into small tensors" in note for note in made.notes)
    assert any("CTC's loss" in note for note in made.notes)


def test_an_estimate_says_that_it_is_one_and_which_kernels_it_assumed():
    def make():
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        return Small(layer)

    made = Predictor(lambda _: make(), Training(dtype="bfloat16"))
    made.predict(BUCKET, 2)
    first, second = made.notes
    assert first.startswith("an estimate")
    assert second == "attention: flash, assumed in 2 calls"


def test_nothing_of_torch_stays_changed():
    before = (
        nn.Module._apply,
        torch.autocast.__init__,
        nn.functional.scaled_dot_product_attention,
        torch.autograd.has_torch_function,
        torch.Tensor.__deepcopy__,
    )
    predicted(two_layers, Training(dtype="bfloat16"), BUCKET, 2, "estimate")
    assert before == (
        nn.Module._apply,
        torch.autocast.__init__,
        nn.functional.scaled_dot_product_attention,
        torch.autograd.has_torch_function,
        torch.Tensor.__deepcopy__,
    )
    assert type(torch.zeros(1) + 1) is torch.Tensor


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU, they do not fail")
def test_fake_tensors_of_cuda_that_fail_make_place_for_an_estimate():
    due = predicted(two_layers, PLAIN, BUCKET, 4, "estimate")

    class FailsLater(Small):
        def make_batch(self, *lengths):
            if made.method == "cuda":
                raise RuntimeError("no context on the device")
            return super().make_batch(*lengths)

    made = Predictor(lambda _: FailsLater(two_layers().module), PLAIN, method="estimate")
    made.method = "cuda"
    assert made.predict(BUCKET, 4) == due
    assert made.method == "estimate"
    assert made.blocked is None
    assert made.notes[0].startswith("there are no fake tensors of CUDA, so this is an estimate")


@pytest.mark.parametrize(
    ("recipe", "config", "dtype"),
    [
        ("whisper", "WhisperConfig", "bfloat16"),
        ("wav2vec2", "Wav2Vec2Config", "bfloat16"),
        pytest.param("ctc", "HubertConfig", "float32", marks=pytest.mark.slow),
        pytest.param(
            *("ctc", "WavLMConfig", "bfloat16"),
            marks=[
                pytest.mark.slow,
                # Of the model itself, which adds positions to a mask of another dtype.
                pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask"),
            ],
        ),
    ],
)
def test_models_that_people_name_are_foretold(tmp_path, recipe, config, dtype):
    import transformers

    sizes = TINY_WHISPER if recipe == "whisper" else TINY_WAV2VEC2
    layers = {} if recipe == "whisper" else {"feat_extract_norm": "layer"}
    getattr(transformers, config)(**sizes, **layers).save_pretrained(tmp_path)
    source = ModelSource(kind="hf", name=recipe, config=str(tmp_path))
    training = Training(dtype=dtype)
    model = open_model(source, "cpu", training)
    (bucket,) = buckets_of([0.5], model.rule)
    made = predictor(source, training, "cpu")
    assert made.method == "cpu"
    assert made.predict(bucket, 3) == real_peak(model, training, bucket, 3), made.blocked


def test_a_gpu_that_is_not_there_is_estimated(tmp_path, monkeypatch):
    from transformers import Wav2Vec2Config

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    Wav2Vec2Config(**TINY_WAV2VEC2).save_pretrained(tmp_path)
    source = ModelSource(kind="hf", name="wav2vec2", config=str(tmp_path))
    for device in ("fake", "cuda", "cuda:1"):
        made = predictor(source, Training(), device)
        assert made.method == "estimate"
    assert made.predict(frames(6000, 3), 2) is not None, made.blocked
    assert made.notes[1].startswith("attention: flash")
    worse = predictor(source, Training(), "fake", attention="math")
    worse.predict(frames(6000, 3), 2)
    assert worse.notes[1].startswith("attention: math")
