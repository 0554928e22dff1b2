"""The checkpoint of several configs that are trained on together: a position of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playhead.errors import PositionError
from playhead.plan import Position
from playhead.plan.keyed import key, text_word
from playhead.plan.position import TOO_LARGE

__all__ = ["FusedPosition", "seed_of_part"]

_VERSION = 1
_KEYS = {"version", "seed", "step", "begin", "parts"}
_PART_SEED = text_word("seed of a part")
# Seeds go through JSON, where others read numbers as floats of 53 bits.
_SPARE_BITS = 11
_FIX = "Load the state that Playhead's loader saved"


def seed_of_part(seed: int, name: str) -> int:
    """The seed of a part: parts that read the same data do not read them in the same order.

    Examples
    --------
    >>> seed_of_part(1, "audio") == seed_of_part(1, "text")
    False
    """
    return key(seed, _PART_SEED, text_word(name)) >> _SPARE_BITS


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedPosition:
    """Everything that decides what comes next of several configs, beside data and settings.

    Examples
    --------
    >>> FusedPosition.from_json({"epoch": 3})
    Traceback (most recent call last):
    ...
    playhead.errors.PositionError: This state is not one of a config with multi_config: it has no \
'version'. Load the state that Playhead's loader saved.
    """

    seed: int
    """What the turns and the seeds of the parts follow from."""
    step: int
    """Optimizer steps handed out since the start of training."""
    begin: int = 0
    """The step at which the pass began; 0 where parts are endless."""
    parts: Mapping[str, Position]
    """Where each part stands, in the order of their names."""

    @property
    def latest_seed(self) -> int:
        """The seed that was asked for last: the one to compare a config with."""
        return self.seed

    @property
    def micro_batches_per_step(self) -> int:
        """Micro-batches of a step, the same in every part."""
        return next(iter(self.parts.values())).micro_batches_per_step

    @property
    def pass_(self) -> int:
        """Number of the pass, where there are passes."""
        passes = [one.pass_ for one in self.parts.values() if one.shape.finite]
        return max(passes, default=0)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; the size is that of the parts' positions."""
        state: dict[str, Any] = {
            "version": _VERSION,
            "seed": self.seed,
            "step": self.step,
            "parts": {name: position.to_json() for name, position in self.parts.items()},
        }
        if self.begin:
            state["begin"] = self.begin
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> FusedPosition:
        """Return the position that `to_json` made.

        Raises
        ------
        PositionError
            When the state is not such a position, or one of another version.
        """
        _check(state)
        parts = {name: _part(name, part) for name, part in sorted(state["parts"].items())}
        if len({part.micro_batches_per_step for part in parts.values()}) != 1:
            raise PositionError(
                "this state is damaged: its parts have steps of different sizes", fix=_FIX
            )
        return cls(seed=state["seed"], step=state["step"], begin=state.get("begin", 0), parts=parts)


def _part(name: str, state: Any) -> Position:
    try:
        return Position.from_json(state)
    except PositionError as error:
        raise PositionError(f"part {name} of this state cannot be used: {error}") from error


def _check(state: Mapping[str, Any]) -> None:
    said = "this state is not one of a config with multi_config"
    if not isinstance(state, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a state comes from anywhere
        raise PositionError(f"{said}: it is a {type(state).__name__}", fix=_FIX)
    if "leaves" in state:
        raise PositionError(
            f"{said}, but of a config of one blend",
            fix="Load it into the loader of the config that it was saved with",
        )
    for name in ("version", "seed", "step", "parts"):
        if name not in state:
            raise PositionError(f"{said}: it has no {name!r}", fix=_FIX)
    if type(state["version"]) is not int or state["version"] != _VERSION:
        raise PositionError(
            f"this state has version {state['version']!r} of the layout, and this Playhead has"
            f" version {_VERSION}",
            fix="Resume with the version of Playhead that saved it, or start anew",
        )
    unknown = sorted(set(map(str, state)) - _KEYS)
    if unknown:
        raise PositionError(f"{said}: it has {', '.join(unknown)}", fix=_FIX)
    numbers = [state["seed"], state["step"], state.get("begin", 0)]
    whole = all(type(value) is int for value in numbers)
    if not (whole and 0 <= numbers[2] <= numbers[1] < TOO_LARGE):
        raise PositionError("this state is damaged: its numbers are none", fix=_FIX)
    if not (isinstance(state["parts"], Mapping) and state["parts"]):
        raise PositionError("this state is damaged: it has no parts", fix=_FIX)
    if not all(isinstance(name, str) for name in state["parts"]):
        raise PositionError("this state is damaged: its parts have no names", fix=_FIX)
