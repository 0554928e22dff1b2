"""Tokenizers of Hugging Face's `tokenizers`, and what lies beside them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of, missing_extra
from playhead.tokens.library import encode_each, read_again, read_file

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from numpy.typing import NDArray

__all__ = ["ChatTemplate", "HuggingFaceTokenizer", "own_threads_off"]

_PARALLELISM = "TOKENIZERS_PARALLELISM"
_CONFIG = "tokenizer_config.json"
_SPECIAL_MAP = "special_tokens_map.json"
_TEMPLATE = "chat_template.jinja"


class ChatTemplate(NamedTuple):
    """How a tokenizer writes a chat."""

    source: str
    """The Jinja template."""
    special_tokens: dict[str, str]
    """What templates may name, such as `bos_token`."""


class HuggingFaceTokenizer:
    """A `tokenizer.json`.

    It truncates and pads nothing, whatever its file says of that.

    Parameters
    ----------
    data
        The bytes of the file.
    path
        The file, which other processes read again; None where only the bytes are there.

    Raises
    ------
    ConfigError
        If it is no tokenizer.
    MissingExtraError
        If the library is not installed.

    Attributes
    ----------
    digest
        Of the file's bytes, wherever it lies. The chat template is not in it.
    """

    languages = None
    runs_in_threads = True

    def __init__(self, data: bytes, path: str | None) -> None:
        self.path = path
        self.digest = _digest(data)
        self._data = data if path is None else None
        self._model: Any = _load(data, path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, those that were added included."""
        return self._loaded().get_vocab_size()

    def encode(self, text: str, language: str | None = None) -> list[int]:  # noqa: ARG002 - one for all
        """Return the ids that the library gives without special tokens; `Tokenizer.encode`."""
        model = self._loaded()
        try:
            return model.encode(text, add_special_tokens=False).ids
        except Exception as error:  # noqa: BLE001 - the library raises plain exceptions
            raise BadTextError(
                f"the tokenizer cannot encode the text {text!r:.100}: {error}",
                fix="Write it as Unicode, without lone surrogates",
            ) from None

    def count(self, texts: Sequence[str], languages: Sequence[str | None]) -> NDArray[np.uint32]:  # noqa: ARG002 - one for all
        """Return how many ids each text has; `Tokenizer.count`."""
        model = self._loaded()
        # What it leaves out are the offsets, which nobody asks for.
        encode_batch = getattr(model, "encode_batch_fast", model.encode_batch)
        try:
            encoded: Any = encode_batch(list(texts), add_special_tokens=False)
        except Exception:  # noqa: BLE001 - the library raises plain exceptions
            encoded = encode_each(self, texts)
        return np.fromiter(map(len, encoded), np.uint32, len(texts))

    def token_id(self, token: str, language: str | None = None) -> int | None:  # noqa: ARG002 - one for all
        """Return the id of a token; `Tokenizer.token_id`."""
        return self._loaded().token_to_id(token)

    def edge_ids(self, language: str | None = None) -> tuple[int | None, int | None]:  # noqa: ARG002 - one for all
        """Return the ids of the tokens that begin and end a sentence; `Tokenizer.edge_ids`.

        They are what `tokenizer_config.json` beside the file calls `bos_token` and `eos_token`,
        else what `special_tokens_map.json` does; without them `cls_token` and `sep_token`.

        Raises
        ------
        ConfigError
            If the files cannot be read.
        """
        return self._edges

    @cached_property
    def _edges(self) -> tuple[int | None, int | None]:
        if self.path is None:
            return None, None
        folder = Path(self.path).parent
        said = _special_tokens(_config(folder / _SPECIAL_MAP) | _config(folder / _CONFIG))
        tokens = [
            said.get(name, said.get(other))
            for name, other in (("bos_token", "cls_token"), ("eos_token", "sep_token"))
        ]
        begin, end = (None if token is None else self.token_id(token) for token in tokens)
        return begin, end

    def chat_template(self) -> ChatTemplate | None:
        """Return the chat template that lies beside the file; None if there is none.

        It is `chat_template.jinja`, else the `chat_template` of `tokenizer_config.json`, of several
        named ones the default.

        Raises
        ------
        ConfigError
            If the files cannot be read.
        """
        folder = None if self.path is None else Path(self.path).parent
        config = {} if folder is None else _config(folder / _CONFIG)
        source: Any = config.get("chat_template")
        if folder is not None and (folder / _TEMPLATE).exists():
            source = read_file(str(folder / _TEMPLATE)).decode()
        if isinstance(source, list):
            named = {one["name"]: one["template"] for one in source}
            source = named.get("default")
        if not isinstance(source, str):
            return None
        return ChatTemplate(source, _special_tokens(config))

    def _loaded(self) -> Any:
        if self._model is None:
            data = self._data
            if data is None:
                data = read_again(str(self.path), self.digest, _digest)
            self._model = _load(data, self.path)
        return self._model


@contextmanager
def own_threads_off() -> Generator[None]:
    """Keep the library from starting threads of its own beside ours.

    It looks at an environment variable at each call; what a person has set there stays.
    """
    if _PARALLELISM in os.environ:
        yield
        return
    os.environ[_PARALLELISM] = "false"
    try:
        yield
    finally:
        os.environ.pop(_PARALLELISM, None)


def _digest(data: bytes) -> str:
    return digest_of(b"tokenizer.json", data)


def _load(data: bytes, path: str | None) -> Any:
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415  (an extra)
    except ImportError:
        raise missing_extra("a tokenizer.json", "tokenizers") from None
    try:
        model = Tokenizer.from_buffer(data)
    except Exception as error:  # noqa: BLE001 - the library raises plain exceptions
        raise ConfigError(
            f"this is no tokenizer.json that the library `tokenizers` can read: {error}",
            where=path,
            fix="Name another file, or install a newer version of the library",
        ) from None
    model.no_truncation()
    model.no_padding()
    return model


def _config(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        content = msgspec.json.decode(read_file(str(path)))
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"the tokenizer's config is not valid JSON: {error}",
            where=str(path),
            fix="Restore the file",
        ) from None
    return content if isinstance(content, dict) else {}


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in config.items():
        token = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(token, str):
            found[name] = token
    return found
