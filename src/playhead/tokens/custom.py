"""Any object that encodes texts as a tokenizer."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["PROBES", "CustomTokenizer"]

PROBES = (
    "",
    "a",
    "The quick brown fox jumps over the lazy dog",
    "ÀÉÎÕÜ ñandú straße",
    "Привет, мир! 你好,世界 こんにちは 안녕하세요 שלום नमस्ते",
    "3.14 + 1,000 = ? <unk> <|endoftext|> [PAD]  two  spaces\ttab",
)
"""Texts whose tokens tell tokenizers of one vocabulary apart."""

_CHAIN = 4


class CustomTokenizer:
    """An object with `text_to_ids(text)`, `text_to_ids(text, lang…)` or `encode(text)`.

    An object that has neither and has a `tokenizer` stands for that. `encode` may return a list of
    integers or something with `.ids`; where it takes `add_special_tokens`, it is told not to.

    Parameters
    ----------
    inner
        The object.

    Raises
    ------
    ConfigError
        If it has none of these methods.

    Attributes
    ----------
    digest
        The object's own `digest` if that is a text. Else it is made from the vocabulary
        (`get_vocab()`, `vocab` or `vocab_size`) and from what the object makes of `PROBES` in each
        language: objects that differ only on other texts need a `digest` of their own.
    """

    runs_in_threads = False

    def __init__(self, inner: Any) -> None:
        self._inner = _encoder(inner)
        self._method, self._keywords, self._takes_language = _method(self._inner)
        self.digest = self._found_digest()

    @property
    def vocab_size(self) -> int:
        """How many tokens the object says there are; 0 if it does not."""
        size = getattr(self._inner, "vocab_size", None)
        size = size() if callable(size) else size
        if isinstance(size, int):
            return size
        vocabulary = _content(self._inner)
        return 0 if vocabulary is None else len(vocabulary)

    @property
    def languages(self) -> tuple[str, ...] | None:
        """The languages that it tells apart; empty if it does and does not say which."""
        if not self._takes_language:
            return None
        for name in ("langs", "languages", "tokenizers_dict"):
            found = getattr(self._inner, name, None)
            if found is not None:
                return tuple(map(str, found))
        return ()

    def encode(self, text: str, language: str | None = None) -> list[int]:
        """Return the tokens that the object gives; `Tokenizer.encode`."""
        if self._takes_language and language is None:
            raise BadTextError(
                "the row has no language, which the tokenizer needs",
                fix="Correct the row's language (lang_field names its key)",
            )
        encode: Callable[..., Any] = getattr(self._inner, self._method)
        try:
            if self._takes_language:
                answer = encode(text, language)
            else:
                answer = encode(text, **self._keywords)
            ids = [int(token) for token in getattr(answer, "ids", answer)]
        except Exception as error:
            known = f"; there are {', '.join(self.languages)}" if self.languages else ""
            raise BadTextError(
                f"the tokenizer cannot encode {text!r:.100} (language {language!r}{known}): "
                f"{type(error).__name__}: {error}",
                fix="Correct the row, or the tokenizer",
            ) from error
        return ids

    def count(self, texts: Sequence[str], languages: Sequence[str | None]) -> NDArray[np.uint32]:
        """Return how many tokens each text has; `Tokenizer.count`."""
        counts = np.zeros(len(texts), np.uint32)
        index = 0
        try:
            for index, (text, language) in enumerate(zip(texts, languages, strict=True)):
                counts[index] = len(self.encode(text, language))
        except BadTextError as error:
            raise error.at(index) from error.__cause__
        return counts

    def token_id(self, token: str, language: str | None = None) -> int | None:
        """Return the number of a token if the object can tell; `Tokenizer.token_id`."""
        for name in ("token_to_id", "convert_tokens_to_ids"):
            find: Any = getattr(self._inner, name, None)
            if not callable(find):
                continue
            try:
                found: Any = find(token, language) if self._takes_language else find(token)
            except (KeyError, ValueError, TypeError, IndexError):
                return None
            # Unknown tokens are None to some and the unknown token to others.
            unknown = getattr(self._inner, "unk_token_id", getattr(self._inner, "unk_id", None))
            if not isinstance(found, int) or found < 0 or found == unknown:
                return None
            return found
        return None

    def edge_ids(self, language: str | None = None) -> tuple[int | None, int | None]:
        """Return the tokens that begin and end a sentence, if the object can tell.

        It is asked for `bos_id` or `bos_token_id`, or, of an object by language, `get_bos(lang)`;
        in the same way for the end.
        """
        return self._edge_id("bos", language), self._edge_id("eos", language)

    def chat_template(self) -> Any:
        """Return the object's own Jinja template, if it has one."""
        return getattr(self._inner, "chat_template", None)

    def special_tokens(self) -> dict[str, str]:
        """Return what templates may name, such as `bos_token`."""
        found: Any = getattr(self._inner, "special_tokens_map", None)
        if not isinstance(found, dict):
            return {}
        return {name: str(token) for name, token in found.items() if name.endswith("_token")}

    def _edge_id(self, edge: str, language: str | None) -> int | None:
        find: Any = getattr(self._inner, f"get_{edge}", None)
        if self._takes_language and callable(find):
            found: Any = find(language)
        else:
            found = getattr(self._inner, f"{edge}_id", None)
            if found is None:
                found = getattr(self._inner, f"{edge}_token_id", None)
            found = found() if callable(found) else found
        return found if isinstance(found, int) and found >= 0 else None

    def _found_digest(self) -> str:
        own = getattr(self._inner, "digest", None)
        if isinstance(own, str):
            return digest_of(b"own digest", own.encode())
        parts = [_vocabulary(self._inner)]
        for language in self.languages or (None,):
            parts += [
                msgspec.json.encode([language, self._answer(probe, language)]) for probe in PROBES
            ]
        return digest_of(b"object", *parts)

    def _answer(self, text: str, language: str | None) -> list[int] | str:
        try:
            return self.encode(text, language)
        except BadTextError as error:
            return str(error)


def _encoder(inner: Any) -> Any:
    """Return the object itself, or the one inside that can encode."""
    found = inner
    for _ in range(_CHAIN):
        if callable(getattr(found, "text_to_ids", None)) or callable(
            getattr(found, "encode", None)
        ):
            return found
        found = getattr(found, "tokenizer", None)
    raise ConfigError(
        f"an object of type {type(inner).__name__} is no tokenizer",
        fix="Give it a method encode(text) that returns a list of integers",
    )


def _method(inner: Any) -> tuple[str, dict[str, Any], bool]:
    """Return the name of the method, what to tell it, and whether it wants the language."""
    name = "text_to_ids" if callable(getattr(inner, "text_to_ids", None)) else "encode"
    try:
        parameters = list(inspect.signature(getattr(inner, name)).parameters)
    except (TypeError, ValueError):
        parameters = []
    keywords = {"add_special_tokens": False} if "add_special_tokens" in parameters else {}
    takes_language = len(parameters) > 1 and parameters[1].startswith("lang")
    return name, keywords, takes_language


def _content(inner: Any) -> Any:
    get = getattr(inner, "get_vocab", None)
    vocabulary = get() if callable(get) else getattr(inner, "vocab", None)
    return vocabulary if isinstance(vocabulary, (dict, list, tuple)) else None


def _vocabulary(inner: Any) -> bytes:
    vocabulary = _content(inner)
    if vocabulary is None:
        return str(getattr(inner, "vocab_size", "")).encode()
    if isinstance(vocabulary, dict):
        vocabulary = sorted((str(token), int(number)) for token, number in vocabulary.items())
    return msgspec.json.encode(vocabulary, enc_hook=str)
