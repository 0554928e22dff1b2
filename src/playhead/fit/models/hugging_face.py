"""Speech models of Hugging Face, made from their configs; weights are never downloaded."""

from __future__ import annotations

import importlib.util
import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from playhead.errors import ConfigError, MissingExtraError, SourceNotFoundError
from playhead.fit.bucket import LengthRule
from playhead.fit.models.ctc import ctc_labels, ctc_loss
from playhead.fit.models.moving import device_of
from playhead.fit.models.optimizers import class_of_optimizer, named_optimizer
from playhead.fit.probing.fault import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.fit.model import ModelSource
    from playhead.fit.training import Training

__all__ = ["HuggingFaceModel", "open_hugging_face"]

_OPTION = "--hf"
_SAMPLE_RATE = 16_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Recipe:
    """A kind of models that are trained alike."""

    made_by: str
    """Name of the class that makes them of a config."""
    only: str | None = None
    """The one type of config that it takes; None takes any that the class knows."""
    is_ctc: bool = False
    """Whether they are trained by CTC; others have a decoder and a loss of their own."""


_RECIPES = {
    "whisper": _Recipe(made_by="AutoModelForSpeechSeq2Seq", only="whisper"),
    "wav2vec2": _Recipe(made_by="AutoModelForCTC", only="wav2vec2", is_ctc=True),
    "ctc": _Recipe(made_by="AutoModelForCTC", is_ctc=True),
    "seq2seq": _Recipe(made_by="AutoModelForSpeechSeq2Seq"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Inputs:
    """What a model takes of audio."""

    name: str
    """Name of the argument."""
    rate: int
    """Frames a second, or samples where `size` is None."""
    size: int | None = None
    """Numbers in a frame; None for raw audio."""
    frames: int | None = None
    """Frames that it takes of any audio, which then come last in the shape; None for as many as
    there are."""
    mask: bool = False
    """Whether a mask comes with them."""


# By the type of a config: where it says the size of a frame, and frames a second.
_FEATURES: Mapping[str, tuple[str, int]] = {
    "lasr_ctc": ("encoder_config.num_mel_bins", 100),
    "parakeet_ctc": ("encoder_config.num_mel_bins", 100),
    "seamless_m4t": ("feature_projection_input_dim", 50),
    "seamless_m4t_v2": ("feature_projection_input_dim", 50),
    "speech_to_text": ("input_feat_per_channel", 100),
    "wav2vec2-bert": ("feature_projection_input_dim", 50),
    "whisper": ("num_mel_bins", 100),
}
# They want a channel beside the samples, as no other does.
_CHANNELLED = {"omniasr_ctc"}
# Layers and frames are dropped by chance: the most memory goes to a step that drops none.
_DROPPED = {
    "layerdrop": 0.0,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "speech_encoder_layerdrop": 0.0,
    "apply_spec_augment": False,
}


class HuggingFaceModel:
    """A speech model of Hugging Face.

    Parameters
    ----------
    module
        The model.
    name
        What people call it.
    inputs
        What it takes of audio.
    ratio
        Output by input, where a bound is one number.
    is_ctc
        Whether it is trained by CTC.
    """

    def __init__(
        self, module: Any, name: str, inputs: _Inputs, *, ratio: float, is_ctc: bool
    ) -> None:
        self.module, self.name = module, name
        self.rule = LengthRule(input_rate=inputs.rate, ratio=ratio)
        notes: list[str] = []
        self._inputs, self._is_ctc = inputs, is_ctc
        config = module.config
        self._vocabulary = _first(config, "vocab_size", "decoder.vocab_size")
        self._blank = _first(config, "pad_token_id")
        self._longest_labels = _first(config, "max_target_positions", "max_text_positions")
        if inputs.frames is not None:
            seconds = inputs.frames / inputs.rate
            notes.append(
                f"the model takes {inputs.frames} frames ({seconds:g} s) of features of any audio, "
                "so the input length of a bucket changes nothing"
            )
        if self._longest_labels is not None:
            notes.append(f"labels have at most {self._longest_labels} tokens in any bucket")
        self.notes: Sequence[str] = notes
        self.keeps_gradients = False

    def make_batch(self, batch_size: int, input_length: int, output_length: int) -> Any:
        """Make a batch of the longest samples of a bucket, on the device of the weights."""
        device, inputs = device_of(self.module), self._inputs
        shape = [batch_size, input_length]
        if inputs.frames is not None:
            shape = [batch_size, inputs.size or 1, inputs.frames]
        elif inputs.size is not None:
            shape = [batch_size, input_length, inputs.size]
        batch = {inputs.name: torch.randn(shape, device=device)}
        if inputs.mask:
            batch["attention_mask"] = torch.ones(shape[:2], dtype=torch.int64, device=device)
        length = min(output_length, self._longest_labels or output_length)
        if self._is_ctc:
            labels = ctc_labels(batch_size, length, self._vocabulary, self._blank, device)
        else:
            labels = torch.randint(0, self._vocabulary, (batch_size, length), device=device)
        batch["labels"] = labels
        return batch

    def loss(self, batch: Any) -> torch.Tensor:
        """Return the loss of a batch, one number."""
        if not self._is_ctc:
            return self.module(**batch).loss
        # The model's own loss looks at the labels to find padding, of which there is none.
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        return ctc_loss(self.module(**inputs).logits, batch["labels"], self._blank)

    def optimizer(self, name: str) -> Any:
        """Return an optimizer of the weights of that name."""
        return named_optimizer(self.module, name)


def open_hugging_face(source: ModelSource, training: Training) -> HuggingFaceModel:
    """Make a model of a config; its weights are random.

    Parameters
    ----------
    source
        Names the recipe and the config: a folder, a `config.json`, or a name on the hub.
    training
        How it is to be trained.

    Raises
    ------
    ConfigError
        If there is no such recipe, or it does not fit the config.
    SourceNotFoundError
        If there is no such config.
    MissingExtraError
        If transformers is not installed.
    """
    recipe = _RECIPES.get(source.name)
    if recipe is None:
        raise ConfigError(
            f"there is no recipe {source.name!r}",
            where=_OPTION,
            fix=f"Choose one of {', '.join(_RECIPES)}",
        )
    if source.config is None:
        raise ConfigError(f"the recipe {source.name} has no config", where=_OPTION, fix="Name one")
    if importlib.util.find_spec("transformers") is None:
        raise MissingExtraError(
            "transformers is needed for models of Hugging Face",
            fix="Run pip install 'playhead[hf]'",
        )
    class_of_optimizer(training.optimizer)
    config = _config_of(source.config)
    if recipe.only not in {None, config.model_type}:
        raise ConfigError(
            f"this is the config of a {config.model_type}, no {recipe.only}",
            where=source.config,
            fix="Take the recipe ctc or seq2seq, or another config",
        )
    module = _made(recipe, config, source)
    name = f"{source.name} {source.config}"
    inputs = _inputs_of(module, source.config)
    return HuggingFaceModel(module, name, inputs, ratio=source.ratio, is_ctc=recipe.is_ctc)


def _config_of(given: str) -> Any:
    from transformers import AutoConfig  # noqa: PLC0415  (of an extra)

    path = Path(given)
    is_path = given.endswith(".json") or given.startswith((os.sep, ".")) or path.exists()
    file = path if path.suffix == ".json" else path / "config.json"
    if is_path and not file.is_file():
        raise SourceNotFoundError(
            "the config does not exist", where=str(file), fix="Correct the path"
        )
    try:
        return AutoConfig.from_pretrained(str(file) if is_path else given)
    except Exception as error:
        if is_path:
            raise ConfigError(
                f"the config cannot be read: {words(error)}",
                where=given,
                fix="Give a config as transformers writes it",
            ) from error
        raise SourceNotFoundError(
            f"the hub gives no config of that name: {words(error)}",
            where=given,
            fix="Correct the name, or give a folder or a config.json",
        ) from error


def _made(recipe: _Recipe, config: Any, source: ModelSource) -> Any:
    import transformers  # noqa: PLC0415  (of an extra)

    parts = (part for part in vars(config).values() if hasattr(part, "model_type"))
    for part in (config, *parts):
        for name, value in _DROPPED.items():
            if hasattr(part, name):
                setattr(part, name, value)
    config.use_cache = False
    attention = {}
    if source.attn_implementation is not None:
        attention["attn_implementation"] = source.attn_implementation
    try:
        module = getattr(transformers, recipe.made_by).from_config(config, **attention)
        if source.gradient_checkpointing:
            # Its name since transformers 5; the older one stands beside it, and warns.
            enable = getattr(module, "activation_checkpointing_enable", None)
            (enable or module.gradient_checkpointing_enable)()
    except Exception as error:
        raise ConfigError(
            f"no model can be made of a {config.model_type} config: {words(error)}",
            where=source.config,
            fix="Correct the config, or choose another recipe",
        ) from error
    # Configs carry the dtype in which weights are stored; autocast trains those in float32.
    return module.float().train()


def _inputs_of(module: Any, where: str) -> _Inputs:
    config = module.config
    name, kind = module.main_input_name, config.model_type
    if kind == "speech-encoder-decoder":
        name, config = module.encoder.main_input_name, config.encoder
    if name == "input_values" and kind not in _CHANNELLED:
        # Models that normalise each layer are trained with a mask; those that do not, without.
        mask = getattr(config, "feat_extract_norm", None) == "layer"
        return _Inputs(name=name, rate=_SAMPLE_RATE, mask=mask)
    if name == "input_features" and config.model_type in _FEATURES:
        attribute, rate = _FEATURES[config.model_type]
        size = operator.attrgetter(attribute)(config)
        if config.model_type == "whisper":
            return _Inputs(name=name, rate=rate, size=size, frames=2 * config.max_source_positions)
        return _Inputs(name=name, rate=rate, size=size, mask=True)
    raise ConfigError(
        f"nobody knows the batches of a {kind}",
        where=where,
        fix="Wrap it in a module of your own with make_batch and training_step",
    )


def _first(config: Any, *attributes: str) -> Any:
    for attribute in attributes:
        try:
            found = operator.attrgetter(attribute)(config)
        except AttributeError:
            continue
        if found is not None:
            return found
    return None
