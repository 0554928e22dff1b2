"""Who asks for the state of a loader and would come to harm with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import PositionError

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["refuse_to_be_taken_apart", "refuse_to_guess"]

_DCP = "torch.distributed.checkpoint"
# Modules that save the states of loaders of which they have fetched more than was trained on, and
# the module whose callback follows training there.
_FETCH_AHEAD = {
    "lightning.pytorch.utilities.combined_loader": "lightning",
    "pytorch_lightning.utilities.combined_loader": "pytorch_lightning",
}


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


def refuse_to_guess(asker: FrameType | None) -> None:
    """Refuse a framework that fetches ahead of training, where nobody follows that.

    Parameters
    ----------
    asker
        The frame that asks for a state, or loads one; None where it cannot be told.

    Raises
    ------
    PositionError
        With the line to add.
    """
    module = None if asker is None else _FETCH_AHEAD.get(str(asker.f_globals.get("__name__")))
    if module is not None:
        raise PositionError(
            "Lightning keeps the position of the training data by itself, and fetches batches"
            " before they are trained on: a state of what was fetched would skip some",
            fix=f"Write `from playhead.integrations.{module} import PlayheadCallback`, and add"
            " PlayheadCallback() to the callbacks of the Trainer",
        )
