"""Messages that are written as they are to be read: their tokens are those of their contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.tokens.base import BadTextError

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["encode_messages"]

_CHECK = "validate_chunk_tokenization"


def encode_messages(tokenizer: Tokenizer, example: Example) -> dict[str, list[Any]]:
    """Encode the contents of messages one after another, adding nothing.

    What the assistant says is the mask's, wherever it stands; the answer is the last message, if
    that is the assistant's.

    Raises
    ------
    BadTextError
        If there is no message, or all contents together have other tokens than one by one, unless
        the sample's `validate_chunk_tokenization` is false.
    """
    if not example.turns:
        raise BadTextError("the row has no messages", fix="Leave the row out, or give it some")
    language = example.language
    chunks = [tokenizer.encode(turn.text or "", language) for turn in example.turns]
    ids = [token for chunk in chunks for token in chunk]
    if example.custom.get(_CHECK, True):
        whole = tokenizer.encode("".join(turn.text or "" for turn in example.turns), language)
        if whole != ids:
            raise _differs(chunks, whole)
    answers = example.turns[-1].role == "assistant"
    answer = chunks[-1] if answers else []
    return {
        "input_ids": ids,
        "context_ids": ids[: len(ids) - len(answer)],
        "answer_ids": answer,
        "mask": [
            turn.role == "assistant"
            for turn, chunk in zip(example.turns, chunks, strict=True)
            for _ in chunk
        ],
    }


def _differs(chunks: list[list[int]], whole: list[int]) -> BadTextError:
    first, begin = 0, 0
    while first < len(chunks) - 1 and whole[begin:][: len(chunks[first])] == chunks[first]:
        begin += len(chunks[first])
        first += 1
    return BadTextError(
        f"the contents of its messages have other tokens together than one by one, from message "
        f"{first} on (counted from 0)",
        fix=f"Cut the row where special tokens stand, or set {_CHECK}: false for the entry",
    )
