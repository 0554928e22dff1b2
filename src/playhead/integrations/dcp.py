"""The position of a loader in a checkpoint of `torch.distributed.checkpoint`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead.errors import PositionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.loader import Loader

__all__ = ["LoaderPosition"]

_KEY = "position"


class LoaderPosition:
    """What goes into a checkpoint of `torch.distributed.checkpoint` for a loader: one object.

    Nested states are taken apart there, and loading fills in no more than the parts that the
    present state has as well: the position of a loader that has begun has others than that of a
    fresh one. Here it is one text, the same on every rank, of which one rank writes a copy and
    every rank reads it, on any number of ranks.

    Parameters
    ----------
    loader
        The loader.
    reseed
        Take the config's seed from the next window on, where the position has another; see
        `Loader.load_state_dict`.

    Examples
    --------
    Beside a model and its optimizer::

        state = {"model": model, "optimizer": optimizer, "loader": LoaderPosition(loader)}
        dcp.save(state, checkpoint_id="checkpoints/step-1000")
        dcp.load(state, checkpoint_id="checkpoints/step-1000")
    """

    def __init__(self, loader: Loader, *, reseed: bool = False) -> None:
        self._loader = loader
        self._reseed = reseed

    def state_dict(self) -> dict[str, str]:
        """The position after the last whole step, as one text.

        It is empty where nothing was handed out and no seed has been drawn yet, which is what a
        fresh loader with `seed: trng` has for a position.
        """
        if not self._loader.has_position:
            return {_KEY: ""}
        return {_KEY: json.dumps(self._loader.state_dict(), allow_nan=False)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a position that was saved on any number of ranks.

        Raises
        ------
        PositionError
            When it is none, or not one that the loader can go on from. Or when it is the beginning
            of data whose seed was yet to be drawn, and this loader has left that.
        """
        text = state.get(_KEY)
        if not isinstance(text, str):
            raise PositionError(
                "this part of the checkpoint is not the position of a loader",
                fix="Load it under the key under which a LoaderPosition was saved",
            )
        if not text and self._loader.course.has_begun:
            raise PositionError(
                "the checkpoint was saved before the first batch, with its seed yet to be drawn,"
                " and this loader has begun",
                fix="Load it into a loader that nobody has iterated",
            )
        if text:
            self._loader.load_state_dict(json.loads(text), reseed=self._reseed)
