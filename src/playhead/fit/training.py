"""How a model is trained, as far as its memory goes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Training"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """How a model is trained, as far as its memory goes."""

    optimizer: str = "adamw"
    """Name of an optimizer of torch, in small letters; a model that makes its own needs none."""
    dtype: str = "bfloat16"
    """Name of the dtype of autocast; float32 trains without."""
    ddp: bool = True
    """Hold one copy of the gradients, as DDP's buckets do."""
    ema: bool = False
    """Hold an average of the weights."""
    accumulate: int = 1
    """Micro-batches of an optimizer step."""
