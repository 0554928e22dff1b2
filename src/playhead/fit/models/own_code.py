"""Models of people's own code: any `nn.Module` or `LightningModule` with two methods."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from torch import nn

from playhead.errors import ConfigError
from playhead.fit.bucket import TOKEN_SECONDS, LengthRule
from playhead.fit.models.lightning_module import (
    give_optimizer,
    has_hook,
    is_lightning_module,
    settle,
)
from playhead.fit.models.losses import loss_of
from playhead.fit.models.moving import device_of, moved
from playhead.fit.models.optimizers import class_of_optimizer, named_optimizer, optimizer_of
from playhead.fit.models.schema_model import declared_model, has_schema
from playhead.user_code import load_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from playhead.fit.model import ModelSource
    from playhead.fit.models.schema_model import SchemaModel
    from playhead.fit.training import Training

__all__ = ["OwnModel", "open_own_code"]

_OPTION = "--model"
_METHODS = {
    "make_batch": "make_batch(batch_size, input_length, output_length)",
    "training_step": "training_step(batch)",
}
_SAMPLE_RATE = 16_000


class OwnModel:
    """A model of people's own code.

    Parameters
    ----------
    module
        Has what `Trainable` says.
    name
        What people call it.
    rule
        How the bounds of buckets become lengths of its batches.
    """

    def __init__(self, module: Any, name: str, rule: LengthRule) -> None:
        self.module, self.name, self.rule = module, name, rule
        self.notes: Sequence[str] = ()
        self.keeps_gradients = is_lightning_module(module)
        self._takes_number = _takes_two(module.training_step)

    def make_batch(self, batch_size: int, input_length: int, output_length: int) -> Any:
        """Make a batch of the longest samples of a bucket, on the device of the weights."""
        batch = self.module.make_batch(batch_size, input_length, output_length)
        return moved(batch, device_of(self.module))

    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch, one number."""
        number = (0,) if self._takes_number else ()
        return loss_of(self.module.training_step(batch, *number), self.name)

    def optimizer(self, name: str) -> Any:
        """Return an optimizer of the weights: the model's own, or one of that name."""
        made = None
        if has_hook(self.module, "configure_optimizers"):
            made = optimizer_of(self.module.configure_optimizers(), self.name)
        if made is None:
            made = named_optimizer(self.module, name)
        give_optimizer(self.module, made)
        return made


def open_own_code(source: ModelSource, training: Training) -> OwnModel | SchemaModel:
    """Open a model by the name of its module and its name there.

    Parameters
    ----------
    source
        Names it: ``MODULE:NAME``, a class or a function without arguments, or an object.
    training
        How it is to be trained.

    Raises
    ------
    ConfigError
        If there is none, or it lacks something; what it lacks is named.
    """
    module: Any = load_object(source.name, kind="model", option=_OPTION)
    if not isinstance(module, nn.Module):
        raise ConfigError(
            f"the model {source.name} is a {type(module).__name__}, no nn.Module",
            where=_OPTION,
            fix="Name an nn.Module or a LightningModule, or what makes one",
        )
    if not has_hook(module, "make_batch") and has_schema(module):
        return declared_model(module, source, training, {})
    missing = [method for method in _METHODS if not has_hook(module, method)]
    if missing:
        raise ConfigError(
            f"the class {type(module).__name__} has no {' and no '.join(missing)}",
            where=source.name,
            fix=f"Give it {' and '.join(_METHODS[method] for method in missing)}",
        )
    if is_lightning_module(module):
        _prepare(module, source.name)
    if not has_hook(module, "configure_optimizers"):
        class_of_optimizer(training.optimizer)
    module.train()
    return OwnModel(module, source.name, _rule_of(module, source))


def _prepare(module: Any, name: str) -> None:
    if not module.automatic_optimization:
        raise ConfigError(
            f"the class {type(module).__name__} optimizes by hand: its step is not one of ours",
            where=name,
            fix="Let training_step return the loss, and set automatic_optimization",
        )
    settle(module)
    module.configure_model()


def _rule_of(module: nn.Module, source: ModelSource) -> LengthRule:
    share = source.audio_share
    if share is None:
        share = getattr(module, "audio_share", None)
    if share is not None and not 0 < share <= 1:
        raise ConfigError(
            f"the audio share of a bucket is {share!r}",
            where=source.name,
            fix="Give a number above 0, and 1 at most",
        )
    return LengthRule(
        input_rate=_rate(module, "sample_rate", _SAMPLE_RATE, source.name),
        output_rate=_rate(module, "output_sample_rate", None, source.name),
        ratio=source.ratio,
        audio_share=share,
        token_seconds=getattr(module, "token_seconds", TOKEN_SECONDS),
    )


def _rate(module: nn.Module, attribute: str, default: int | None, name: str) -> int | None:
    rate = getattr(module, attribute, default)
    if rate is None or (isinstance(rate, int) and rate > 0):
        return rate
    raise ConfigError(
        f"{attribute} is {rate!r}", where=name, fix="Give samples a second, or None for no audio"
    )


def _takes_two(step: Any) -> bool:
    parameters = inspect.signature(step).parameters.values()
    places = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    several = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    return several or sum(parameter.kind in places for parameter in parameters) > 1
