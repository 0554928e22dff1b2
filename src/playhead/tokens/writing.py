"""Samples as the texts that are encoded one by one, before any of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.tokens.base import Tokenizer

__all__ = ["Piece", "Writing", "count_writings", "encode_writing"]


class Piece(NamedTuple):
    """A text that is encoded by itself."""

    text: str
    """The text; an empty one has no tokens."""
    language: str | None
    """Its language."""
    is_answer: bool = False
    """Whether its tokens are what a model learns to say."""
    begins: bool = False
    """Whether the token that begins a sentence stands before it."""
    ends: bool = False
    """Whether the token that ends a sentence stands behind it."""


class Writing(NamedTuple):
    """A sample as it is encoded."""

    pieces: list[Piece]
    """Its texts, in order."""
    answer: int
    """Number of the first piece of the answer; as many as there are where nothing answers."""


def encode_writing(writing: Writing, tokenizer: Tokenizer) -> dict[str, list[Any]]:
    """Encode a sample: `input_ids`, `context_ids`, `answer_ids` and `mask`.

    Raises
    ------
    BadTextError
        If a text cannot be encoded.
    ConfigError
        If the tokenizer has no token that begins or ends a sentence, and one is asked for.
    """
    ids: list[int] = []
    mask: list[bool] = []
    start = None
    for number, piece in enumerate(writing.pieces):
        if number == writing.answer:
            start = len(ids)
        if piece.begins:
            ids.append(_edge(tokenizer, 0, piece.language))
        if piece.text:
            ids += tokenizer.encode(piece.text, piece.language)
        if piece.ends:
            ids.append(_edge(tokenizer, 1, piece.language))
        mask += [piece.is_answer] * (len(ids) - len(mask))
    if start is None:
        start = len(ids)
    return {
        "input_ids": ids,
        "context_ids": ids[:start],
        "answer_ids": ids[start:],
        "mask": mask,
    }


def count_writings(writings: Sequence[Writing], tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Count the tokens of samples, those of one text once.

    Parameters
    ----------
    writings
        The samples.
    tokenizer
        What encodes them.

    Returns
    -------
    NDArray
        Shape (K, 2): tokens before the answer, and of the answer.

    Raises
    ------
    BadTextError
        If a text cannot be encoded; its `index` is that of the first sample that has it.
    """
    numbers: dict[tuple[str, str | None], int] = {}
    text_of_piece: list[int] = []
    place_of_piece: list[int] = []
    edges = np.zeros(2 * len(writings), np.int64)
    for row, (pieces, answer) in enumerate(writings):
        for number, piece in enumerate(pieces):
            place = 2 * row + (number >= answer)
            if piece.begins or piece.ends:
                edges[place] += piece.begins + piece.ends
            if piece.text:
                key = (piece.text, piece.language)
                text_of_piece.append(numbers.setdefault(key, len(numbers)))
                place_of_piece.append(place)
    try:
        counts = tokenizer.count(
            [text for text, _ in numbers], [language for _, language in numbers]
        )
    except BadTextError as error:
        raise error.at(place_of_piece[text_of_piece.index(error.index)] // 2) from error.__cause__
    sums = np.bincount(place_of_piece, counts[text_of_piece], len(edges)).astype(np.int64)
    return (sums + edges).reshape(-1, 2)


def _edge(tokenizer: Tokenizer, which: int, language: str | None) -> int:
    found = tokenizer.edge_ids(language)[which]
    if found is None:
        raise ConfigError(
            f"the tokenizer has no token that {('begins', 'ends')[which]} a sentence",
            fix="Use the tokenizer of the model that the prompt format is of",
        )
    return found
