"""From samples to what each side says, as prompts write it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from playhead.formats.example import turns_of
from playhead.tokens.base import BadTextError
from playhead.tokens.prompts.turns import field_of

if TYPE_CHECKING:
    from playhead.formats.example import Example, Turn

__all__ = ["ANSWER", "Said", "said_in"]

ANSWER = "assistant"
"""The role that answers."""


class Said(NamedTuple):
    """What one side says at a time."""

    role: str
    """Who."""
    text: str
    """What."""
    language: str | None
    """Its language."""
    system: str = ""
    """What the system said before it, where both are written as one."""


def said_in(example: Example) -> list[Said]:
    """Return what is said in a sample, of any kind but a cut as it is read.

    Of an audio turn it is the tag that stands for the audio. What one side of a conversation says
    in turns that follow each other is joined by a blank.

    Raises
    ------
    BadTextError
        If there is nothing, or an audio turn has no tag.
    """
    turns = turns_of(example)
    if not turns:
        raise BadTextError("the row has no turns", fix="Leave the row out, or give it some")
    if example.kind == "pair":
        asked = field_of(example, "source_language") or example.language
        answered = field_of(example, "target_language") or example.language
        return [
            Said(turn.role, turn.text or "", answered if turn.role == ANSWER else asked)
            for turn in turns
        ]
    said = [Said(turn.role, _written(turn), example.language) for turn in turns]
    if example.kind != "conversation":
        return said
    return [
        Said(role, " ".join(one.text for one in group), example.language)
        for role, group in groupby(said, key=lambda one: one.role)
    ]


def _written(turn: Turn) -> str:
    if turn.audio is None:
        return turn.text or ""
    if not turn.locator:
        raise BadTextError(
            "no tag says where the audio of a turn stands in its prompt",
            fix="Set audio_locator_tag to a token of the model, such as <|audio|>",
        )
    return turn.locator
