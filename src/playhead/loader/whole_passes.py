"""Where an evaluation stands: passes that are all the same, each begun at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.loader.course import Course

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["WholePasses"]


class WholePasses(Course):
    """A course whose every pass is the one that was chosen, from its start to its end.

    A state is the start of that pass, whenever it is taken: whatever a framework saves in the
    middle of a validation, the next one is whole. Only a position inside a pass that somebody asks
    for (`position_after`) and loads goes on from there, once.
    """

    _length: int | None = None

    @property
    def batches_into_step(self) -> int:
        """None: a state is the start of a pass."""
        return 0

    def length(self) -> int:
        """How many batches a pass gives this rank; what is left of one that was gone on with."""
        run = self.run
        if self.is_restored or (run is not None and not _is_start(run.start)):
            return super().length()
        length = self._length
        if length is None:
            steps: int = self.planning.steps_left(self.fresh_position())
            self._length = length = steps * self.batches_per_step
        return length

    def choose_pass(self, number: int) -> None:
        """Choose the pass that comes next, and all after it; see `Loader.set_epoch`."""
        before = self._next_pass
        super().choose_pass(number)
        if self._next_pass != before:
            self._length = None

    def state(self) -> Any:
        """The position that a state holds which is taken now: the start of a pass."""
        return self.start()

    def load(self, state: Mapping[str, Any], *, reseed: bool) -> tuple[str, ...]:
        """Choose the pass of a state, and go on inside it if the state is; see `Course.load`."""
        position = self.planning.position_of(state)
        self.choose_pass(position.pass_)
        if _is_start(position):
            # Nothing of it was evaluated: the data may have changed, and ranks may be others.
            return ()
        notes = super().load(state, reseed=reseed)
        self._length = None
        if _is_start(self._restored):
            # The pass of the state is over.
            self._restored = None
        return notes

    def _begin(self, position: Any) -> None:
        super()._begin(position)
        self._next_pass = position.pass_

    def _position_of_pass(self, pass_: int, before: Any) -> Any:
        self._steps = 0
        return super()._position_of_pass(pass_, before)


def _is_start(position: Any) -> bool:
    # Every pass counts its steps from 0, whichever of the passes it is.
    return position.step == 0
