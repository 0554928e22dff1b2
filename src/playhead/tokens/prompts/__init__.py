"""Prompt formats: how a sample becomes what a model reads and answers."""

from __future__ import annotations

from playhead.tokens.prompts.canary import Canary
from playhead.tokens.prompts.canary2 import Canary2
from playhead.tokens.prompts.chat import Chat
from playhead.tokens.prompts.registry import (
    Prompt,
    PromptMaker,
    get_prompt,
    prompt_digest,
    prompt_names,
    prompt_type,
    register_maker,
    register_prompt,
)
from playhead.tokens.prompts.template import (
    Template,
    TemplatePrompt,
    TextFrame,
    register_template,
)
from playhead.tokens.prompts.templates import TEMPLATES

__all__ = [
    "Canary",
    "Canary2",
    "Chat",
    "Prompt",
    "PromptMaker",
    "Template",
    "TemplatePrompt",
    "TextFrame",
    "get_prompt",
    "prompt_digest",
    "prompt_names",
    "prompt_type",
    "register_maker",
    "register_prompt",
    "register_template",
]

for _template in TEMPLATES:
    register_template(_template)
