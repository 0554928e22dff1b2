"""What a tokenizer is to the rest of Playhead."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

from playhead.errors import ManifestError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BadTextError", "Tokenizer", "digest_of", "missing_extra"]


class Tokenizer(Protocol):
    """Turns texts into numbers; can be pickled, and reads its files when it first must."""

    @property
    def digest(self) -> str:
        """Identity of what it does, whatever it is called: 16 hexadecimal digits."""
        ...

    @property
    def vocab_size(self) -> int:
        """How many tokens there are; 0 where nobody knows."""
        ...

    @property
    def languages(self) -> tuple[str, ...] | None:
        """The languages that it tells apart; None where one vocabulary serves all."""
        ...

    @property
    def runs_in_threads(self) -> bool:
        """Whether `count` lets other threads run meanwhile."""
        ...

    def encode(self, text: str, language: str | None = None) -> list[int]:
        """Return the tokens of a text, without any that begin or end a sentence.

        Raises
        ------
        BadTextError
            If the text cannot be tokenized, or its language is needed and not there.
        """
        ...

    def count(self, texts: Sequence[str], languages: Sequence[str | None]) -> NDArray[np.uint32]:
        """Return how many tokens each text has, shape (K,): the lengths of `encode`.

        Raises
        ------
        BadTextError
            If one of them cannot be tokenized.
        """
        ...

    def token_id(self, token: str, language: str | None = None) -> int | None:
        """Return the number of a token by its spelling; None if there is no such token."""
        ...

    def edge_ids(self, language: str | None = None) -> tuple[int | None, int | None]:
        """Return the tokens that begin and end a sentence; None where there is no such token."""
        ...


class BadTextError(ManifestError):
    """A text or a prompt cannot be tokenized; who knows its row raises it again with that.

    Parameters
    ----------
    what
        Why not.
    fix
        What to do.
    index
        Its place among the texts that were given.
    """

    def __init__(self, what: str, *, fix: str, index: int = 0) -> None:
        super().__init__(what, fix=fix)
        self.what = what
        self.fix = fix
        self.index = index

    def at(self, index: int) -> BadTextError:
        """Return the same of another place."""
        return BadTextError(self.what, fix=self.fix, index=index)

    def placed(self, where: object) -> ManifestError:
        """Return the error that names the row."""
        return ManifestError(self.what, where=str(where), fix=self.fix)


def digest_of(*parts: bytes) -> str:
    """Identify some bytes in their order: 16 hexadecimal digits.

    Examples
    --------
    >>> digest_of(b"ab", b"c") == digest_of(b"a", b"bc")
    False
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def missing_extra(what: str, package: str) -> MissingExtraError:
    """Return the error of a library that is not installed."""
    return MissingExtraError(
        f"{what} needs {package}, which is not installed",
        fix="Run `pip install 'playhead[tokens]'`",
    )
