"""Whose turn it is: which parts of a fused loader a step is made of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

from playhead.errors import PositionError
from playhead.plan.keyed import key, text_word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Randomized", "RoundRobin", "TurnRule", "Turns", "Zip"]

_TURN = text_word("turn of a step")


class TurnRule(Protocol):
    """How parts take turns."""

    def ends_with(self, finite: Sequence[bool]) -> bool:
        """Whether a pass ends, by which of the parts end."""
        ...

    def length(self, left: Sequence[int | None]) -> int:
        """How many steps a pass has, by how many each part has; None of those without an end."""
        ...

    def shares(self, num_parts: int) -> list[float]:
        """What share of the steps each part has while all go on."""
        ...

    def candidates(self, num_parts: int) -> Sequence[int]:
        """Which parts may ever have a turn."""
        ...

    def taken(self, seed: int, pass_: int, step: int, live: Sequence[int]) -> tuple[int, ...]:
        """The parts that a step is made of.

        Parameters
        ----------
        seed, pass_, step
            Which step it is, counted from the start of its pass.
        live
            Which parts still have a step, ascending, out of the candidates.

        Returns
        -------
        tuple[int, ...]
            None where the pass is over.
        """
        ...


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Each part in turn; what ends drops out.

    Examples
    --------
    >>> [RoundRobin().taken(7, 0, step, [0, 2]) for step in range(3)]
    [(0,), (2,), (0,)]
    """

    def ends_with(self, finite: Sequence[bool]) -> bool:
        """A pass ends when the last part does."""
        return all(finite)

    def length(self, left: Sequence[int | None]) -> int:
        """The steps of all parts together."""
        return sum(steps or 0 for steps in left)

    def shares(self, num_parts: int) -> list[float]:
        """The same for each."""
        return [1 / num_parts] * num_parts

    def candidates(self, num_parts: int) -> Sequence[int]:
        """All of them."""
        return range(num_parts)

    def taken(self, seed: int, pass_: int, step: int, live: Sequence[int]) -> tuple[int, ...]:  # noqa: ARG002 - nothing is random
        """The part whose turn it is."""
        return (live[step % len(live)],) if live else ()


@dataclass(frozen=True, slots=True)
class Randomized:
    """A part by a keyed draw, in proportion to weights; what ends drops out.

    Examples
    --------
    >>> rule = Randomized((1, 0, 3))
    >>> sorted({rule.taken(7, 0, step, rule.candidates(3)) for step in range(99)})
    [(0,), (2,)]
    """

    weights: tuple[int, ...]
    """Weight of each part, at least 0."""

    def ends_with(self, finite: Sequence[bool]) -> bool:
        """A pass ends when the last part that is ever drawn does."""
        return all(finite[part] for part in self.candidates(len(finite)))

    def length(self, left: Sequence[int | None]) -> int:
        """The steps of all parts that are ever drawn together."""
        return sum(left[part] or 0 for part in self.candidates(len(left)))

    def shares(self, num_parts: int) -> list[float]:
        """In proportion to the weights."""
        return [weight / sum(self.weights) for weight in self.weights[:num_parts]]

    def candidates(self, num_parts: int) -> Sequence[int]:
        """Those with a weight."""
        return [part for part in range(num_parts) if self.weights[part]]

    def taken(self, seed: int, pass_: int, step: int, live: Sequence[int]) -> tuple[int, ...]:
        """The part that is drawn for the step."""
        if not live:
            return ()
        ends = list(accumulate(self.weights[part] for part in live))
        point = key(seed, _TURN, pass_, step) * ends[-1] >> 64
        return (next(part for part, end in zip(live, ends, strict=True) if point < end),)


@dataclass(frozen=True, slots=True)
class Zip:
    """A step of every part together; the pass ends with the first part that ends.

    Parameters
    ----------
    num_parts
        How many there are.

    Examples
    --------
    >>> Zip(2).taken(7, 0, 5, [0, 1]), Zip(2).taken(7, 0, 6, [1])
    ((0, 1), ())
    """

    num_parts: int

    def ends_with(self, finite: Sequence[bool]) -> bool:
        """A pass ends when any part does."""
        return any(finite)

    def length(self, left: Sequence[int | None]) -> int:
        """The steps of the shortest."""
        return min(steps for steps in left if steps is not None)

    def shares(self, num_parts: int) -> list[float]:
        """The same for each: it has a micro-batch of its own in every one."""
        return [1 / num_parts] * num_parts

    def candidates(self, num_parts: int) -> Sequence[int]:
        """All of them."""
        return range(num_parts)

    def taken(self, seed: int, pass_: int, step: int, live: Sequence[int]) -> tuple[int, ...]:  # noqa: ARG002 - nothing is random
        """All parts, as long as all go on."""
        return tuple(live) if len(live) == self.num_parts else ()


class _Turn(NamedTuple):
    """What stands before a step, and what it is made of; empty at the end of a pass."""

    before: tuple[int, ...]
    taken: tuple[int, ...]


class Turns:
    """The turns of a run, computed as far as somebody asks; nothing in it moves.

    Parameters
    ----------
    num_parts
        How many parts there are.
    take
        Gives the parts of a step, from its number in the run and how many steps each part had
        before it; none of them at the end.
    """

    def __init__(
        self, num_parts: int, take: Callable[[int, tuple[int, ...]], tuple[int, ...]]
    ) -> None:
        self._take = take
        self._first = 0
        nothing = (0,) * num_parts
        self._turns = [_Turn(nothing, take(0, nothing))]

    def taken(self, step: int) -> tuple[int, ...]:
        """The parts that a step is made of; none where the run is over.

        Raises
        ------
        PositionError
            When it lies further back than anybody goes.
        """
        turn = self._at(step)
        return () if turn is None else turn.taken

    def before(self, step: int) -> tuple[int, ...]:
        """How many steps each part had before a step, or at the end of the run.

        Raises
        ------
        PositionError
            When it lies further back than anybody goes, or after the end.
        """
        turn = self._at(step)
        if turn is None:
            raise PositionError(f"there is no step {step} in this pass")
        return turn.before

    def forget(self, is_kept: Callable[[tuple[int, ...]], bool]) -> None:
        """Let go of the first steps, as long as what stands before them is not kept any more."""
        while len(self._turns) > 1 and not is_kept(self._turns[0].before):
            del self._turns[0]
            self._first += 1

    def _at(self, step: int) -> _Turn | None:
        if step < self._first:
            raise PositionError(
                f"step {step} lies further back than positions are kept for",
                fix="Ask for the position of a batch of the last few windows",
            )
        while step >= self._first + len(self._turns):
            before, taken = self._turns[-1]
            if not taken:
                return None
            after = tuple(done + (part in taken) for part, done in enumerate(before))
            self._turns.append(_Turn(after, self._take(self._first + len(self._turns), after)))
        return self._turns[step - self._first]
