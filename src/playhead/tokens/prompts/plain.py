"""A prompt that adds nothing: what the row asks, then its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.tokens.prompts.registry import register_prompt
from playhead.tokens.prompts.turns import field_of, joined_turns

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Plain"]


@register_prompt("plain")
class Plain:
    """The row's `context`, if it has one, then its text; both in the row's language."""

    digest = "plain 1"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, example: Example) -> dict[str, list[Any]]:
        """Return the tokens of a sample; `Prompt.encode`."""
        asked, said = field_of(example, "context"), example.text
        encode, language = self._tokenizer.encode, example.language
        return joined_turns(
            [] if asked is None else encode(asked, language),
            [] if said is None else encode(said, language),
        )
