"""Norms whose fake results have other dtypes than their real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = ["RealNorms"]

_ATEN = torch.ops.aten
# Where they stand among the arguments.
_WEIGHTS = {_ATEN.native_layer_norm.default: 2, _ATEN.native_group_norm.default: 1}


class RealNorms(TorchDispatchMode):
    """Give the results of norms on a CPU the dtypes that real ones have.

    They differ where an input of 16 bits meets weights in float32, as it does under autocast:
    statistics are in float32 then, and the gradient of a group norm's input is of its dtype.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        weight = args[_WEIGHTS[func]] if func in _WEIGHTS else None
        if weight is not None:
            output, *statistics = result
            return (output, *(_like(part, weight.dtype) for part in statistics))
        if func is _ATEN.native_group_norm_backward.default and result[0] is not None:
            gradient, *others = result
            return (_like(gradient, args[1].dtype), *others)
        return result


def _like(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor if tensor.dtype is dtype else torch.empty_like(tensor, dtype=dtype)
