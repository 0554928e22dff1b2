"""Messages that are written as they are to be read: their tokens are those of their contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.tokens.base import BadTextError
from playhead.tokens.writing import Piece, Writing, encode_writing

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["encode_messages", "is_checked", "write_messages"]

_ANSWER = "assistant"
_CHECK = "validate_chunk_tokenization"


def write_messages(example: Example) -> Writing:
    """Return messages as they are encoded: each by itself.

    Raises
    ------
    BadTextError
        If there is none.
    """
    if not example.turns:
        raise BadTextError("the row has no messages", fix="Leave the row out, or give it some")
    pieces = [
        Piece(turn.text or "", example.language, is_answer=turn.role == _ANSWER)
        for turn in example.turns
    ]
    return Writing(pieces, len(pieces) - pieces[-1].is_answer)


def is_checked(example: Example) -> bool:
    """Whether all messages of a sample together must have the tokens that they have one by one."""
    return bool(example.custom.get(_CHECK, True))


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
    writing = write_messages(example)
    encoded = encode_writing(writing, tokenizer)
    if is_checked(example):
        texts = [piece.text for piece in writing.pieces]
        whole = tokenizer.encode("".join(texts), example.language)
        if whole != encoded["input_ids"]:
            chunks = [tokenizer.encode(text, example.language) for text in texts]
            raise _differs(chunks, whole)
    return encoded


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
