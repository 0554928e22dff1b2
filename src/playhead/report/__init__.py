"""What a config will train on, out of its plan: no audio is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.report.figures import Figures
    from playhead.report.opening import report_figures

__all__ = ["Figures", "report_figures"]

_MODULES = {"Figures": "figures", "report_figures": "opening"}


def __getattr__(name: str) -> Any:
    # Opening a config imports torch, which takes seconds.
    if name in _MODULES:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"playhead.report.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
