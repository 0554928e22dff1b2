"""Functions of torch put in the place of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["StandIns"]


class StandIns(TorchFunctionMode):
    """Call other functions in the place of some of torch.

    Parameters
    ----------
    table
        What stands in for what, with the same arguments.
    """

    def __init__(self, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._table = table

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in {torch.Tensor.backward, torch.autograd.backward}:
            # Checkpointed layers run once more in it: what they call has its stand-ins as well.
            backward = torch.autograd.backward if func is not torch.Tensor.backward else _backward
            with patch.object(torch.autograd, "has_torch_function", lambda _: False), self:
                return backward(*args, **kwargs)
        return self._table.get(func, func)(*args, **kwargs)


def _backward(
    loss: torch.Tensor,
    gradient: torch.Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    torch.autograd.backward(loss, gradient, retain_graph, create_graph, inputs=inputs)
