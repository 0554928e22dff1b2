"""Models of Hugging Face: batches as they take them, and steps that train them."""

from __future__ import annotations

import math

import pytest
import torch

from playhead.errors import ConfigError, MissingExtraError, SourceNotFoundError
from playhead.fit.bucket import buckets_of
from playhead.fit.model import ModelSource
from playhead.fit.models import open_model
from playhead.fit.models.ctc import ctc_labels, ctc_loss
from playhead.fit.steps import prepare, train_step
from playhead.fit.training import Training
from support.hugging_face import SMALL, write_config

pytest.importorskip("transformers")

CPU = torch.device("cpu")
DECODED = {"moonshine", "seamless_m4t", "seamless_m4t_v2", "speech_to_text", "speecht5", "whisper"}
# Of those that are trained on features: frames of a second, and numbers of a frame.
FEATURES = {
    "lasr_ctc": (100, 128),
    "parakeet_ctc": (100, 80),
    "seamless_m4t": (50, 160),
    "seamless_m4t_v2": (50, 160),
    "speech_to_text": (100, 80),
    "wav2vec2-bert": (50, 160),
}
QUICK = ("wav2vec2", "wav2vec2-bert", "moonshine")


def opened(folder, recipe, training=None, **options):
    source = ModelSource(kind="hf", name=recipe, config=str(folder), **options)
    return open_model(source, "cpu", training or Training())


def checked(kind):
    marks = () if kind in QUICK else pytest.mark.slow
    return pytest.param(kind, marks=marks)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("kind", [checked(kind) for kind in SMALL if kind != "whisper"])
def test_a_model_takes_its_batches_and_is_trained(kind, tmp_path):
    model = opened(write_config(tmp_path, kind), "seq2seq" if kind in DECODED else "ctc")
    (bucket,) = buckets_of([(0.5, 6)], model.rule)
    batch = model.make_batch(3, bucket.input_length, bucket.output_length)
    assert batch["labels"].shape == (3, 6)
    if kind in FEATURES:
        rate, size = FEATURES[kind]
        assert batch["input_features"].shape == (3, rate // 2, size)
        assert batch["attention_mask"].all()
    else:
        assert batch["input_values"].shape == (3, 8000)
    assert torch.isfinite(model.loss(batch))
    prepared = prepare(model, Training(dtype="float32"))
    train_step(prepared, bucket, 2)
    assert prepared.optimizer.state


def test_whisper_takes_its_frames_whatever_the_bucket(tmp_path):
    model = opened(write_config(tmp_path, "whisper"), "whisper")
    for bucket in buckets_of([0.5, 30.0], model.rule):
        batch = model.make_batch(2, bucket.input_length, bucket.output_length)
        assert batch["input_features"].shape == (2, 80, 200)
        assert batch["labels"].shape == (2, min(bucket.output_length, 20))
    assert torch.isfinite(model.loss(batch))
    assert len(model.notes) == 2
    assert "200 frames (2 s)" in model.notes[0]
    assert "at most 20 tokens" in model.notes[1]
    # A step that drops no layer takes the most memory, and every step takes as much.
    assert model.module.config.encoder_layerdrop == 0


def test_wav2vec2_is_raw_audio_with_a_mask_where_its_layers_are_normalised(tmp_path):
    model = opened(write_config(tmp_path, "wav2vec2", feat_extract_norm="group"), "wav2vec2")
    assert set(model.make_batch(2, 8000, 3)) == {"input_values", "labels"}
    model = opened(write_config(tmp_path, "wav2vec2", feat_extract_norm="layer"), "wav2vec2")
    assert model.make_batch(2, 8000, 3)["attention_mask"].shape == (2, 8000)


def test_attention_and_checkpointing_are_options(tmp_path):
    folder = write_config(tmp_path, "whisper", dtype="float16")
    model = opened(folder, "whisper", attn_implementation="eager", gradient_checkpointing=True)
    assert model.module.config._attn_implementation == "eager"
    parts = model.module.modules()
    assert any(getattr(part, "gradient_checkpointing", False) for part in parts)
    assert model.module.training
    # Autocast trains weights in float32, however they are stored.
    assert {weight.dtype for weight in model.module.parameters()} == {torch.float32}
    with pytest.raises(ConfigError, match="No model can be made of a whisper config"):
        opened(folder, "whisper", attn_implementation="clever")


def test_a_config_may_be_named_by_its_file(tmp_path):
    file = write_config(tmp_path, "whisper") / "config.json"
    assert opened(file, "seq2seq").name == f"seq2seq {file}"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            ("bert", "x"),
            ConfigError,
            "recipe 'bert' .* Choose one of whisper, wav2vec2",
        ),
        (("ctc", None), ConfigError, "The recipe ctc has no config"),
        (
            ("ctc", "./absent"),
            SourceNotFoundError,
            r"does not exist \(absent/config.json",
        ),
        (("ctc", "absent.json"), SourceNotFoundError, "The config does not exist"),
        (("ctc", "broken.json"), ConfigError, "The config cannot be read"),
        (("ctc", "not/there"), SourceNotFoundError, "The hub gives no config of that name"),
        (("wav2vec2", "whisper"), ConfigError, "the config of a whisper, no wav2vec2"),
        (("ctc", "whisper"), ConfigError, "No model can be made of a whisper config"),
        (("ctc", "omniasr"), ConfigError, "Nobody knows the batches of a omniasr_ctc"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(given, error, message, tmp_path, monkeypatch):
    recipe, config = given
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    write_config(tmp_path / "whisper", "whisper")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "omniasr").mkdir()
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    audio = {**small, "intermediate_size": 32, "conv_dim": [16] * 7}
    text = f'{{"model_type": "omniasr_ctc", "vocab_size": 9, "audio_config": {audio}}}'
    (tmp_path / "omniasr" / "config.json").write_text(text.replace("'", '"'))
    with pytest.raises(error, match=message) as told:
        opened(config, recipe) if config else open_model(
            ModelSource(kind="hf", name=recipe), "cpu", Training()
        )
    assert told.value.exit_code == 2
    assert "\n" not in str(told.value)


def test_an_unknown_optimizer_is_named_before_the_model_is_made(tmp_path):
    with pytest.raises(ConfigError, match="There is no optimizer 'lion'"):
        opened(tmp_path / "absent", "ctc", Training(optimizer="lion"))


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"playhead\[hf\]"):
        opened(tmp_path, "ctc")


@pytest.mark.parametrize("blank", [0, 3, 5])
def test_labels_of_ctc_have_no_blank_and_no_repetition(blank):
    labels = ctc_labels(50, 40, 6, blank, CPU)
    assert set(labels.flatten().tolist()) == set(range(6)) - {blank}
    assert (labels[:, 1:] != labels[:, :-1]).all()


@pytest.mark.parametrize("vocabulary", [1, 2, 3])
def test_labels_of_a_tiny_vocabulary_are_labels(vocabulary):
    labels = ctc_labels(4, 9, vocabulary, 0, CPU)
    assert (labels > 0).all()
    assert (labels < max(2, vocabulary)).all()


def test_as_many_labels_as_frames_have_a_loss_and_more_have_none():
    labels = ctc_labels(2, 10, 6, 0, CPU)
    logits = torch.randn(2, 10, 6, requires_grad=True)
    loss = ctc_loss(logits, labels, 0)
    assert 0 < loss.item() < math.inf
    more = ctc_loss(logits, ctc_labels(2, 11, 6, 0, CPU), 0)
    assert more.item() == 0
    more.backward()
    assert torch.isfinite(logits.grad).all()


def test_the_loss_is_that_of_the_model(tmp_path):
    model = opened(write_config(tmp_path, "wav2vec2", ctc_loss_reduction="mean"), "wav2vec2")
    model.module.eval()
    batch = model.make_batch(2, 8000, 5)
    with torch.no_grad():
        assert torch.allclose(model.loss(batch), model.module(**batch).loss)
