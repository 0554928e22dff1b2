"""Prompt formats: how a sample becomes what a model reads and answers."""

from __future__ import annotations

from playhead.tokens.prompts.canary import Canary
from playhead.tokens.prompts.canary2 import Canary2
from playhead.tokens.prompts.chat import Chat
from playhead.tokens.prompts.plain import Plain
from playhead.tokens.prompts.registry import (
    Prompt,
    get_prompt,
    prompt_digest,
    prompt_names,
    prompt_type,
    register_prompt,
)

__all__ = [
    "Canary",
    "Canary2",
    "Chat",
    "Plain",
    "Prompt",
    "get_prompt",
    "prompt_digest",
    "prompt_names",
    "prompt_type",
    "register_prompt",
]
