"""Opening a model, whatever made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.fit.models.hugging_face import open_hugging_face
from playhead.fit.models.nemo import open_class, open_pretrained
from playhead.fit.models.own_code import open_own_code

if TYPE_CHECKING:
    from playhead.fit.model import FitModel, ModelSource
    from playhead.fit.training import Training

__all__ = ["open_model"]


def open_model(source: ModelSource, device: str, training: Training) -> FitModel:
    """Open a model and put it on a device.

    Its module may go on to another device later: batches are made on the device of the weights.

    Parameters
    ----------
    source
        Where it comes from.
    device
        Name of a device of torch, such as `cpu` or `cuda:0`.
    training
        How it is to be trained.

    Raises
    ------
    ConfigError
        If there is no such model, or it lacks what a search needs.
    FitError
        If batches cannot be made for a model of this class.
    MissingExtraError
        If the library that it is made with is not installed.
    """
    model = _opened(source, training)
    model.module.to(device)
    return model


def _opened(source: ModelSource, training: Training) -> FitModel:
    if source.kind == "pretrained":
        return open_pretrained(source, training)
    if source.kind == "module":
        return open_class(source, training)
    if source.kind == "hf":
        return open_hugging_face(source, training)
    return open_own_code(source, training)
