"""Which of the batches that were handed out have been trained on."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from playhead.errors import PositionError

if TYPE_CHECKING:
    from playhead.loader.fusion import FusedRun
    from playhead.loader.run import Run

__all__ = ["Place", "Trained"]

Place = tuple["Run | FusedRun", int]
"""A run, and a number of batches of it."""


class Trained:
    """Counts batches that are trained on, where a framework fetches some ahead of that.

    Batches are trained on in the order in which they are handed out, passes included.

    Parameters
    ----------
    place
        Where training stands now; None where nothing was handed out yet.
    """

    def __init__(self, place: Place | None) -> None:
        self._place = place
        self._ahead: deque[Place] = deque()

    @property
    def place(self) -> Place | None:
        """After the last batch that was trained on; None before anything was handed out."""
        return self._place

    @property
    def ahead(self) -> int:
        """Batches that were handed out and have not been trained on."""
        return len(self._ahead)

    def hand_out(self, run: Run | FusedRun, batches: int) -> None:
        """Note that a batch is handed out, the last of the first `batches` of a run."""
        if self._place is None:
            self._place = run, batches - 1
        self._ahead.append((run, batches))

    def mark(self, batches: int) -> list[Place]:
        """Note that so many more batches were trained on, and return where each of them ends.

        Raises
        ------
        PositionError
            When fewer were handed out.
        """
        if not 0 <= batches <= len(self._ahead):
            raise PositionError(
                f"{batches} more batches are said to be trained on, and"
                f" {len(self._ahead)} were handed out since",
                fix="Mark each batch once, after its backward pass",
            )
        marked = [self._ahead.popleft() for _ in range(batches)]
        if marked:
            self._place = marked[-1]
        return marked

    def restart(self) -> None:
        """Count from what is handed out next."""
        self._place = None
        self._ahead.clear()
