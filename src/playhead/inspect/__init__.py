"""What a checkpoint says of the data: how far every source has been read. Nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.inspect.inspecting import inspect_checkpoint
    from playhead.inspect.summary import Summary

__all__ = ["Summary", "inspect_checkpoint"]


def __getattr__(name: str) -> Any:
    # What plans is loaded where somebody asks for it.
    if name == "inspect_checkpoint":
        from playhead.inspect.inspecting import inspect_checkpoint  # noqa: PLC0415

        return inspect_checkpoint
    if name == "Summary":
        from playhead.inspect.summary import Summary  # noqa: PLC0415

        return Summary
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
