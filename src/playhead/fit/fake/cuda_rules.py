"""The rules of CUDA on tensors of a CPU, as far as they make a difference to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import torch
from torch.nn import functional
from torch.utils._pytree import tree_map_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from playhead.fit.fake.attention import Attention

__all__ = ["cuda_rules"]

_ATEN = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)
# What autocast on CUDA computes in float32 and autocast on a CPU does not.
_IN_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__
    __rpow__ square softplus layer_norm native_layer_norm rms_norm group_norm cosine_similarity
    poisson_nll_loss cosine_embedding_loss nll_loss hinge_embedding_loss kl_div l1_loss
    smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
    triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
    logsumexp interpolate
"""
# What it gives a result in float32, where nobody asks for another dtype.
_TO_FLOAT32 = "prod cumprod cumsum sum"
_INSIDE_ATTENTION = ("scaled_dot_product_attention", "softmax", "dropout")
_SOFTMAX = {"softmax": _ATEN._softmax, "log_softmax": _ATEN._log_softmax}  # noqa: SLF001  (no other names)


def cuda_rules(attention: Attention) -> dict[Any, Callable[..., Any]]:
    """Return what stands in for functions of torch, so that they keep what they keep on CUDA.

    Those are the attention kernels, dropout (which keeps a mask of one byte an element), and what
    autocast computes in float32. The other operators keep the same on both.

    Parameters
    ----------
    attention
        Computes attention.
    """
    table: dict[Any, Callable[..., Any]] = {
        functional.scaled_dot_product_attention: attention,
        functional.dropout: _dropout,
        torch.dropout: _dropout,
        functional.cross_entropy: _cross_entropy,
    }
    for name in _IN_FLOAT32.split():
        table.update((func, _in_float32(func)) for func in _named(name))
    for name in _TO_FLOAT32.split():
        table.update((func, _to_float32(func)) for func in _named(name))
    for name, fused in _SOFTMAX.items():
        table.update((func, _softmax(func, fused)) for func in _named(name))
    # It is made of others, which it calls by their names.
    table[functional.multi_head_attention_forward] = _with_names(
        functional.multi_head_attention_forward,
        {name: table[getattr(functional, name)] for name in _INSIDE_ATTENTION},
    )
    return table


def _named(name: str) -> list[Callable[..., Any]]:
    spaces = (torch, torch.Tensor, functional, torch.special)
    return [getattr(space, name) for space in spaces if hasattr(space, name)]


def _with_names(
    func: Callable[..., Any], names: dict[str, Callable[..., Any]]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with patch.multiple(functional, **cast("Any", names)):
            return func(*args, **kwargs)

    return call


def _in_float32(func: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return func(*args, **kwargs)
        with torch.autocast("cpu", enabled=False):
            args, kwargs = tree_map_only(torch.Tensor, _widened, (args, kwargs))
            return func(*args, **kwargs)

    return call


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in _HALF else tensor


def _to_float32(func: Callable[..., Any]) -> Callable[..., Any]:
    def call(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        if torch.is_autocast_enabled("cpu") and tensor.dtype in _HALF:
            kwargs.setdefault("dtype", torch.float32)
        return func(tensor, *args, **kwargs)

    return call


def _softmax(func: Callable[..., Any], fused: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        tensor: Tensor,
        dim: int | None = None,
        *args: Any,
        dtype: torch.dtype | None = None,
        **kwargs: Any,
    ) -> Any:
        if dtype is None and torch.is_autocast_enabled("cpu") and tensor.dtype in _HALF:
            dtype = torch.float32
        # From float16 to float32 in one: no copy is made in between.
        if dtype is torch.float32 and tensor.dtype is torch.float16 and dim is not None:
            return fused(tensor, dim, half_to_float=True)
        return func(tensor, dim, *args, dtype=dtype, **kwargs)

    return call


def _dropout(
    input: Tensor,  # noqa: A002  (the name is torch's)
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    train: bool | None = None,
) -> Tensor:
    training = training if train is None else train
    if inplace:
        return torch.dropout_(input, p, training)
    if not training or not 0 < p < 1:
        return torch.dropout(input, p, training)
    return torch.native_dropout(input, p, train=True)[0]


def _cross_entropy(  # noqa: PLR0917  (the signature is torch's)
    input: Tensor,  # noqa: A002  (the name is torch's)
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    rest: dict[str, Any] = {
        "size_average": size_average,
        "ignore_index": ignore_index,
        "reduce": reduce,
    }
    if not torch.is_autocast_enabled("cpu") or target.is_floating_point():
        with torch.autocast("cpu", enabled=False):
            return functional.cross_entropy(
                input, target, weight, reduction=reduction, label_smoothing=label_smoothing, **rest
            )
    classes = 0 if input.ndim == 1 else 1
    with torch.autocast("cpu", enabled=False):
        # Logarithms keep the dtype of their input; what is chosen of them is chosen in float32.
        logs = torch.log_softmax(input, classes)
        loss = functional.nll_loss(_widened(logs), target, weight, reduction=reduction, **rest)
        if not label_smoothing:
            return loss
        smooth = -torch.sum(logs, classes, dtype=torch.float32)
        smooth = smooth.masked_fill(target == ignore_index, 0.0)
        if reduction != "none":
            smooth = smooth.mean() if reduction == "mean" else smooth.sum()
        return (1 - label_smoothing) * loss + label_smoothing / input.shape[classes] * smooth
