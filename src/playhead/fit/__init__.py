"""Batch sizes that fit: the largest batch that each length bucket can take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.fit.rehearsal import Rehearsal, rehearse

__all__ = ["Rehearsal", "rehearse"]


def __getattr__(name: str) -> Any:
    # The search needs no torch, which takes seconds to import; a rehearsal does.
    if name in __all__:
        from playhead.fit import rehearsal  # noqa: PLC0415

        return getattr(rehearsal, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
