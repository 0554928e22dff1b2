"""Recurrent layers, whose kernels keep more than fake tensors know of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RecurrentLayers"]

_LAYER = torch.ops.aten.mkldnn_rnn_layer.default
# Bytes that oneDNN keeps for each number of the output, as measured; a little less at most.
_KEPT = {torch.float32: 64, torch.bfloat16: 45, torch.float16: 45}


class RecurrentLayers(TorchDispatchMode):
    """Let a fake LSTM keep its gates and states, about as many bytes as a real one on a CPU.

    A fake one keeps none. What cuDNN keeps is not known; it is taken to be as much.

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
