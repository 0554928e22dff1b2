"""What the attention kernels of CUDA keep, on tensors of a CPU."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Attention", "Kernel"]

Kernel: TypeAlias = Literal["flash", "efficient", "math"]
"""A kernel of scaled dot product attention: what it keeps is linear (`flash`, `efficient`) or
quadratic (`math`) in the length."""

_ATEN = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)
# Of the kernels on CUDA.
_WIDEST_HEAD_OF_FLASH = 256
_MASK_IS_ALIGNED_TO = 16


class Attention:
    """Attention as CUDA computes it: with the kernel that it would choose.

    Flash attention takes numbers of 16 bits and no mask; the memory-efficient kernel takes the
    rest.

    Parameters
    ----------
    kernel
        The best kernel that the GPU has: `efficient` and `math` leave out those before them.

    Attributes
    ----------
    calls
        How often each kernel was chosen.
    """

    def __init__(self, kernel: Kernel = "flash") -> None:
        self.calls: Counter[Kernel] = Counter()
        self._best = kernel

    def __call__(  # noqa: PLR0917  (the signature is torch's)
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Compute attention, with the arguments of `scaled_dot_product_attention` of torch."""
        if torch.is_autocast_enabled("cpu"):
            dtype = torch.get_autocast_dtype("cpu")
            query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(dtype)
        with torch.autocast("cpu", enabled=False):
            kernel = self._chosen(query, attn_mask)
            self.calls[kernel] += 1
            if kernel == "flash":
                return _ATEN._scaled_dot_product_flash_attention(  # noqa: SLF001  (has no other name)
                    query, key, value, dropout_p, is_causal, return_debug_mask=False, scale=scale
                )[0]
            if enable_gqa:
                key, value = (
                    part.repeat_interleave(query.shape[-3] // part.shape[-3], -3)
                    for part in (key, value)
                )
            if kernel == "efficient":
                return _ATEN._scaled_dot_product_efficient_attention(  # noqa: SLF001  (likewise)
                    query,
                    key,
                    value,
                    _bias(attn_mask, query, key),
                    query.requires_grad or key.requires_grad or value.requires_grad,
                    dropout_p,
                    is_causal,
                    scale=scale,
                )[0]
            return _math(query, key, value, mask=attn_mask, dropout=dropout_p, causal=is_causal)

    def _chosen(self, query: Tensor, mask: Tensor | None) -> Kernel:
        if self._best == "math" or query.ndim != 4 or (mask is not None and mask.requires_grad):
            return "math"
        flash = (
            self._best == "flash"
            and mask is None
            and query.dtype in _HALF
            and query.shape[-1] <= _WIDEST_HEAD_OF_FLASH
        )
        return "flash" if flash else "efficient"


def _bias(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """Make of a mask what the memory-efficient kernel adds: numbers, in aligned rows."""
    if mask is None:
        return None
    mask = _numbers(mask, query.dtype)
    if surplus := -mask.shape[-1] % _MASK_IS_ALIGNED_TO:
        mask = functional.pad(mask, (0, surplus))[..., :-surplus]
    return mask.expand(*query.shape[:-1], key.shape[-2])


def _math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
) -> Tensor:
    """Compute attention step by step, as torch does where no other kernel takes it."""
    dtype = query.dtype
    wide, long, held = (part.float() if dtype in _HALF else part for part in (query, key, value))
    scores = (wide * 1.0) @ (long.transpose(-2, -1) * 1.0)
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if mask is not None:
        scores.add_(_numbers(mask, scores.dtype))
    # One name for all: what nobody needs again goes at once, as it does in torch.
    scores = torch.softmax(scores, -1)
    if dropout:
        scores = torch.native_dropout(scores, dropout, train=True)[0]
    return (scores @ held).to(dtype)


def _numbers(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype is not torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))
