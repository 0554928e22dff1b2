"""Putting batches on a device."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, cast

import torch

if TYPE_CHECKING:
    from torch import nn

__all__ = ["device_of", "moved"]


def device_of(module: nn.Module) -> torch.device:
    """Return the device of the weights."""
    return next((weight.device for weight in module.parameters()), torch.device("cpu"))


def moved(batch: Any, device: torch.device) -> Any:
    """Return a batch with all of its tensors on a device.

    Parameters
    ----------
    batch
        A tensor or anything else with a method ``to(device)``; or mappings, lists, tuples and
        dataclasses of them. What is none of these stays as it is.
    device
        Where to.
    """
    if callable(getattr(batch, "to", None)):
        return batch.to(device)
    if isinstance(batch, MutableMapping):
        items = copy.copy(cast("MutableMapping[Any, Any]", batch))
        for key, value in items.items():
            items[key] = moved(value, device)
        return items
    if isinstance(batch, list | tuple):
        values = [moved(value, device) for value in cast("Any", batch)]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        fields = [field.name for field in dataclasses.fields(batch) if field.init]
        return dataclasses.replace(
            batch, **{name: moved(getattr(batch, name), device) for name in fields}
        )
    return batch
