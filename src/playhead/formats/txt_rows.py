"""What rows without audio have in common: their columns, ids, languages and other fields."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from playhead.errors import ConfigError
from playhead.formats.base import BadRowError, RowColumns
from playhead.formats.rows import CustomField, decode_block, is_skipped
from playhead.storage.compression import is_archive, plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Place

__all__ = [
    "TextRow",
    "chat_columns",
    "decode_text_rows",
    "language_of",
    "row_id",
    "skipped_rows",
    "text_columns",
    "text_files",
    "utf8",
]


class TextRow(msgspec.Struct, gc=False):
    """What the rows of every JSON type may have."""

    id: str | int | float | None = None
    """What the sample is called."""
    skipme: Any = msgspec.field(default=None, name="_skipme")
    """Anything truthy drops the row."""
    custom: CustomField = None
    """Fields of the user's own."""


Row = TypeVar("Row", bound=msgspec.Struct)
ChatRow = TypeVar("ChatRow", bound=TextRow)


def text_files(leaf: Leaf, role: str = "text") -> tuple[str, ...]:
    """The files of a leaf whose rows are lines.

    Raises
    ------
    ConfigError
        If one is a tar.
    """
    paths = leaf.paths[role]
    for path in paths:
        if is_archive(path):
            raise ConfigError(
                f"the type `{leaf.type}` reads lines of text, and this is a tar",
                where=f"leaf {leaf.name}, {path}",
                fix="Unpack it, or name the type that reads it",
            )
    return paths


def language_of(leaf: Leaf, key: str = "language", *, is_needed: bool = False) -> str | None:
    """The language that an entry declares under `key`.

    Raises
    ------
    ConfigError
        If it is no text, or there is none and `is_needed`.
    """
    language = leaf.own.get(key)
    if language is None and not is_needed:
        return None
    if isinstance(language, str) and language:
        return language
    # YAML reads the code of Norwegian, no, as false.
    said = f"has no `{key}`" if language is None else f"has {language!r} as its `{key}`, no text"
    raise ConfigError(
        f"the entry {said}",
        where=f"leaf {leaf.name}, type {leaf.type}",
        fix=f'Say which language the text is in, such as {key}: "en", in quotes',
    )


def decode_text_rows(
    decoder: msgspec.json.Decoder[Row], row_type: type[Row], block: bytes
) -> list[Row]:
    """Decode a block of JSON lines into typed rows; `decode_block`.

    Raises
    ------
    BadRowError
        If a row is not JSON, a field has the wrong type, or a text cannot be written as UTF-8.
    """
    try:
        return decoder.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        rows = decode_block(decoder, row_type, block)
    # Python's own reader also takes halves of surrogate pairs, which no tokenizer does.
    try:
        json.dumps(msgspec.to_builtins(rows), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadRowError(
            f"a text of the row is not Unicode: {error.reason}",
            fix="Write the whole character where half of one is escaped",
        ) from None
    return rows


def utf8(data: bytes) -> str:
    """Decode lines of text.

    Raises
    ------
    BadRowError
        If they are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadRowError(
            f"the line is not UTF-8: {error.reason} at its byte {error.start}",
            fix="Write the file in UTF-8",
        ) from None


def skipped_rows(rows: Iterable[TextRow]) -> list[int]:
    """Places of the rows that their `_skipme`, or that of their `custom` object, leaves out."""
    return [
        index
        for index, row in enumerate(rows)
        if (row.skipme or row.custom) and is_skipped(row.skipme, row.custom)
    ]


def chat_columns(rows: Sequence[ChatRow], check: Callable[[ChatRow], object]) -> RowColumns:
    """The columns of rows of which all must pass `check`, but for those that are left out."""
    skipped = skipped_rows(rows)
    left_out = set(skipped)
    for index, row in enumerate(rows):
        if index not in left_out:
            check(row)
    return text_columns(len(rows), {"_skipme": skipped})


def text_columns(num_rows: int, left_out: Mapping[str, Sequence[int]]) -> RowColumns:
    """The columns of rows without audio.

    Parameters
    ----------
    num_rows
        Rows read.
    left_out
        Reason to the places of the rows that are dropped for it; each row has one at most.

    Examples
    --------
    >>> columns = text_columns(4, {"_skipme": [1], "blank line": []})
    >>> columns.kept.tolist(), columns.duration_us.tolist(), columns.dropped
    ([0, 2, 3], [0, 0, 0], {'_skipme': 1})
    """
    places = [place for some in left_out.values() for place in some]
    kept = np.arange(num_rows)
    if places:
        kept = np.delete(kept, places)
    count = len(kept)
    return RowColumns(
        num_rows=num_rows,
        kept=kept,
        duration_us=np.zeros(count, np.int64),
        num_samples=np.zeros(count, np.int64),
        rate=np.zeros(count, np.int32),
        channels=np.zeros(count, np.int16),
        tar=np.full(count, -1, np.int32),
        dropped={reason: len(some) for reason, some in left_out.items() if some},
    )


def row_id(place: Place, own: object = None, *, digits: int = 1) -> str:
    """What a sample is called: its row's own id, else its file's name and its row in the leaf.

    Parameters
    ----------
    place
        Where it lies.
    own
        The row's own id; nothing, and 0, are none.
    digits
        The fewest of the row's number.

    Examples
    --------
    >>> from playhead.formats.example import Place
    >>> place = Place(leaf="web", shard="/data/web_3.jsonl.gz", row=41, byte=0)
    >>> row_id(place), row_id(place, digits=6), row_id(place, "a7"), row_id(place, 7)
    ('web_3-41', 'web_3-000041', 'a7', '7')
    """
    if own:
        return str(own)
    name = os.path.basename(place.shard)  # noqa: PTH119 - a Path costs microseconds a sample
    name = plain_name(name)
    return f"{name.rpartition('.')[0] or name}-{place.row:0{digits}d}"
