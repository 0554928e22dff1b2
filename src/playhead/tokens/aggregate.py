"""A tokenizer for each language, joined into one vocabulary."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.tokens.base import Tokenizer

__all__ = ["AggregateTokenizer"]


class AggregateTokenizer:
    """Tokenizers by language, the ids of each behind those of all before it.

    Parameters
    ----------
    tokenizers
        Language to tokenizer, in the order of their ids.

    Raises
    ------
    ConfigError
        If there is none, or the vocabulary of one that others follow has no known size.
    """

    def __init__(self, tokenizers: Mapping[str, Tokenizer]) -> None:
        if not tokenizers:
            raise ConfigError("the tokenizer has no languages", fix="Name one for each language")
        sizes = [one.vocab_size for one in tokenizers.values()]
        for language, size in zip(list(tokenizers)[:-1], sizes, strict=False):
            if size == 0:
                raise ConfigError(
                    f"nobody knows how many tokens the tokenizer of {language!r} has",
                    fix="Give it the attribute vocab_size",
                )
        self._tokenizers = dict(tokenizers)
        self._first = dict(zip(tokenizers, accumulate(sizes, initial=0), strict=False))
        self.vocab_size = sum(sizes)
        parts = [part.encode() for name in tokenizers for part in (name, tokenizers[name].digest)]
        self.digest = digest_of(b"aggregate", *parts)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages, in the order of their ids."""
        return tuple(self._tokenizers)

    @property
    def runs_in_threads(self) -> bool:
        """Whether all of them do."""
        return all(one.runs_in_threads for one in self._tokenizers.values())

    def encode(self, text: str, language: str | None = None) -> list[int]:
        """Return the ids of a text in its language; `Tokenizer.encode`."""
        first, tokenizer = self._of(language)
        return [first + token for token in tokenizer.encode(text)]

    def count(self, texts: Sequence[str], languages: Sequence[str | None]) -> NDArray[np.uint32]:
        """Return how many ids each text has; `Tokenizer.count`."""
        places: dict[str | None, list[int]] = {}
        for index, language in enumerate(languages):
            places.setdefault(language, []).append(index)
        counts = np.zeros(len(texts), np.uint32)
        indices: list[int] = []
        try:
            for language, indices in places.items():
                _, tokenizer = self._of(language)
                chosen = [texts[index] for index in indices]
                counts[indices] = tokenizer.count(chosen, [None] * len(chosen))
        except BadTextError as error:
            raise error.at(indices[error.index]) from None
        return counts

    def token_id(self, token: str, language: str | None = None) -> int | None:
        """Return the id of a token in the vocabulary of a language; `Tokenizer.token_id`."""
        first, tokenizer = self._of(language)
        found = tokenizer.token_id(token)
        return None if found is None else first + found

    def edge_ids(self, language: str | None = None) -> tuple[int | None, int | None]:
        """Return the tokens that begin and end a sentence in a language; `Tokenizer.edge_ids`."""
        first, tokenizer = self._of(language)
        begin, end = tokenizer.edge_ids()
        return (None if begin is None else first + begin), (None if end is None else first + end)

    def _of(self, language: str | None) -> tuple[int, Tokenizer]:
        tokenizer = None if language is None else self._tokenizers.get(language)
        if language is None or tokenizer is None:
            there = ", ".join(self._tokenizers)
            said = (
                "the row has no language, which chooses its tokenizer"
                if language is None
                else f"there is no tokenizer for the language {language!r}"
            )
            raise BadTextError(
                f"{said}; there are {there}",
                fix="Correct the row's language (lang_field names its key), or add a tokenizer",
            )
        return self._first[language], tokenizer
