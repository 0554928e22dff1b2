"""Texts in a field of JSON rows (`txt_jsonl`)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.errors import ConfigError
from playhead.formats.base import BadRowError, SourcePair
from playhead.formats.example import Example
from playhead.formats.registry import register
from playhead.formats.row_fields import text_of
from playhead.formats.rows import decode_row, other_fields
from playhead.formats.txt_rows import (
    TextRow,
    decode_text_rows,
    language_of,
    row_id,
    skipped_rows,
    text_columns,
    text_files,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place

__all__ = ["TxtJsonl"]

_RESERVED = frozenset({"_skipme", "custom", "id"})


@register("txt_jsonl")
class TxtJsonl:
    """JSON rows whose field `text_field` is the text.

    - The text is taken as it is. A number is read as it would be printed; rows without the field,
      with null there, and with a blank text are dropped and counted. NeMo leaves out rows without
      the field alone.
    - Rows whose `_skipme`, or that of their `custom` object, is truthy are dropped and counted.
    - The id is the row's own, else the file's name without its suffix and the sample's row in the
      leaf. `language` is the entry's, whatever the row says.
    - `custom` holds the row's other fields, those of its `custom` object, then the leaf's tags.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a file, in declared order.

        Raises
        ------
        ConfigError
            If the entry does not say the language, or `text_field` names a field that is none.
        """
        language_of(leaf, is_needed=True)
        field = leaf.options.text_field
        if field in _RESERVED:
            raise ConfigError(
                f"`text_field` is {field!r}, which means something else in a row",
                where=f"leaf {leaf.name}",
                fix="Name the field that holds the text",
            )
        return [SourcePair(manifest=path) for path in text_files(leaf)]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        field = leaf.options.text_field
        row_type, decoder = _reader_of(field)
        rows: list[Any] = decode_text_rows(decoder, row_type, block)
        skipped = set(skipped_rows(rows))
        lacking: list[int] = []
        blank: list[int] = []
        for index, row in enumerate(rows):
            text = row.text
            if isinstance(text, str) and text and not text.isspace():
                continue
            if index in skipped:
                continue
            if text is None:
                lacking.append(index)
            elif isinstance(text, str):
                blank.append(index)
            elif isinstance(text, float) and not math.isfinite(text):
                raise BadRowError(
                    f"the row's field {field!r} is {text!r}, which is not a text",
                    fix="Write a string, or null where there is none",
                )
        return text_columns(
            len(rows),
            {"_skipme": sorted(skipped), f"no field {field!r}": lacking, "blank text": blank},
        )

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        field = leaf.options.text_field
        text = text_of(data, field, place)
        if text is None:
            raise BadRowError(
                f"the row has no field {field!r}", fix="Index the file again if it has changed"
            )
        return Example(
            id=row_id(place, data.get("id")),
            text=text,
            language=language_of(leaf),
            audio=None,
            place=place,
            kind="text",
            custom=other_fields(leaf, data, (field,)),
        )


@lru_cache
def _reader_of(field: str) -> tuple[type[msgspec.Struct], msgspec.json.Decoder[Any]]:
    """What reads rows whose text is in a field, and what they become."""
    kind = str | int | float | None
    row_type = msgspec.defstruct(
        "Row",
        [("text", kind, msgspec.field(default=None, name=field))],
        bases=(TextRow,),
        gc=False,
    )
    return row_type, msgspec.json.Decoder(row_type)
