"""Optimizers: by name, or what `configure_optimizers` returns in any of its forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isclass, signature
from typing import TYPE_CHECKING, Any, cast

import torch

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SeveralOptimizers", "class_of_optimizer", "named_optimizer", "optimizer_of"]

# Weights hardly move: what counts is what an optimizer holds.
_LEARNING_RATE = 1e-7
# The base of all; those that want a closure or sparse gradients; one for matrices alone.
_UNUSABLE = {"Optimizer", "LBFGS", "SparseAdam", "Muon"}


class SeveralOptimizers:
    """Optimizers that step together.

    Parameters
    ----------
    optimizers
        Each has weights of its own.
    """

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self.optimizers = tuple(optimizers)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of all."""
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def step(self) -> None:
        """Let each do its step."""
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let each forget its gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=set_to_none)


def class_of_optimizer(name: str) -> Any:
    """Return an optimizer of torch.

    Parameters
    ----------
    name
        Name of its class; capitals do not matter.

    Raises
    ------
    ConfigError
        If torch has none of that name that takes any weights and steps without a closure.

    Examples
    --------
    >>> class_of_optimizer("adamw").__name__
    'AdamW'
    """
    usable = {
        key.lower(): value
        for key, value in vars(torch.optim).items()
        if isclass(value) and issubclass(value, torch.optim.Optimizer) and key not in _UNUSABLE
    }
    if name.lower() not in usable:
        raise ConfigError(
            f"there is no optimizer {name!r} of torch to train with",
            fix=f"Choose one of {', '.join(sorted(usable))}",
        )
    return usable[name.lower()]


def named_optimizer(module: nn.Module, name: str) -> torch.optim.Optimizer:
    """Make an optimizer of all weights that are trained.

    Parameters
    ----------
    module
        The model.
    name
        As `class_of_optimizer` takes it.
    """
    trained = [weight for weight in module.parameters() if weight.requires_grad]
    chosen = class_of_optimizer(name)
    # A decay that a class has no word for is none.
    decay = {"weight_decay": 0.0} if "weight_decay" in signature(chosen).parameters else {}
    return chosen(trained, lr=_LEARNING_RATE, **decay)


def optimizer_of(returned: Any, model: str) -> Any:
    """Return the optimizer that `configure_optimizers` made.

    Parameters
    ----------
    returned
        What it returned: an optimizer, optimizers, dicts of them, or optimizers and schedulers.
    model
        What people call the model, for messages.

    Returns
    -------
    Any
        One optimizer, or `SeveralOptimizers`; None where it made none.

    Raises
    ------
    ConfigError
        If it returned anything else.
    """
    found = _optimizers(returned, model)
    if len(found) > 1:
        return SeveralOptimizers(found)
    return found[0] if found else None


def _optimizers(returned: Any, model: str) -> list[torch.optim.Optimizer]:
    if returned is None:
        return []
    if isinstance(returned, torch.optim.Optimizer):
        return [returned]
    if isinstance(returned, Mapping) and "optimizer" in returned:
        return _optimizers(cast("Mapping[str, Any]", returned)["optimizer"], model)
    if isinstance(returned, list | tuple):
        items = cast("Sequence[Any]", returned)
        # Lightning also takes a list of optimizers with a list of their schedulers.
        if len(items) == 2 and isinstance(items[0], list | tuple):
            items = cast("Sequence[Any]", items[0])
        return [one for item in items for one in _optimizers(item, model)]
    raise ConfigError(
        f"configure_optimizers of {model} returned {type(returned).__name__}, no optimizer",
        fix="Return an optimizer, or a list or a dict of optimizers as Lightning takes it",
    )
