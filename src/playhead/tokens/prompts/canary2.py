"""The prompt of Canary models, second version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.tokens.prompts.registry import register_prompt
from playhead.tokens.prompts.special import (
    START,
    SpecialTokens,
    language_token,
    only_cuts,
    required,
    switch_token,
)
from playhead.tokens.prompts.turns import field_of, joined_turns

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Canary2"]

_CONTEXT = "<|startofcontext|>"
_EMOTION = "<|emo:undefined|>"
_SWITCHES = {"pnc": "yes", "itn": "no", "timestamp": "no", "diarize": "no"}


@register_prompt("canary2")
class Canary2:
    """Context, start, emotion, languages, and four switches; then text and its end.

    The row has `source_lang` and `target_lang`, and may have `decodercontext` (a text in the target
    language; empty), `emotion` (`<|emo:undefined|>`), `pnc` (on), `itn`, `timestamp` and `diarize`
    (off). The answer's language is the row's, else its `target_lang`. `answer_ids` is without the
    end.
    """

    digest = "canary2 1"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._special = SpecialTokens(tokenizer, "canary2")

    def encode(self, example: Example) -> dict[str, list[Any]]:
        """Return the tokens of a sample; `Prompt.encode`."""
        only_cuts(example, "canary2")
        source, target = required(example, "canary2", "source_lang", "target_lang")
        switches = [
            switch_token(name, field_of(example, name) or default)
            for name, default in _SWITCHES.items()
        ]
        tokens = [
            _CONTEXT,
            START,
            field_of(example, "emotion") or _EMOTION,
            language_token(source),
            language_token(target),
            *switches,
        ]
        context = self._special.prompt(tokens, field_of(example, "decodercontext"), target)
        answer = self._special.answer(example.text or "", example.language or target)
        return joined_turns(context, answer, unasked=1)
