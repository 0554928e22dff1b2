"""Positions of Playhead anywhere in what a file holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead.errors import PositionError
from playhead.plan.position import TOO_LARGE, Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MOST_OBJECTS", "FoundPosition", "find_positions"]

MOST_OBJECTS: Final = 20_000_000
"""Containers and values that are looked at in a file at most."""

_OF_ONE = {"version", "plan", "seed", "W", "step", "window", "leaves", "chain"}
_OF_SEVERAL = {"version", "seed", "step", "parts"}
_LONGEST_TEXT = 1 << 28
_MOST_DRAWS = 1 << 28
_MOST_SLOTS = 1 << 20

# The way to a value from the top: that to what holds it, and its key or place there.
_Way: TypeAlias = "tuple[_Way, Any] | None"


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPosition:
    """Where training stands, and where that was found."""

    file: str
    """The file."""
    path: str
    """The place in it, such as `loops.fit_loop.state_dict.combined_loader[0]`; empty for all."""
    state: Mapping[str, Any]
    """The state as it was saved."""
    parts: Mapping[str, Position]
    """The position of every part by name; one without a name where the config is one blend."""
    step: int
    """Optimizer steps handed out since the start of training."""

    @property
    def is_fused(self) -> bool:
        """Whether it is of a config with `multi_config`."""
        return "parts" in self.state

    @property
    def finite(self) -> bool:
        """Whether passes of all parts end."""
        return all(position.shape.finite for position in self.parts.values())

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the leaves of all parts."""
        return frozenset(key for position in self.parts.values() for key in position.leaves)

    @property
    def where(self) -> str:
        """File and place, for messages."""
        return f"{self.file}: {self.path}" if self.path else self.file


def find_positions(content: Any, *, file: str, refused: list[str]) -> list[FoundPosition]:
    """Find the positions of our own in what a file holds; equal ones once.

    Parameters
    ----------
    content
        Plain containers.
    file
        The file, for messages.
    refused
        Gets why each state that looks like one of ours cannot be used.
    """
    found: list[FoundPosition] = []
    for state, path in _states(content):
        try:
            one = _found(state, file, path)
        except PositionError as error:
            refused.append(f"{file}{': ' * bool(path)}{path}: {error}")
            continue
        if not any(one.parts == other.parts and one.step == other.step for other in found):
            found.append(one)
    return found


def _found(state: Mapping[str, Any], file: str, path: str) -> FoundPosition:
    try:
        if "parts" not in state:
            position = Position.from_json(state)
            parts, step = {"": position}, position.step
        else:
            parts = {name: Position.from_json(part) for name, part in state["parts"].items()}
            step = state["step"]
            if type(step) is not int or not all(isinstance(name, str) for name in parts):
                raise PositionError("this state is a damaged position of Playhead")
    except (RecursionError, ArithmeticError, ValueError, TypeError) as error:
        if isinstance(error, PositionError):
            raise
        raise PositionError("this state is a damaged position of Playhead") from error
    if not all(map(_is_sane, parts.values())):
        raise PositionError(
            "this state is a damaged position of Playhead: its numbers are absurdly large"
        )
    return FoundPosition(file=file, path=path, state=state, parts=parts, step=step)


def _is_sane(position: Position) -> bool:
    """Whether planning its window is thinkable: no run comes near to these numbers."""
    drawn = sum((one.pass_ + 1) * one.rows for one in position.leaves.values())
    further = sum(link.further for link in position.chain)
    windows = sum(link.add for link in position.chain)
    steps = max(link.batching.micro_batches_per_step for link in position.chain)
    settings = [position.shape, *(link.batching for link in position.chain)]
    numbers = [
        value
        for one in settings
        for name in one.__dataclass_fields__
        if type(value := getattr(one, name)) is int
    ]
    return (
        drawn < TOO_LARGE
        and position.window_draws * windows + further <= _MOST_DRAWS
        and steps <= _MOST_SLOTS
        and max(numbers, default=0) < TOO_LARGE
        and sum(position.weights) < TOO_LARGE
    )


def _states(content: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Dicts that look like positions, in the order in which they stand, with their place."""
    seen: set[int] = set()
    # Kept, so that no number of an object is given to another one meanwhile.
    kept: list[Any] = []
    todo: list[tuple[Any, _Way]] = [(content, None)]
    left = MOST_OBJECTS
    while todo and left:
        left -= 1
        node, way = todo.pop()
        if isinstance(node, str):
            node = _parsed(node)
            kept.append(node)
        if not isinstance(node, (dict, list, tuple)) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, dict) and _is_state(node):
            yield node, _shown(way)
            continue
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        inside = [(value, (way, key)) for key, value in pairs if _may_hold(value)]
        todo.extend(reversed(inside))


def _shown(way: _Way) -> str:
    """A place as people write it."""
    keys: list[Any] = []
    while way is not None:
        way, key = way
        keys.append(key)
    text = "".join(f"[{key}]" if type(key) is int else f".{key}" for key in reversed(keys))
    return text.removeprefix(".")


def _may_hold(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) or (
        isinstance(value, str) and value[:1] == "{" and '"version"' in value
    )


def _is_state(node: dict[Any, Any]) -> bool:
    if node.keys() >= _OF_ONE:
        return True
    parts = node.get("parts") if node.keys() >= _OF_SEVERAL else None
    return (
        isinstance(parts, dict)
        and bool(parts)
        and all(isinstance(part, dict) and part.keys() >= _OF_ONE for part in parts.values())
    )


def _parsed(text: str) -> Any:
    if len(text) > _LONGEST_TEXT:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
