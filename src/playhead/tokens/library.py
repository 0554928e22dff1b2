"""What tokenizers from files have in common: reading the file again, and one text at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, SourceNotFoundError, StaleIndexError
from playhead.tokens.base import BadTextError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from playhead.tokens.base import Tokenizer

__all__ = ["encode_each", "read_again", "read_file"]


def read_file(path: str) -> bytes:
    """Read a file of a tokenizer.

    Raises
    ------
    SourceNotFoundError
        If it is not there.
    ConfigError
        If it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise SourceNotFoundError(
            "the tokenizer does not exist",
            where=path,
            fix="Name a SentencePiece model, a tokenizer.json, or a folder that holds one",
        ) from None
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"the tokenizer cannot be read: {said}", where=path, fix="Correct its path or rights"
        ) from None


def read_again(path: str, digest: str, digest_of_data: Callable[[bytes], str]) -> bytes:
    """Read a file that another process has read before.

    Raises
    ------
    StaleIndexError
        If it holds something else by now.
    """
    data = read_file(path)
    if digest_of_data(data) != digest:
        raise StaleIndexError(
            "the tokenizer was replaced while it was in use",
            where=path,
            fix="Start again: the tokens would not be those that were counted",
        )
    return data


def encode_each(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Encode texts one by one, so that the first that cannot be encoded is known.

    Raises
    ------
    BadTextError
        With its place.
    """
    encoded: list[list[int]] = []
    try:
        for text in texts:
            encoded.append(tokenizer.encode(text))  # noqa: PERF401 - what is there is the error's place
    except BadTextError as error:
        raise error.at(len(encoded)) from None
    return encoded
