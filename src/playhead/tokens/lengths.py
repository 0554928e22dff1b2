"""How long a sample is in tokens, with what its audio takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.tokens.base import BadTextError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.audio_tokens import AudioTokens
    from playhead.formats.example import Example, Turn

__all__ = ["Lengths", "lengths_of", "lengths_with_audio"]

_MICROSECONDS = 1e6


class Lengths(NamedTuple):
    """Lengths of one sample in tokens; a cut's own audio is in none of them."""

    tokens: int
    """All of it, the audio of turns included."""
    input: int
    """What stands before the answer; 0 of a cut."""
    output: int
    """The answer; of a cut all its tokens."""
    context: int
    """Ids before the answer, without what audio takes."""
    answer: int
    """Ids of the answer, without what audio takes."""


def lengths_of(
    example: Example, encoded: Mapping[str, Sequence[Any]], audio: AudioTokens | None
) -> Lengths:
    """Measure a sample.

    In the text of a prompt one token, its tag, stands for each audio turn, and that many less are
    added for it. The answer is the last turn, and all audio of others is before it.

    Parameters
    ----------
    example
        The sample.
    encoded
        What `Encoding.encode` made of it.
    audio
        How many tokens audio takes; None counts the tags alone.

    Raises
    ------
    BadTextError
        If nobody knows how long an audio turn is.
    """
    if "input_ids" in encoded:
        total, context = len(encoded["input_ids"]), len(encoded["context_ids"])
        return lengths_with_audio(example, total, context, len(encoded["answer_ids"]), audio)
    total = len(encoded["tokens"])
    answer = len(encoded.get("answer_tokens", encoded["tokens"]))
    return lengths_with_audio(example, total, total - answer, answer, audio)


def lengths_with_audio(
    example: Example, total: int, context: int, answer: int, audio: AudioTokens | None
) -> Lengths:
    """Measure a sample whose tokens are counted; `lengths_of`.

    Parameters
    ----------
    example
        The sample.
    total, context, answer
        All its ids, those before the answer, and those of the answer.
    audio
        How many tokens audio takes.

    Raises
    ------
    BadTextError
        If nobody knows how long an audio turn is.
    """
    if example.kind == "cut":
        return Lengths(total, 0, total, context, answer)
    if audio is None or not example.turns:
        return Lengths(total, context, answer, context, answer)
    *others, last = (_extra(turn, audio) for turn in example.turns)
    before = sum(others)
    return Lengths(total + before + last, context + before, answer + last, context, answer)


def _extra(turn: Turn, audio: AudioTokens) -> int:
    if turn.audio is None:
        return 0
    if turn.duration is None:
        raise BadTextError(
            "nobody knows how long an audio turn is",
            fix="Write its duration into the row, or run `playhead index` again",
        )
    return audio.count_one(round(turn.duration * _MICROSECONDS)) - 1
