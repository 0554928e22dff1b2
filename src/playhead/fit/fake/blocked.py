"""Why a model cannot run on fake tensors."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["reason"]

_TORCH = str(Path(torch.__file__).parent)
_PLAYHEAD = str(Path(__file__).parents[2])
_STANDARD = sysconfig.get_path("stdlib")
_SITE = sysconfig.get_path("purelib")


def reason(error: BaseException, module: nn.Module) -> str:
    """Say in one line what blocks a model: the operator, the module, the line of its code.

    Parameters
    ----------
    error
        What was raised while it ran.
    module
        The model.
    """
    func = getattr(error, "func", None)
    said = str(error).strip().partition("\n")[0]
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if func is not None:
        what = f"{func.name()} needs values that fake tensors do not have"
    places = [
        place
        for place in (_module(error.__traceback__, module), _line(error.__traceback__))
        if place is not None
    ]
    return " in ".join([what, *places])


def _module(trace: TracebackType | None, module: nn.Module) -> str | None:
    names = {id(part): name for name, part in module.named_modules()}
    innermost = None
    for frame, _ in traceback.walk_tb(trace):
        part = frame.f_locals.get("self")
        if isinstance(part, nn.Module) and names.get(id(part)):
            innermost = f"{names[id(part)]} ({type(part).__name__})"
    return innermost


def _line(trace: TracebackType | None) -> str | None:
    innermost = None
    for frame, line in traceback.walk_tb(trace):
        path = frame.f_code.co_filename
        inside = path.startswith((_TORCH, _PLAYHEAD))
        if not inside and (path.startswith(_SITE) or not path.startswith(_STANDARD)):
            innermost = f"{path}:{line}"
    return innermost
