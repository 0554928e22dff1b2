"""Thoughts in answers, as Qwen3 is trained on them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from playhead.tokens.base import BadTextError
from playhead.tokens.prompts.dialog import ANSWER, Said

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["with_thoughts"]

_OPEN, _CLOSE = "<think>", "</think>"


def with_thoughts(turns: list[Said]) -> list[Said]:
    """Write thoughts as the model does, and say before whether it is to think.

    Only the last answer keeps its thoughts; where it has none they are empty. Then one of the
    user's and the system's turns says `/no_think`, at its begin or its end; where it has some, one
    says `/think` in half of all conversations. NeMo draws lots for all of that whenever it sees the
    conversation; here what is said decides, so that the same row always has the same tokens.

    Raises
    ------
    BadTextError
        If the last answer's thoughts do not begin it, or do not end.
    """
    lot = _lot(turns)
    turns = [
        turn._replace(text=turn.text.split(_CLOSE)[1].strip())
        if turn.role == ANSWER and _CLOSE in turn.text and number < len(turns) - 1
        else turn
        for number, turn in enumerate(turns)
    ]
    if turns[-1].role == ANSWER:
        thought, said = _parted(turns[-1].text)
        text = f"{_OPEN}\n{thought}\n{_CLOSE}\n\n{said}"
        turns[-1] = turns[-1]._replace(text=text)
        if not thought or lot & 1:
            turns = _told(turns, "/think" if thought else "/no_think", lot >> 1)
    if turns[0].role == "system" and not turns[0].text.strip():
        turns = turns[1:]
    return turns


def _parted(answer: str) -> tuple[str, str]:
    if _OPEN not in answer and _CLOSE not in answer:
        return "", answer
    if not answer.startswith(_OPEN) or _CLOSE not in answer:
        raise BadTextError(
            f"the last answer has thoughts that do not begin it with {_OPEN}, or do not end with "
            f"{_CLOSE}",
            fix="Correct the row, or leave it out",
        )
    thought = answer.split(_OPEN)[1].split(_CLOSE, maxsplit=1)[0].strip()
    return thought, answer.split(_CLOSE)[1].lstrip("\n")


def _told(turns: list[Said], what: str, lot: int) -> list[Said]:
    asking = [number for number, turn in enumerate(turns) if turn.role != ANSWER]
    if not asking:
        return turns
    number = asking[(lot >> 1) % len(asking)]
    text = turns[number].text
    text = f"{text} {what}" if lot & 1 else f"{what} {text}"
    return [*turns[:number], turns[number]._replace(text=text), *turns[number + 1 :]]


def _lot(turns: Sequence[Said]) -> int:
    said = msgspec.json.encode([[turn.role, turn.text] for turn in turns])
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little")
