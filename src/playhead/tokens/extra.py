"""Extra fields of a leaf where rows are looked at one after another."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.formats.extra_fields import ExtraLines

if TYPE_CHECKING:
    from playhead.blend.leaf import ExtraField, Leaf
    from playhead.tokens.base import Tokenizer

__all__ = ["content_of_extra_fields", "extra_lines", "longest_lines"]

_Stamp = tuple[int, int, int]


def extra_lines(leaf: Leaf) -> ExtraLines | None:
    """Return what gives the leaf's rows their extra fields; None if it has none.

    Raises
    ------
    SourceNotFoundError, ConfigError
        As `ExtraLines`.
    """
    if not leaf.extra_fields:
        return None
    return _lines(leaf.extra_fields, tuple(_stamp(field.path) for field in leaf.extra_fields))


def longest_lines(leaf: Leaf, tokenizer: Tokenizer) -> dict[str, int]:
    """Number of the longest line of each field whose lines are chosen by samples' keys.

    Nobody knows before a row is drawn which line it gets: counted with the longest, it never takes
    more room than it was given. A tokenizer of several languages does not know that of a line, so
    there characters decide.

    Parameters
    ----------
    leaf
        The source.
    tokenizer
        What makes tokens of the lines.
    """
    if not leaf.extra_fields:
        return {}
    stamps = tuple(_stamp(field.path) for field in leaf.extra_fields)
    return _longest(leaf.extra_fields, stamps, _Hashed(tokenizer.digest, tokenizer))


class _Hashed:
    """A tokenizer as a key of a cache: two of the same content are the same."""

    def __init__(self, digest: str, tokenizer: Tokenizer) -> None:
        self.digest = digest
        self.tokenizer = tokenizer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(8)
def _longest(
    fields: tuple[ExtraField, ...], stamps: tuple[_Stamp, ...], by: _Hashed
) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, lines in _lines(fields, stamps).sampled().items():
        counts = list(map(len, lines))
        if by.tokenizer.languages is None:
            counts = by.tokenizer.count(lines, [None] * len(lines)).tolist()
        found[name] = max(range(len(lines)), key=counts.__getitem__, default=0)
    return found


def content_of_extra_fields(leaf: Leaf) -> list[str]:
    """Identify what the files of the leaf's extra fields hold; empty where one is not there."""
    return [_content(field.path, _stamp(field.path)) for field in leaf.extra_fields]


@lru_cache(8)
def _lines(fields: tuple[ExtraField, ...], stamps: tuple[_Stamp, ...]) -> ExtraLines:  # noqa: ARG001 - files that changed are read anew
    return ExtraLines(fields)


@lru_cache(256)
def _content(path: str, stamp: _Stamp) -> str:  # noqa: ARG001 - a file that changed is read anew
    digest = hashlib.blake2b(digest_size=8)
    try:
        with Path(path).open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - paths are strings
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)
