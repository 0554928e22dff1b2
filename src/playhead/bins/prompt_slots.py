"""What a prompt says of every sample, as NeMo's scripts take it."""

from __future__ import annotations

import ast
from typing import Any, cast

from playhead.errors import ConfigError

__all__ = ["slots_of"]

# What NeMo's formats call what is said; here it has the name of the row's field.
_MESSAGE = {"user": "context", "system": "system_prompt"}
_ELSEWHERE = frozenset({"prompt_language"})


def slots_of(prompt: str) -> dict[str, str]:
    """Return the fields of a sample that a prompt fills in.

    Parameters
    ----------
    prompt
        A Python list of turns, each with `role` and `slots`. Slots are fields of every row; the
        `message` of the user is its `context`, that of the system its `system_prompt`.

    Raises
    ------
    ConfigError
        When it is no such list.

    Examples
    --------
    >>> slots_of("[{'role': 'user', 'slots': {'source_lang': 'en', 'pnc': True}}]")
    {'source_lang': 'en', 'pnc': 'True'}
    """
    try:
        turns: Any = ast.literal_eval(prompt)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        turns = None
    fields: dict[str, str] = {}
    if not isinstance(turns, list) or not turns:
        raise _no_prompt(prompt)
    for turn in cast("list[Any]", turns):
        match turn:
            case {"role": "assistant"}:
                # The answer is the row's.
                continue
            case {"role": str() as role, "slots": dict() as slots}:
                for name, value in cast("dict[Any, Any]", slots).items():
                    if not isinstance(name, str):
                        raise _no_prompt(prompt)
                    if name not in _ELSEWHERE:
                        field = _MESSAGE.get(role, name) if name == "message" else name
                        fields[field] = str(value)
            case _:
                raise _no_prompt(prompt)
    return fields


def _no_prompt(prompt: str) -> ConfigError:
    shown = prompt if len(prompt) <= 80 else f"{prompt[:77]}…"
    return ConfigError(
        f"--prompt is {shown!r}",
        fix="Give a Python list of turns, as [{'role': 'user', 'slots': {'source_lang': 'en'}}]",
    )
