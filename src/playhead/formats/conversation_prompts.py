"""What a leaf's tags put before the turns of its conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from playhead.errors import ConfigError
from playhead.formats.example import Turn

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf

__all__ = ["Prompts", "prompts_of", "with_context", "with_system"]

_CONTEXT, _SYSTEM, _OVERRIDE = "context", "system_prompt", "override_system_prompt"
_TEXTS: Final = (_CONTEXT, _SYSTEM)


class Prompts(NamedTuple):
    """The tags that are turns."""

    context: str | None
    """What the user writes before speaking first."""
    system: str | None
    """What the system says at the start."""
    override: bool
    """Whether that takes the place of all that the system says."""


def prompts_of(leaf: Leaf) -> Prompts:
    """Read a leaf's tags `context`, `system_prompt` and `override_system_prompt`.

    Raises
    ------
    ConfigError
        If one is not a text, or the last one neither true nor false.
    """
    tags = leaf.tags
    for name in _TEXTS:
        if not isinstance(tags.get(name), str | None):
            raise ConfigError(
                f"the tag {name} is {tags[name]!r}, which is not a text",
                where=f"leaf {leaf.name}",
                fix="Write a text, or leave it out",
            )
    override = tags.get(_OVERRIDE, False)
    if not isinstance(override, bool | None):
        raise ConfigError(
            f"the tag {_OVERRIDE} is {override!r}",
            where=f"leaf {leaf.name}",
            fix="Write true or false",
        )
    return Prompts(tags.get(_CONTEXT), tags.get(_SYSTEM), bool(override))


def with_context(prompts: Prompts, turns: list[Turn]) -> list[Turn]:
    """Put the context before a conversation that the user begins by speaking.

    Examples
    --------
    >>> turns = [Turn(role="user", text="hi"), Turn(role="assistant", text="hm")]
    >>> with_context(Prompts("Listen", None, False), turns) == turns
    True
    """
    if prompts.context is None or turns[0].role != "user" or turns[0].audio is None:
        return turns
    return [Turn(role="user", text=prompts.context), *turns]


def with_system(prompts: Prompts, turns: list[Turn]) -> list[Turn]:
    """Let the system begin: where nobody else says what it says, or everywhere if told so.

    Examples
    --------
    >>> own = [Turn(role="system", text="be brief"), Turn(role="user", text="hi")]
    >>> [turn.text for turn in with_system(Prompts(None, "be kind", False), own)]
    ['be brief', 'hi']
    >>> [turn.text for turn in with_system(Prompts(None, "be kind", True), own)]
    ['be kind', 'hi']
    """
    if prompts.system is None:
        return turns
    first = Turn(role="system", text=prompts.system)
    if prompts.override:
        return [first, *(turn for turn in turns if turn.role != "system")]
    return turns if turns[0].role == "system" else [first, *turns]
