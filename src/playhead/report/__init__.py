"""What a config will train on, out of its plan: no audio is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.report.explaining import explain_step
    from playhead.report.figures import Figures
    from playhead.report.opening import report_figures
    from playhead.report.page.writing import write_report
    from playhead.report.step import StepContents

__all__ = ["Figures", "StepContents", "explain_step", "report_figures", "write_report"]

_MODULES = {
    "Figures": "figures",
    "StepContents": "step",
    "explain_step": "explaining",
    "report_figures": "opening",
    "write_report": "page.writing",
}


def __getattr__(name: str) -> Any:
    # Opening a config imports torch, which takes seconds.
    if name in _MODULES:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"playhead.report.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
