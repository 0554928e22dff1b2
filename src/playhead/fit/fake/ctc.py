"""CTC's loss, whose memory depends on lengths that fake tensors do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

__all__ = ["ctc_loss"]

_MEAN = 1
_HALF = (torch.float16, torch.bfloat16)


def ctc_loss(  # noqa: PLR0917  (the signature is torch's)
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Hold what `torch.nn.functional.ctc_loss` holds, and compute nothing.

    It keeps the probabilities and, of each frame, the states of its forward pass: one for each
    label, and one blank more. Its gradient is of the size of the probabilities.

    Parameters
    ----------
    log_probs
        Logarithms of probabilities (frames, samples, classes) or (frames, classes).
    targets
        Labels (samples, labels), or of all samples one after the other.
    input_lengths, target_lengths
        Lengths of both.
    blank, reduction, zero_infinity
        As in `torch.nn.functional.ctc_loss`; they cost no memory.
    """
    del input_lengths, blank
    # There is none for numbers of 16 bits: autocast on a CPU makes a copy, CUDA's wants one.
    wide = log_probs.float() if log_probs.dtype in _HALF else log_probs
    batched = wide if wide.ndim == 3 else wide[:, None]
    labels = _most_labels(targets, target_lengths, batched.shape[1])
    losses: Tensor = _Losses.apply(batched, 2 * labels + 1)  # pyright: ignore[reportAssignmentType]
    if zero_infinity:
        losses = torch.where(losses == float("inf"), 0.0, losses)
    if reduction in {"none", 0}:
        return losses if log_probs.ndim == 3 else losses[0]
    return losses.mean() if reduction in {"mean", _MEAN} else losses.sum()


def _most_labels(targets: Tensor, lengths: Tensor | Sequence[int], samples: int) -> int:
    if not isinstance(lengths, torch.Tensor):
        return max(lengths, default=0)
    try:
        return int(lengths.max().item())
    except DataDependentOutputException:
        # Samples of a batch that is tried are of one length.
        return targets.shape[1] if targets.ndim == 2 else -(-targets.numel() // samples)


class _Losses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_probs: Tensor, states: int) -> Tensor:
        frames, samples, _ = log_probs.shape
        losses = log_probs.new_empty(samples)
        ctx.save_for_backward(log_probs, log_probs.new_empty(samples, frames, states), losses)
        return losses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        del gradients
        log_probs, *_ = ctx.saved_tensors
        return torch.empty_like(log_probs), None
