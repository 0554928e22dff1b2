"""What a sample becomes: its tokens, with or without a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import ManifestError, PlayheadError
from playhead.tokens.base import BadTextError, digest_of
from playhead.tokens.prompts import Prompt, prompt_digest, prompt_type
from playhead.tokens.texts import texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = ["Encoding"]

_VERSION = b"1"


class Encoding:
    """A tokenizer and a prompt format.

    Without a prompt format the tokens of a sample are those of its texts, each in its language: of
    a cut with several supervisions one after another. With one they are what the prompt makes.

    Parameters
    ----------
    tokenizer
        The tokenizer.
    prompt_format
        Name of the prompt format; None for plain texts.

    Raises
    ------
    ConfigError
        If there is no such prompt format, or the tokenizer cannot serve it.

    Attributes
    ----------
    digest
        Identity of the tokens that it gives: the tokenizer's content and the prompt's version.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_format: str | None = None) -> None:
        self.tokenizer = tokenizer
        self.prompt_format = prompt_format
        self._type = None if prompt_format is None else prompt_type(prompt_format)
        self._prompt: Prompt | None = self._made()
        said = b"" if self._prompt is None else prompt_digest(self._prompt).encode()
        self.digest = digest_of(
            _VERSION, tokenizer.digest.encode(), (prompt_format or "").encode(), said
        )

    def __getstate__(self) -> dict[str, Any]:
        # The class travels by its name: to find it, its module is loaded, which registers it.
        return {**self.__dict__, "_prompt": None}

    def encode(self, example: Example) -> Mapping[str, list[Any]]:
        """Return the tokens of a sample: `tokens`, or what the prompt format gives.

        Raises
        ------
        ManifestError
            If the sample has none; it names the row.
        """
        try:
            if self._type is None:
                return {"tokens": self._tokens(example)}
            if self._prompt is None:
                self._prompt = self._made()
            assert self._prompt is not None
            return self._prompt.encode(example)
        except BadTextError as error:
            raise error.placed(example.place) from error.__cause__
        except PlayheadError:
            raise
        except Exception as error:
            raise ManifestError(
                f"the prompt format {self.prompt_format!r} fails: {type(error).__name__}: {error}",
                where=str(example.place),
                fix="Correct the row, or the prompt format",
            ) from error

    @staticmethod
    def num_tokens(encoded: Mapping[str, list[Any]]) -> int:
        """Count the tokens that a sample takes: its `tokens`, or all `input_ids`."""
        return len(encoded["input_ids"] if "input_ids" in encoded else encoded["tokens"])

    def _tokens(self, example: Example) -> list[int]:
        tokens: list[int] = []
        for text, language in texts_of(example):
            tokens += self.tokenizer.encode(text, language)
        return tokens

    def _made(self) -> Prompt | None:
        return None if self._type is None else self._type(self.tokenizer)
