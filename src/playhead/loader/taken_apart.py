"""Who would take the state of a loader apart, and not put it together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PositionError

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["refuse_to_be_taken_apart"]

_DCP = "torch.distributed.checkpoint"


def refuse_to_be_taken_apart(asker: FrameType | None) -> None:
    """Refuse a state to `torch.distributed.checkpoint`, whether it saves or loads.

    It saves nested states in parts, and loads those parts alone that the present state has as well.

    Parameters
    ----------
    asker
        The frame that asks for the state; None where it cannot be told.

    Raises
    ------
    PositionError
        When it is a frame of `torch.distributed.checkpoint`.
    """
    name = "" if asker is None else str(asker.f_globals.get("__name__"))
    if name == _DCP or name.startswith(f"{_DCP}."):
        raise PositionError(
            "torch.distributed.checkpoint would save this loader in parts, and load only some of"
            " them again",
            fix='Write {"loader": LoaderPosition(loader)}, with'
            " `from playhead.integrations.dcp import LoaderPosition`",
        )
