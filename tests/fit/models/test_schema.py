"""Models that declare their batches: every item, every kind of batch, and what cannot be made."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from playhead.errors import ConfigError, FitError
from playhead.fit.bucket import buckets_of
from playhead.fit.model import ModelSource
from playhead.fit.models.schema import read_schema
from playhead.fit.models.schema_model import declared_model
from playhead.fit.training import Training


class AudioSignal:
    pass


class LengthsType:
    pass


class LabelsType:
    pass


class TokenIndex(LabelsType):
    pass


class MaskType:
    pass


class SpectrogramType:
    pass


@dataclasses.dataclass
class NeuralType:
    elements_type: object


AUDIO = {"type": NeuralType(AudioSignal()), "seq_length": "input"}
AUDIO_LENGTH = {"type": NeuralType(LengthsType()), "seq_length": "input"}
TEXT = {"type": NeuralType(LabelsType()), "seq_length": "output", "vocab_size": 7}
TEXT_LENGTH = {"type": NeuralType(LengthsType()), "seq_length": "output"}
MASK = {"type": NeuralType(MaskType()), "seq_length": "output"}
CPU = torch.device("cpu")


def batch_of(items, make=tuple, *, is_speech_model=False, lengths=(100, 11)):
    schema = read_schema({"cls": make, "inputs": items}, "it", is_speech_model=is_speech_model)
    return schema.make_batch(3, *lengths, CPU)


def test_audio_and_text_have_the_lengths_of_the_bucket():
    audio, audio_length, text, text_length = batch_of([AUDIO, AUDIO_LENGTH, TEXT, TEXT_LENGTH])
    assert (audio.shape, audio.dtype) == ((3, 100), torch.float32)
    assert audio.std() > 0
    assert audio_length.tolist() == [100] * 3
    assert (text.shape, text.dtype) == ((3, 11), torch.int64)
    assert 0 <= text.min() < text.max() < 7
    assert text_length.tolist() == [11] * 3
    assert text_length.dtype == torch.int64


def test_masks_are_numbers_and_booleans_in_speech_language_models():
    assert batch_of([MASK])[0].equal(torch.ones(3, 11))
    assert batch_of([MASK], is_speech_model=True)[0].equal(torch.ones(3, 11, dtype=torch.bool))


def test_constants_scalars_and_dummies():
    size, seven, three, dummy, unknown = batch_of(
        [
            {"type": "constant", "value": "batch"},
            {"type": "constant", "value": 7},
            {"type": "scalar", "value": "three"},
            {"type": "dummy"},
            {"type": str},
        ]
    )
    assert size.equal(torch.tensor([3]))
    assert seven.equal(torch.tensor([7]))
    assert three == "three"
    assert dummy.numel() == unknown.numel() == 0


def test_labels_may_be_of_a_class_below():
    tokens = {**TEXT, "type": NeuralType(TokenIndex())}
    assert batch_of([tokens])[0].shape == (3, 11)


@dataclasses.dataclass
class Pair:
    audio: torch.Tensor
    text: torch.Tensor
    more: int = 0


def test_batches_are_what_the_schema_says():
    named = [{**AUDIO, "name": "audio"}, {**TEXT, "name": "text"}]
    assert set(batch_of(named, dict)) == {"audio", "text"}
    pair = batch_of([AUDIO, {**TEXT, "name": "text"}], Pair)
    assert isinstance(pair, Pair)
    assert pair.text.shape == (3, 11)
    assert isinstance(batch_of([AUDIO, TEXT], list), list)
    # Tuples go by place even where items have names.
    assert isinstance(batch_of(named, tuple), tuple)
    with pytest.raises(FitError, match="has no `name`"):
        batch_of([AUDIO], dict)


def test_excluded_labels_are_replaced_and_forced_ones_stand():
    (text,) = batch_of(
        [
            {
                **TEXT,
                "vocab_size": 3,
                "excluded_token_ids": [1, 2],
                "excluded_token_replacement_id": 5,
                "forced_token_ids": {0: 9, 4: 8, 50: 6},
            }
        ]
    )
    assert text[:, 0].tolist() == [9] * 3
    assert text[:, 4].tolist() == [8] * 3
    assert set(text[:, 5:].flatten().tolist()) <= {0, 5}


def test_audio_among_text_makes_the_text_longer():
    named = {**TEXT, "audio_placeholder_id": -7, "audio_frame_stride_samples": 30}
    text, lengths, mask = batch_of([named, TEXT_LENGTH, MASK])
    assert text.shape == mask.shape == (3, 11 + 4)
    assert (text[:, :4] == -7).all()
    assert (text[:, 4:] >= 0).all()
    assert lengths.tolist() == [15] * 3


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"type": NeuralType(SpectrogramType()), "seq_length": "input"}, "SpectrogramType"),
        ({"type": NeuralType(AudioSignal())}, "seq_length None"),
        ({**TEXT, "seq_length": "both"}, "seq_length 'both'"),
        ({**TEXT, "vocab_size": None}, "vocab_size None"),
    ],
)
def test_an_item_that_nobody_can_make_is_named(item, message):
    with pytest.raises(FitError, match=rf"{message} .*\(it: inputs\[1\]\)"):
        batch_of([AUDIO, item])


def test_a_schema_without_its_keys_is_told():
    with pytest.raises(FitError, match="no `cls` and `inputs`"):
        read_schema({"inputs": []}, "it", is_speech_model=False)


class Transcriber(nn.Module):
    """What a model of NeMo has: a schema, a step, and a loss in a mapping."""

    items = (AUDIO, AUDIO_LENGTH, TEXT, TEXT_LENGTH)
    make: type = tuple

    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(1, 1)

    @property
    def oomptimizer_schema(self):
        return {"cls": self.make, "inputs": list(self.items)}

    def training_step(self, batch, batch_idx):
        assert batch_idx == 0
        return {"loss": self.scale(batch[0].mean().reshape(1, 1)), "log": {}}


def declared(module, data=(), **options):
    source = ModelSource(kind="module", name="it", **options)
    return declared_model(module, source, Training(), dict(data))


def test_a_model_with_a_schema_is_trained():
    model = declared(Transcriber(), ratio=3.0)
    (bucket,) = buckets_of([2.5], model.rule)
    assert (bucket.input_length, bucket.output_length) == (40_000, 8)
    loss = model.loss(model.make_batch(2, bucket.input_length, bucket.output_length))
    assert loss.ndim == 0
    loss.backward()
    model.optimizer("adamw").step()


@pytest.mark.parametrize(
    ("attributes", "rate"),
    [
        ({"sample_rate": 8000}, 8000),
        ({"cfg": {"sample_rate": 22_050}}, 22_050),
        ({"cfg": {"preprocessor": {"sample_rate": 24_000}}}, 24_000),
        ({"cfg": {"preprocessor": None}}, 16_000),
    ],
)
def test_the_sample_rate_is_the_models(attributes, rate):
    module = Transcriber()
    for name, value in attributes.items():
        setattr(module, name, value)
    assert declared(module).rule.input_rate == rate


def test_modalities_are_what_labels_are_bound_to():
    text_input = {**TEXT, "seq_length": "input"}
    cases = [
        ((AUDIO, TEXT), (16_000, None)),
        ((AUDIO,), (16_000, 16_000)),
        ((text_input, {**AUDIO, "seq_length": "output"}), (None, 16_000)),
        ((text_input, TEXT), (None, None)),
    ]
    for items, rates in cases:
        module = Transcriber()
        module.items = items
        rule = declared(module).rule
        assert (rule.input_rate, rule.output_rate) == rates


class SALM(Transcriber):
    """A speech language model, by the name of its class."""

    make = dict
    audio_locator_tag_id = 2
    text_pad_id = 0
    items = (
        {**AUDIO, "name": "audios"},
        {**AUDIO_LENGTH, "name": "audio_lens"},
        {**TEXT, "name": "input_ids"},
        {**MASK, "name": "loss_mask"},
    )


def test_a_speech_language_model_splits_a_bucket_of_tokens():
    data = {"sample_rate": 8000, "token_equivalent_duration": 0.04}
    model = declared(SALM(), data, audio_share=0.75)
    (bucket,) = buckets_of([40], model.rule)
    assert (bucket.input_length, bucket.output_length) == (30 * 320, 10)
    batch = model.make_batch(5, bucket.input_length, bucket.output_length)
    assert batch["audios"].shape == (5, 9600)
    assert batch["loss_mask"].dtype == torch.bool
    # One placeholder for each audio, or its encoder would not be trained; no padding.
    assert (batch["input_ids"][:, 0] == 2).all()
    assert set(batch["input_ids"][:, 1:].flatten().tolist()) <= {1, 3, 4, 5, 6}
    assert model.notes == ("75% of the tokens of a bucket are audio, the rest text",)


def test_a_speech_language_model_takes_a_bucket_of_audio_alone_unless_told():
    (bucket,) = buckets_of([40], declared(SALM()).rule)
    assert (bucket.input_length, bucket.output_length) == (40 * 1280, 2)


def test_placeholders_that_the_schema_has_are_left_to_it():
    module = SALM()
    ids = {"audio_placeholder_id": -1, "audio_frame_stride_samples": 50}
    module.items = (*SALM.items[:2], {**SALM.items[2], **ids}, SALM.items[3])
    batch = declared(module).make_batch(2, 100, 10)
    assert batch["input_ids"].shape == batch["loss_mask"].shape == (2, 12)
    assert (batch["input_ids"][:, :2] == -1).all()


def test_an_audio_share_that_changes_nothing_is_told():
    model = declared(Transcriber(), audio_share=0.5)
    assert model.rule.audio_share is None
    assert "its share is not used" in model.notes[0]


def test_a_model_without_a_schema_is_told_in_one_line():
    with pytest.raises(FitError) as told:
        declared(nn.Linear(1, 1))
    assert told.value.exit_code == 1
    assert str(told.value).startswith("The class Linear has no oomptimizer_schema")


@pytest.mark.parametrize("error", [NotImplementedError(), AttributeError("no tokenizer")])
def test_a_schema_that_cannot_be_read_is_told_in_one_line(error):
    class Broken(Transcriber):
        @property
        def oomptimizer_schema(self):
            raise error

    with pytest.raises(FitError, match="Broken has a schema that fails: "):
        declared(Broken())


class OfNemo(Transcriber):
    def setup_optimization(self, config):
        if config["name"] != "novograd":
            raise ValueError(config["name"])
        assert config["weight_decay"] == 0
        self._optimizer = torch.optim.SGD(self.parameters(), lr=config["lr"])


def test_nemo_makes_the_optimizers_that_it_knows(monkeypatch):
    module = OfNemo()
    assert declared(module).optimizer("Novograd") is module._optimizer
    known = ModuleType("nemo.core.optim.optimizers")
    known.AVAILABLE_OPTIMIZERS = {"novograd": None, "adan": None}
    for name in ("nemo", "nemo.core", "nemo.core.optim"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, known.__name__, known)
    with pytest.raises(ConfigError, match=r"'lion' .* Choose one of adan, novograd"):
        declared(module).optimizer("lion")


class OwnOptimizer(Transcriber):
    def configure_optimizers(self):
        self.scale.bias.requires_grad_(False)
        return {"optimizer": torch.optim.SGD([self.scale.weight], lr=1.0), "lr_scheduler": {}}


def test_a_model_may_make_its_own_optimizer():
    optimizer = declared(OwnOptimizer()).optimizer("adamw")
    assert isinstance(optimizer, torch.optim.SGD)
    with pytest.raises(ConfigError, match="There is no optimizer 'lion'"):
        declared_model(
            Transcriber(), ModelSource(kind="module", name="it"), Training(optimizer="lion"), {}
        )
