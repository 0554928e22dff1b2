"""Models that declare their batches by an `oomptimizer_schema`, as those of NeMo do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, FitError
from playhead.fit.bucket import TOKEN_SECONDS, LengthRule
from playhead.fit.models.lightning_module import (
    give_optimizer,
    has_hook,
    is_lightning_module,
    settle,
)
from playhead.fit.models.losses import loss_of
from playhead.fit.models.moving import device_of
from playhead.fit.models.optimizers import class_of_optimizer, named_optimizer, optimizer_of
from playhead.fit.models.schema import read_schema
from playhead.fit.probing.fault import words
from playhead.user_code import load_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from playhead.fit.model import ModelSource
    from playhead.fit.models.schema import Item, Schema
    from playhead.fit.training import Training

__all__ = ["SchemaModel", "declared_model", "has_schema"]

_ATTRIBUTE = "oomptimizer_schema"
# Models with audio among text: a token bucket is split between them.
_SPEECH_LANGUAGE_MODELS = {"SALM", "SALMAutomodel", "SALMWithAsrDecoder"}
_SAMPLE_RATE = 16_000
# No model learns anything here: what counts is what its optimizer holds.
_OPTIMIZATION: Mapping[str, float] = {"lr": 1e-7, "weight_decay": 0.0}


def has_schema(module: Any) -> bool:
    """Return whether a module declares its batches, be it that what it declares cannot be read."""
    return hasattr(type(module), _ATTRIBUTE) or _ATTRIBUTE in vars(module)


def declared_model(
    module: Any, source: ModelSource, training: Training, data: Mapping[str, Any]
) -> SchemaModel:
    """Make a module ready that declares its batches.

    Parameters
    ----------
    module
        The module.
    source
        Where it comes from.
    training
        How it is to be trained.
    data
        Options of its training data, where a config has them.

    Raises
    ------
    FitError
        If it does not declare them, or batches cannot be made so.
    ConfigError
        If there is no such optimizer.
    """
    if not has_schema(module):
        raise FitError(
            f"the class {type(module).__name__} has no {_ATTRIBUTE}, so nobody knows its batches",
            where=source.name,
            fix="Wrap it in a module of your own with make_batch and training_step",
        )
    if is_lightning_module(module):
        settle(module)
        module.configure_model()
    if not has_hook(module, "setup_optimization") and not has_hook(module, "configure_optimizers"):
        class_of_optimizer(training.optimizer)
    module.train()
    return SchemaModel(module, source, data)


class SchemaModel:
    """A model that declares its batches.

    Parameters
    ----------
    module
        Has an `oomptimizer_schema`, and the `training_step` of Lightning.
    source
        Where it comes from.
    data
        Options of its training data, where a config has them.

    Raises
    ------
    FitError
        If batches cannot be made as it declares them.
    """

    def __init__(self, module: Any, source: ModelSource, data: Mapping[str, Any]) -> None:
        self.module, self.name = module, source.name
        kind = type(module).__name__
        is_talk = kind in _SPEECH_LANGUAGE_MODELS
        schema = read_schema(
            _declared(module),
            kind,
            is_speech_model=is_talk or ".speechlm2." in type(module).__module__,
        )
        self.schema = _with_audio(module, schema) if is_talk else schema
        self.rule = _rule_of(module, schema, source, data, is_talk=is_talk)
        self.notes: Sequence[str] = ()
        # Models with a schema are trained by Lightning.
        self.keeps_gradients = True
        if is_talk:
            self.notes = (
                f"{self.rule.audio_share:.0%} of the tokens of a bucket are audio, the rest text",
            )
        elif source.audio_share is not None:
            self.notes = (f"the class {kind} has no audio among text: its share is not used",)

    def make_batch(self, batch_size: int, input_length: int, output_length: int) -> Any:
        """Make a batch of the longest samples of a bucket, on the device of the weights."""
        return self.schema.make_batch(
            batch_size, input_length, output_length, device_of(self.module)
        )

    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch, one number."""
        return loss_of(self.module.training_step(batch, 0), self.name)

    def optimizer(self, name: str) -> Any:
        """Return an optimizer of the weights: of that name, or the model's own in `speechlm2`."""
        if has_hook(self.module, "setup_optimization"):
            made = self._of_nemo(name)
        elif has_hook(self.module, "configure_optimizers"):
            made = optimizer_of(self.module.configure_optimizers(), self.name)
        else:
            made = None
        if made is None:
            made = named_optimizer(self.module, name)
        give_optimizer(self.module, made)
        return made

    def _of_nemo(self, name: str) -> Any:
        try:
            self.module.setup_optimization({"name": name.lower(), **_OPTIMIZATION})
        except (ValueError, TypeError) as error:
            known = load_module("nemo.core.optim.optimizers", "--optimizer-name")
            raise ConfigError(
                f"NeMo makes no optimizer {name!r}",
                where="--optimizer-name",
                fix=f"Choose one of {', '.join(sorted(known.AVAILABLE_OPTIMIZERS))}",
            ) from error
        # Steps of NeMo ask this one for its learning rate.
        return self.module._optimizer  # noqa: SLF001


def _declared(module: Any) -> Any:
    try:
        return getattr(module, _ATTRIBUTE)
    except Exception as error:
        raise FitError(
            f"the class {type(module).__name__} has a schema that fails: {words(error)}",
            where=_ATTRIBUTE,
            fix="Wrap it in a module of your own with make_batch and training_step",
        ) from error


def _with_audio(module: Any, schema: Schema) -> Schema:
    """Let every text have its audio: without a placeholder, the encoder would not be trained."""
    placeholder = getattr(module, "audio_locator_tag_id", None)
    if placeholder is None or any(item.placeholder is not None for item in schema.items):
        return schema
    padding = getattr(module, "text_pad_id", None)
    return replace(schema, items=[_opened(item, placeholder, padding) for item in schema.items])


def _opened(item: Item, placeholder: int, padding: int | None) -> Item:
    if item.kind != "labels":
        return item
    # Text that is padding is cut away, and each placeholder takes one audio.
    excluded = {*item.excluded, placeholder, *(() if padding is None else (padding,))}
    plain = next(label for label in range(len(excluded) + 1) if label not in excluded)
    return replace(
        item, placeholder=placeholder, excluded=tuple(sorted(excluded)), replacement=plain
    )


def _rule_of(
    module: Any, schema: Schema, source: ModelSource, data: Mapping[str, Any], *, is_talk: bool
) -> LengthRule:
    if is_talk:
        return LengthRule(
            input_rate=int(data.get("sample_rate") or _SAMPLE_RATE),
            ratio=source.ratio,
            audio_share=1.0 if source.audio_share is None else source.audio_share,
            token_seconds=float(data.get("token_equivalent_duration") or TOKEN_SECONDS),
        )
    rate = _sample_rate_of(module)
    return LengthRule(
        input_rate=None if schema.is_text("input") else rate,
        output_rate=None if schema.is_text("output") else rate,
        ratio=source.ratio,
    )


def _sample_rate_of(module: Any) -> int:
    config = getattr(module, "cfg", None) or {}
    preprocessor = config.get("preprocessor") or {}
    found = (
        getattr(module, "sample_rate", None),
        config.get("sample_rate"),
        preprocessor.get("sample_rate"),
    )
    return int(next((rate for rate in found if rate), _SAMPLE_RATE))
