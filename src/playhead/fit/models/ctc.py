"""CTC of made-up batches: labels that a model can emit, and the loss."""

from __future__ import annotations

import torch
from torch.nn import functional

__all__ = ["ctc_labels", "ctc_loss"]


def ctc_labels(
    batch_size: int, length: int, vocabulary: int, blank: int, device: torch.device
) -> torch.Tensor:
    """Make random labels without blanks and, where there are labels enough, without repetitions.

    A repetition takes a frame more, for the blank between: without them, as many labels as there
    are frames can be emitted.

    Parameters
    ----------
    batch_size, length
        Shape of the labels.
    vocabulary
        How many labels there are, with the blank.
    blank
        The label that no text has.
    device
        Where they are to be.

    Returns
    -------
    Tensor
        Labels of shape ``(batch_size, length)``, int64.
    """
    others = max(1, vocabulary - 1)
    steps = torch.randint(1, max(2, others), (batch_size, length), device=device)
    labels = steps.cumsum(dim=1) % others
    return labels + (labels >= blank)


def ctc_loss(logits: torch.Tensor, labels: torch.Tensor, blank: int) -> torch.Tensor:
    """Return the CTC loss of samples that are all as long as the batch.

    Parameters
    ----------
    logits
        Of shape ``(batch, frames, vocabulary)``.
    labels
        Of shape ``(batch, labels)``. Samples with more than fit into the frames count nothing.
    blank
        The label that no text has.
    """
    batch_size, frames, _ = logits.shape
    log_probabilities = functional.log_softmax(logits, dim=-1, dtype=torch.float32)
    # cuDNN takes no labels of more than 256 tokens; the kernel of torch takes any.
    with torch.backends.cudnn.flags(enabled=False):
        return functional.ctc_loss(
            log_probabilities.transpose(0, 1),
            labels,
            torch.full((batch_size,), frames, dtype=torch.int64, device=logits.device),
            torch.full((batch_size,), labels.shape[1], dtype=torch.int64, device=logits.device),
            blank=blank,
            zero_infinity=True,
        )
