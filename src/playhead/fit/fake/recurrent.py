"""Recurrent layers, whose kernels keep more than fake tensors know of, or take a step at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

__all__ = ["RecurrentLayers", "RecurrentTooLongError", "refusing_long", "whole_layers"]

_LAYER = torch.ops.aten.mkldnn_rnn_layer.default
# Bytes that oneDNN keeps for each number of an LSTM's output, as measured; a little less at most.
_KEPT = {torch.float32: 64, torch.bfloat16: 45, torch.float16: 45}
# As numbers: its four gates, and twelve more for its two states and their gradients.
_NUMBERS_OF_LSTM = 16
_NUMBERS_OF_STATE = 6
# Gates (with what a GRU's reset gate is applied to) and states.
_KINDS = {torch.lstm: (4, 2), torch.gru: (4, 1), torch.rnn_tanh: (1, 1), torch.rnn_relu: (1, 1)}
# Steps computed one by one, which take a second or two.
_MOST_STEPS = 100


class RecurrentTooLongError(Exception):
    """Recurrent layers would be computed step by step for too long."""


class RecurrentLayers(TorchDispatchMode):
    """Let a fake LSTM keep its gates and states, about as many bytes as a real one on a CPU.

    A fake one keeps none.

    Attributes
    ----------
    calls
        How many layers ran.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not _LAYER or result[-1].numel():
            return result
        self.calls += 1
        output, *states, workspace = result
        kept = output.numel() * _KEPT.get(output.dtype, 64)
        return (output, *states, workspace.new_empty(kept, dtype=torch.uint8))


def whole_layers(count: Callable[[], None]) -> dict[Any, Callable[..., Any]]:
    """Return what stands in for LSTMs, GRUs and plain RNNs, to keep what cuDNN keeps of them.

    Fake ones would be computed step by step, in Python: here all steps are one operator, which
    costs the same at any length. It keeps its arguments, its output and a reserve. What cuDNN has
    in that is not known. It is taken to be what oneDNN keeps on a CPU: for each layer, direction
    and step the gates (four of an LSTM; of a GRU three, and what the reset gate is applied to; one
    of a plain RNN) and six numbers for each state, which for an LSTM are the 64 bytes that were
    measured for a number of float32. Dropout keeps one number more. Under autocast the weights are
    copied, as cuDNN has them.

    Parameters
    ----------
    count
        Is called for each call of such layers.
    """

    def stand_in(func: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count()
            return _computed(func, _Call.of(*args, **kwargs))

        return call

    return {func: stand_in(func) for func in _KINDS}


def refusing_long() -> dict[Any, Callable[..., Any]]:
    """Return what stands in for layers that a CPU computes step by step: short ones alone pass.

    They are GRUs, plain RNNs, and LSTMs with projections or of packed sequences.

    Raises
    ------
    RecurrentTooLongError
        By what is returned, where there are too many steps.
    """

    def stand_in(func: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            asked = _Call.of(*args, **kwargs)
            is_fused = func is torch.lstm and not asked.is_packed and not asked.is_projected
            if not is_fused and asked.steps > _MOST_STEPS:
                raise RecurrentTooLongError(
                    f"recurrent layers are too long to predict on a CPU, which computes them step "
                    f"by step: {asked.steps} steps, {_MOST_STEPS} at most"
                )
            return func(*args, **kwargs)

        return call

    return {func: stand_in(func) for func in _KINDS}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """What recurrent layers are called with."""

    inputs: Tensor
    """Of all samples (steps, samples, numbers), or packed (steps of all samples, numbers)."""
    states: tuple[Tensor, ...]
    """Before the first step (layers and directions, samples, numbers)."""
    weights: Sequence[Tensor]
    """Of all layers."""
    layers: int
    """Layers, each of both directions if there are two."""
    directions: int
    """1 or 2."""
    drops: bool
    """Whether there is dropout between layers."""
    train: bool
    """Whether a backward pass may follow."""
    each: int
    """Steps of each layer and direction."""
    is_packed: bool
    """Whether samples of several lengths are packed."""

    @classmethod
    def of(cls, inputs: Tensor, second: Any, third: Any, *rest: Any) -> _Call:
        """Read the arguments of `torch.gru` and its like, of both forms."""
        # Packed: the number of samples of each step, the states, the weights.
        is_packed = not isinstance(rest[0], bool)
        states, weights, rest = (third, rest[0], rest[1:]) if is_packed else (second, third, rest)
        _, layers, dropout, train, bidirectional, *batch_first = rest
        steps = 1 if any(batch_first) else 0
        return cls(
            inputs=inputs,
            states=(states,) if isinstance(states, torch.Tensor) else tuple(states),
            weights=weights,
            layers=layers,
            directions=2 if bidirectional else 1,
            drops=train and dropout > 0 and layers > 1,
            train=train,
            each=second.numel() if is_packed else inputs.shape[steps],
            is_packed=is_packed,
        )

    @property
    def is_projected(self) -> bool:
        return len({state.shape[-1] for state in self.states}) > 1

    @property
    def steps(self) -> int:
        """Steps of all layers and directions."""
        return self.each * self.layers * self.directions


def _computed(func: Any, asked: _Call) -> tuple[Any, ...]:
    device = asked.inputs.device.type
    tensors = [asked.inputs, *asked.states, *asked.weights]
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        tensors = [each.to(dtype) if each.dtype is torch.float32 else each for each in tensors]
    gates, states = _KINDS[func]
    hidden = asked.states[-1].shape[-1]
    rows = asked.inputs.shape[:-1].numel() * asked.directions
    numbers = rows * hidden * asked.layers * (gates + _NUMBERS_OF_STATE * states)
    if asked.drops:
        numbers += rows * hidden * (asked.layers - 1)
    bytes_kept = numbers * _bytes_of_number(tensors[0].dtype)
    is_kept = asked.train and torch.is_grad_enabled()
    width = asked.states[0].shape[-1] * asked.directions
    with torch.autocast(device, enabled=False):
        return _Layers.apply(states, width, int(bytes_kept) if is_kept else 0, *tensors)


def _bytes_of_number(dtype: torch.dtype) -> float:
    return _KEPT[dtype] / _NUMBERS_OF_LSTM if dtype in _KEPT else dtype.itemsize


class _Layers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: int, width: int, kept: int, *tensors: Tensor) -> Any:
        inputs, *others = tensors
        output = inputs.new_empty((*inputs.shape[:-1], width))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, output, inputs.new_empty(kept, dtype=torch.uint8))
        return (output, *(torch.empty_like(state) for state in others[:states]))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        del gradients
        *tensors, _, _ = ctx.saved_tensors
        needed = ctx.needs_input_grad[3:]
        return (
            *(None,) * 3,
            *(
                torch.empty_like(tensor) if is_needed else None
                for tensor, is_needed in zip(tensors, needed, strict=True)
            ),
        )
