"""Models made of fake tensors."""

# All conversions of modules go through a method of theirs that is not public.
# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from __future__ import annotations

import logging
import warnings
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from torch import Tensor

    from playhead.fit.model import FitModel

__all__ = ["opened_fake", "quietly", "real_copies"]


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
    with suppress(Exception), quietly(), fake, _weights_replaced(), real_copies():
        model = open_on(device)
        model.module.to(device)
        return model
    model = open_on("cpu")
    with fake, _weights_replaced():
        model.module._apply(lambda weight: fake.from_tensor(weight).to(device))
    return model


@contextmanager
def quietly() -> Generator[None]:
    """Let torch keep to itself what it has to say of fake tensors; what fails is said once."""
    log = logging.getLogger(FakeTensorMode.__module__)
    was_disabled, log.disabled = log.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.disabled = was_disabled


def real_copies() -> AbstractContextManager[Any]:
    """Let a copy of a real tensor be real, and one of a fake tensor a fake one of the same mode.

    Both break the heap otherwise: torch fills the first with bytes that it has not, and copies the
    mode with the second, whose references to storages are given back twice.
    """
    original = torch.Tensor.__deepcopy__

    def copied(self: Tensor, memo: Any) -> Tensor:
        if not isinstance(self, FakeTensor):
            with unset_fake_temporarily():
                return original(self, memo)
        if id(self) not in memo:
            memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
        return memo[id(self)]

    return patch.object(torch.Tensor, "__deepcopy__", copied)


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

    with patch.object(nn.Module, "_apply", apply):
        yield
