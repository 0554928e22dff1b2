"""The special tokens of Canary models, and who encodes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError
from playhead.tokens.prompts.turns import field_of

if TYPE_CHECKING:
    from playhead.formats.example import Example
    from playhead.tokens.base import Tokenizer

__all__ = [
    "END",
    "START",
    "SpecialTokens",
    "language_token",
    "only_cuts",
    "required",
    "switch_token",
]

START: Final = "<|startoftranscript|>"
END: Final = "<|endoftext|>"

_SPECIAL = "spl_tokens"
_TRUE = ("yes", "1", "true", "True")
_TIME = re.compile(r"(<\|\d+\|>)")


def is_token(value: str) -> bool:
    """Whether a value is written as a special token already."""
    return value.startswith("<|") and value.endswith("|>")


def language_token(value: str) -> str:
    """Write a language as its token.

    Examples
    --------
    >>> language_token("en"), language_token("<|de|>")
    ('<|en|>', '<|de|>')
    """
    return value if is_token(value) else f"<|{value}|>"


def switch_token(name: str, value: str) -> str:
    """Write a switch that is on or off as its token.

    Examples
    --------
    >>> switch_token("pnc", "yes"), switch_token("pnc", "pnc"), switch_token("itn", "no")
    ('<|pnc|>', '<|pnc|>', '<|noitn|>')
    """
    is_on = value in (*_TRUE, name, f"<|{name}|>")
    return f"<|{name}|>" if is_on else f"<|no{name}|>"


def only_cuts(example: Example, prompt: str) -> None:
    """Refuse samples that are not audio with its transcript.

    Raises
    ------
    BadTextError
        If the sample is none.
    """
    if example.kind != "cut":
        raise BadTextError(
            f"the prompt format `{prompt}` is for audio with its transcript, and the sample is of "
            f"kind {example.kind}",
            fix="Leave the entry out of the blend, or use a prompt format of a language model",
        )


def required(example: Example, prompt: str, *names: str) -> list[str]:
    """Return fields of the sample that a prompt cannot do without.

    Raises
    ------
    BadTextError
        If there is none of one; all that are missing are named.
    """
    values = [field_of(example, name) for name in names]
    found = [value for value in values if value is not None]
    if len(found) < len(names):
        missing = [name for name, value in zip(names, values, strict=True) if value is None]
        raise BadTextError(
            f"the row has no {' and no '.join(missing)}, which the prompt format `{prompt}` needs",
            fix="Add it to the row, or to the entry of the blend as a tag",
        )
    return found


class SpecialTokens:
    """Encodes prompts and answers.

    Of an aggregate tokenizer, `spl_tokens` has the special tokens, and each answer is encoded in
    its own language; any other tokenizer knows the special tokens itself.

    Parameters
    ----------
    tokenizer
        The tokenizer.
    prompt
        Name of the prompt format, for messages.

    Raises
    ------
    ConfigError
        If the tokenizer lacks the end of a text.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: str) -> None:
        self._tokenizer = tokenizer
        self._prompt = prompt
        languages = tokenizer.languages
        self._is_aggregate = languages is not None
        if languages and _SPECIAL not in languages:
            raise ConfigError(
                f"the prompt format `{prompt}` needs a tokenizer `{_SPECIAL}` among the languages; "
                f"there are {', '.join(languages)}",
                fix="Add the one that has the special tokens under that name",
            )
        if self._is_aggregate:
            self._end = self._id(END, ConfigError)
        elif len(tokenizer.encode(f"a{END}")) != len(tokenizer.encode("a")) + 1:
            raise self._lacks(END, ConfigError)

    def prompt(
        self, tokens: list[str], context: str | None = None, language: str = ""
    ) -> list[int]:
        """Encode special tokens, with a text in its language behind the first of them."""
        if not self._is_aggregate:
            return self._tokenizer.encode(tokens[0] + (context or "") + "".join(tokens[1:]))
        ids = [self._id(token, BadTextError) for token in tokens]
        inner = self._tokenizer.encode(context, plain(language)) if context else []
        return ids[:1] + inner + ids[1:]

    def answer(self, text: str, language: str | None) -> list[int]:
        """Encode an answer and the end of a text; times in it are special tokens too."""
        if not self._is_aggregate:
            return self._tokenizer.encode(text + END)
        ids: list[int] = []
        parts = _TIME.split(text)
        for part in parts:
            if _TIME.fullmatch(part):
                ids.append(self._id(part, BadTextError))
            elif part.strip() or len(parts) == 1:
                words = part if len(parts) == 1 else part.strip()
                ids += self._tokenizer.encode(words, None if language is None else plain(language))
        return [*ids, self._end]

    def _id(self, token: str, error: type[ConfigError | BadTextError]) -> int:
        found = self._tokenizer.token_id(token, _SPECIAL)
        if found is None:
            raise self._lacks(token, error)
        return found

    def _lacks(
        self, token: str, error: type[ConfigError | BadTextError]
    ) -> ConfigError | BadTextError:
        return error(
            f"the tokenizer has no token {token}, which the prompt format `{self._prompt}` needs",
            fix="Use the tokenizer of a Canary model, or correct the row's value",
        )


def plain(language: str) -> str:
    """Name a language without the marks of a token."""
    return language[2:-2] if is_token(language) else language
