"""Turns of written conversations: who said what, and what is no turn."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Final, TypeAlias

from playhead.formats.base import BadRowError
from playhead.formats.example import Turn

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Said", "role_of", "turns_from"]

_ROLES: Final = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "system": "system",
    "tool": "tool",
}
_SHORT = reprlib.Repr()


Said: TypeAlias = tuple[str, str]
"""One turn: who, by their role, and what."""


def role_of(sender: str | None, number: int, field: str) -> str:
    """The role of who says turn `number`, from 0, by what a row calls them in `field`.

    Raises
    ------
    BadRowError
        If the row does not say, or nobody knows them.

    Examples
    --------
    >>> role_of("User", 0, "from"), role_of("gpt", 1, "from")
    ('user', 'assistant')
    """
    role = _ROLES.get(sender.lower()) if sender is not None else None
    if role is None:
        known = ", ".join(_ROLES)
        said = f"nobody in {field!r}" if sender is None else f"{_SHORT.repr(sender)} in {field!r}"
        raise BadRowError(
            f"turn {number + 1} of the row has {said}", fix=f"Name one of {known}, in any case"
        )
    return role


def turns_from(said: Iterable[Said]) -> tuple[Turn, ...]:
    """Make turns of what was said."""
    return tuple(Turn(role=role, text=text) for role, text in said)
