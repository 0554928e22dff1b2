"""The prompt of Canary models, first version."""

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

__all__ = ["Canary"]

_TASKS = ("<|transcribe|>", "<|translate|>")


@register_prompt("canary")
class Canary:
    """Start, source language, task, target language, punctuation; then text and its end.

    The row has `source_lang`, `target_lang`, `task` (`taskname` is its old name) and `pnc`. The
    answer's language is the row's, else its `target_lang`. `answer_ids` is without the end.
    """

    digest = "canary 1"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._special = SpecialTokens(tokenizer, "canary")

    def encode(self, example: Example) -> dict[str, list[Any]]:
        """Return the tokens of a sample; `Prompt.encode`."""
        only_cuts(example, "canary")
        task_field = "task" if field_of(example, "task") is not None else "taskname"
        if field_of(example, task_field) is None:
            task_field = "task"
        source, task, target, pnc = required(
            example, "canary", "source_lang", task_field, "target_lang", "pnc"
        )
        if task not in _TASKS:
            task = _TASKS[0] if task == "asr" else _TASKS[1]
        tokens = [
            START,
            language_token(source),
            task,
            language_token(target),
            switch_token("pnc", pnc),
        ]
        answer = self._special.answer(example.text or "", example.language or target)
        return joined_turns(self._special.prompt(tokens), answer, unasked=1)
