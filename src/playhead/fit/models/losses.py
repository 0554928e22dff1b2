"""The loss in what a training step returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch

from playhead.errors import FitError

__all__ = ["loss_of"]


def loss_of(returned: Any, model: str) -> torch.Tensor:
    """Return the loss, one number.

    Parameters
    ----------
    returned
        What a training step returned: the loss, or a mapping with the key `loss`.
    model
        What people call the model, for messages.

    Raises
    ------
    FitError
        If there is no loss in it.
    """
    loss = returned
    if isinstance(returned, Mapping):
        loss = cast("Mapping[str, Any]", returned).get("loss")
    if not isinstance(loss, torch.Tensor):
        raise FitError(
            f"training_step of {model} returned {type(returned).__name__}, in which is no loss",
            fix="Return the loss, or a mapping with the key `loss`",
        )
    return loss if loss.ndim == 0 else loss.sum()
