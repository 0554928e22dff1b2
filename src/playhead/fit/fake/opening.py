"""Models made of fake tensors."""

# All conversions of modules go through a method of theirs that is not public.
# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from torch import Tensor
    from torch._subclasses.fake_tensor import FakeTensorMode

    from playhead.fit.model import FitModel

__all__ = ["opened_fake"]


def opened_fake(open_on: Callable[[str], FitModel], device: str, fake: FakeTensorMode) -> FitModel:
    """Open a model whose weights have shapes and no bytes.

    One that cannot be made of fake tensors is made of real ones, on the CPU, and emptied.

    Parameters
    ----------
    open_on
        Opens the model on the device of that name.
    device
        Name of the device on which its tensors are to seem.
    fake
        The mode of the fake tensors.

    Raises
    ------
    Exception
        Whatever opening it on the CPU raises.
    """
    # Whatever fake tensors cannot do, real ones may; whatever they cannot either is an error.
    with suppress(Exception), warnings.catch_warnings(), fake, _weights_replaced():
        # Of fake tensors; what else there is to warn of, training warns of.
        warnings.simplefilter("ignore")
        model = open_on(device)
        model.module.to(device)
        return model
    model = open_on("cpu")
    with fake, _weights_replaced():
        model.module._apply(lambda weight: fake.from_tensor(weight).to(device))
    return model


@contextmanager
def _weights_replaced() -> Generator[None]:
    """Let modules take new weights where they would exchange the content of the old ones.

    Fake tensors cannot be exchanged. Weights that are one stay one.
    """
    # With what it is made by and of, so that neither goes, and no other takes its identity.
    made: dict[tuple[int, int], tuple[Any, nn.Parameter, nn.Parameter]] = {}

    def replaced(fn: Callable[[Tensor], Tensor], weight: nn.Parameter) -> nn.Parameter:
        key = id(fn), id(weight)
        if key not in made:
            with torch.no_grad():
                new = fn(weight)
            new = weight if new is weight else nn.Parameter(new, weight.requires_grad)
            made[key] = fn, weight, new
        return made[key][2]

    def apply(self: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, weight in self._parameters.items():
            if weight is not None:
                self._parameters[name] = replaced(fn, weight)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    original = nn.Module._apply
    nn.Module._apply = apply
    try:
        yield
    finally:
        nn.Module._apply = original
