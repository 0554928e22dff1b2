"""Prompts as NeMo's scripts take them become fields of rows."""

from __future__ import annotations

import pytest

from playhead.bins.prompt_slots import slots_of
from playhead.errors import ConfigError


def test_slots_are_fields_and_messages_what_is_said():
    turns = [
        {"role": "system", "slots": {"message": "be brief"}},
        {"role": "user", "slots": {"message": "write it down", "prompt_language": "spl_tokens"}},
        {"role": "assistant", "slots": {"text": "ignored"}},
    ]
    assert slots_of(str(turns)) == {"system_prompt": "be brief", "context": "write it down"}


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "[",
        "[]",
        "{}",
        "'text'",
        "[1]",
        "open('x')",
        "\0",
        "[{'role': 'user'}]",
        "[{'role': 1, 'slots': {}}]",
        "[{'role': 'user', 'slots': {1: 2}}]",
    ],
)
def test_what_is_no_list_of_turns_is_refused(prompt):
    with pytest.raises(ConfigError, match="Give a Python list of turns"):
        slots_of(prompt)
