"""From what a person names as the tokenizer to the tokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead.errors import ConfigError
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.base import BadTextError, Tokenizer
from playhead.tokens.custom import CustomTokenizer
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.library import read_file
from playhead.tokens.sentencepiece_model import SentencePieceModel

__all__ = ["BadTextError", "Tokenizer", "load_tokenizer"]

_NAMES = ("tokenizer.json", "tokenizer.model")
_OURS = (AggregateTokenizer, CustomTokenizer, HuggingFaceTokenizer, SentencePieceModel)


def load_tokenizer(spec: Any) -> Tokenizer:
    """Return the tokenizer that is meant.

    Parameters
    ----------
    spec
        - The path of a SentencePiece model or of a `tokenizer.json`, told apart by their content,
          or of a folder that holds `tokenizer.json` or `tokenizer.model`.
        - `{language: spec, …}` for one by language; the ids of each language follow those of the
          ones before it.
        - `{"dir": folder, …}` or `{"type": "agg", "langs": {…}}`, as NeMo's configs have it.
        - An object of the library `sentencepiece` or `tokenizers`.
        - Any object that `CustomTokenizer` can use.

    Raises
    ------
    SourceNotFoundError
        If the file does not exist.
    ConfigError
        If it is no tokenizer.
    MissingExtraError
        If the library that reads it is not installed.
    """
    if isinstance(spec, _OURS):
        return spec
    if isinstance(spec, (str, os.PathLike)):
        return _from_path(Path(os.path.abspath(os.path.expanduser(spec))))  # noqa: PTH100, PTH111 - `Path` keeps `..`
    if isinstance(spec, Mapping):
        if "dir" in spec:
            return load_tokenizer(spec["dir"])
        languages: Any = spec.get("langs", spec)
        return AggregateTokenizer(
            {str(language): load_tokenizer(one) for language, one in languages.items()}
        )
    return _from_object(spec)


def _from_path(path: Path) -> Tokenizer:
    if path.is_dir():
        found = [path / name for name in _NAMES if (path / name).is_file()]
        if not found:
            raise ConfigError(
                f"the folder holds neither {' nor '.join(_NAMES)}",
                where=str(path),
                fix="Name the file of the tokenizer",
            )
        path = found[0]
    data = read_file(str(path))
    if data.lstrip()[:1] == b"{":
        return HuggingFaceTokenizer(data, str(path))
    return SentencePieceModel(data, str(path))


def _from_object(spec: Any) -> Tokenizer:
    """Take objects of the two libraries by their content, which is faster than one by one."""
    module = type(spec).__module__.partition(".")[0]
    if module == "sentencepiece" and hasattr(spec, "serialized_model_proto"):
        return SentencePieceModel(spec.serialized_model_proto(), None)
    if module == "tokenizers" and hasattr(spec, "to_str"):
        return HuggingFaceTokenizer(spec.to_str().encode(), None)
    return CustomTokenizer(spec)
