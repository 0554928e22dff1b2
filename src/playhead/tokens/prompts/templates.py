"""The prompt formats that are templates: those of model families that write turns of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.tokens.prompts.template import Template
from playhead.tokens.prompts.thoughts import with_thoughts
from playhead.tokens.prompts.turns import field_of

if TYPE_CHECKING:
    from playhead.formats.example import Example

__all__ = ["TEMPLATES"]


def _target_language(example: Example) -> str | None:
    """Name what to translate into: of a pair its target's language, of a cut what is asked."""
    if example.kind == "pair":
        language, more = field_of(example, "target_language"), field_of(example, "extra_prompt")
        found = None if language is None else f"<{language}>"
        if found is not None and more is not None:
            found = f"{found} {more}"
    elif example.kind == "cut":
        found = field_of(example, "context")
        found = field_of(example, "default_context") if found is None else found
    else:
        found = field_of(example, "target_lang")
    if found is None or (found.startswith("<") and found.endswith(">")):
        return found
    return f"<{found}>"


def _llama3(role: str) -> str:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n"


def _phi2(name: str, user: str) -> Template:
    return Template(name=name, roles={"user": user, "assistant": "{message}"})


TEMPLATES: Final = (
    Template(
        name="plain",
        roles={"user": "{message}", "assistant": "{message}"},
        asked=("context",),
        asked_else="",
    ),
    Template(
        name="t5nmt",
        roles={"user": "{target_lang} {message}", "assistant": "{message}"},
        slots={"target_lang": _target_language},
        # What is asked of a cut is its language alone: its audio is the message.
        asked=(),
        asked_else="",
        question=None,
    ),
    Template(
        name="llama2",
        roles={
            "system_and_user": "{bos}[INST] <<SYS>>\n{system}\n<</SYS>>\n\n{message} [/INST]",
            "user": "{bos}[INST] {message} [/INST]",
            "assistant": "{message} {eos}",
        },
        joined="system_and_user",
        question="system",
    ),
    Template(
        name="llama3",
        preamble="<|begin_of_text|>",
        roles={
            role: f"{_llama3(role)}{{message}}<|eot_id|>"
            for role in ("system", "user", "assistant")
        },
        asking=_llama3("assistant"),
    ),
    Template(
        name="qwen",
        roles={
            role: f"<|im_start|>{role}\n{{message}}<|im_end|>\n" for role in ("user", "assistant")
        },
        asking="<|im_start|>assistant\n",
    ),
    Template(
        name="qwen3",
        roles={
            role: f"<|im_start|>{role}\n{{message}}<|im_end|>\n"
            for role in ("system", "user", "assistant")
        },
        asking="<|im_start|>assistant\n",
        rewrite=with_thoughts,
        masks_last=True,
        version="1",
    ),
    Template(
        name="gemma",
        begins=True,
        roles={
            "user": "<start_of_turn>user\n{message}<end_of_turn>\n<start_of_turn>model\n",
            "assistant": "{message}<end_of_turn>\n",
        },
        ends=True,
    ),
    Template(
        name="mistral",
        preamble="<s>",
        roles={"user": "[INST] {message} [/INST] ", "assistant": "{message}</s>"},
    ),
    _phi2("phi2_qa", "Instruct: {message}\nOutput: "),
    _phi2("phi2_chat", "Human: {message}\nAI: "),
    _phi2("phi2_code", "{message}\n"),
    Template(
        name="nemotron-h",
        roles={
            "system": "<SPECIAL_10>System\n{message}",
            "user": "\n<SPECIAL_11>User\n{message}",
            "assistant": "\n<SPECIAL_11>Assistant\n{message}",
        },
        asking="\n<SPECIAL_11>Assistant\n",
        asked=("context",),
        asked_else="",
        system_else="",
    ),
)
"""The templates."""
