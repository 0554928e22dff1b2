"""SentencePiece models as tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.errors import ConfigError
from playhead.tokens.base import BadTextError, digest_of, missing_extra
from playhead.tokens.library import encode_each, read_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["SentencePieceModel"]


class SentencePieceModel:
    """A SentencePiece model.

    Parameters
    ----------
    data
        The bytes of the model.
    path
        Its file, which other processes read again; None where only the bytes are there.

    Raises
    ------
    ConfigError
        If it is no SentencePiece model.
    MissingExtraError
        If the library is not installed.

    Attributes
    ----------
    digest
        Of the model's bytes, wherever they lie.
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
        """How many pieces there are."""
        return len(self._loaded())

    def encode(self, text: str, language: str | None = None) -> list[int]:  # noqa: ARG002 - one for all
        """Return the ids that the library gives; `Tokenizer.encode`."""
        model = self._loaded()
        try:
            return list(model.encode(text, out_type=int))
        except (RuntimeError, TypeError, ValueError):
            raise BadTextError(
                f"SentencePiece cannot encode the text {text!r:.100}",
                fix="Write it as Unicode, without lone surrogates",
            ) from None

    def count(self, texts: Sequence[str], languages: Sequence[str | None]) -> NDArray[np.uint32]:  # noqa: ARG002 - one for all
        """Return how many ids each text has; `Tokenizer.count`."""
        model = self._loaded()
        try:
            ids = model.encode(list(texts), out_type=int, num_threads=1)
        except (RuntimeError, TypeError, ValueError):
            ids = encode_each(self, texts)
        return np.fromiter(map(len, ids), np.uint32, len(texts))

    def token_id(self, token: str, language: str | None = None) -> int | None:  # noqa: ARG002 - one for all
        """Return the id of a piece; `Tokenizer.token_id`."""
        model = self._loaded()
        found: int = model.piece_to_id(token)
        return found if model.id_to_piece(found) == token else None

    def edge_ids(self, language: str | None = None) -> tuple[int | None, int | None]:  # noqa: ARG002 - one for all
        """Return the ids of the pieces that begin and end a sentence; `Tokenizer.edge_ids`."""
        model = self._loaded()
        begin, end = int(model.bos_id()), int(model.eos_id())
        return (begin if begin >= 0 else None), (end if end >= 0 else None)

    def _loaded(self) -> Any:
        if self._model is None:
            data = self._data
            if data is None:
                data = read_again(str(self.path), self.digest, _digest)
            self._model = _load(data, self.path)
        return self._model


def _digest(data: bytes) -> str:
    return digest_of(b"sentencepiece", data)


def _load(data: bytes, path: str | None) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor  # noqa: PLC0415  (an extra)
    except ImportError:
        raise missing_extra("a SentencePiece model", "sentencepiece") from None
    model = None
    # Of an empty file the library would make a model that only complains when it is used.
    if data:
        try:
            model = SentencePieceProcessor(model_proto=data)
        except (RuntimeError, OSError, TypeError, ValueError):
            model = None
    if model is None or len(model) == 0:
        raise ConfigError(
            "this is neither a SentencePiece model nor a tokenizer.json",
            where=path,
            fix="Name one of them, or a folder that holds one",
        )
    return model
