"""Chats whose messages are written out as they are to be read (`materialized_sft_messages`)."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from playhead.errors import ConfigError
from playhead.formats.base import BadRowError, SourcePair
from playhead.formats.example import Example, Turn
from playhead.formats.registry import register
from playhead.formats.row_fields import language_of_row
from playhead.formats.rows import convert_row, decode_row
from playhead.formats.txt_rows import (
    decode_text_rows,
    row_id,
    text_columns,
    text_files,
)
from playhead.storage.folders import is_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place

__all__ = ["Messages"]

_ID_DIGITS = 12
_VALIDATE = "validate_chunk_tokenization"
_ROLES: Final = ("system", "user", "assistant", "tool")
_SHORT = reprlib.Repr()


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str
    content: str


class _Row(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    messages: list[_Message] | None = None
    skipme: Any = msgspec.field(default=None, name="_skipme")


_DECODER = msgspec.json.Decoder(_Row)


@register("materialized_sft_messages")
class Messages:
    """Rows `{messages: [{role, content}]}` and nothing else; roles are in lower case.

    - `content` is what the model reads, special tokens and all: no prompt format touches it.
    - A row may have a `_skipme`, which NeMo would refuse; where it is truthy the row is dropped and
      counted. Any other key of a row or of a message makes the row a bad one.
    - The id is the file's name without its suffix and the sample's row in the leaf, twelve digits;
      NeMo counts rows by file there.
    - `custom` holds the leaf's tags and `validate_chunk_tokenization`, as the entry has it.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a file, in declared order.

        Raises
        ------
        ConfigError
            If one is a tar or a folder, or `validate_chunk_tokenization` is neither true nor false.
        """
        validate: Any = leaf.own.get(_VALIDATE, True)
        if not isinstance(validate, bool):
            raise ConfigError(
                f"`{_VALIDATE}` is {validate!r}",
                where=f"leaf {leaf.name}",
                fix="Write true or false",
            )
        paths = text_files(leaf)
        for path in paths:
            if is_folder(path):
                raise ConfigError(
                    "this is a folder, and materialized messages are JSONL files",
                    where=f"leaf {leaf.name}, {path}",
                    fix="Name the files in it",
                )
        return [SourcePair(manifest=path) for path in paths]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        rows = decode_text_rows(_DECODER, _Row, block)
        skipped = [index for index, row in enumerate(rows) if row.skipme]
        for row in rows:
            if not row.skipme:
                _checked(row)
        return text_columns(len(rows), {"_skipme": skipped})

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one row; `Format.example`."""
        typed = convert_row(_Row, decode_row(row, place))
        return Example(
            id=row_id(place, digits=_ID_DIGITS),
            text=None,
            language=language_of_row(leaf, {}, place),
            audio=None,
            place=place,
            kind="messages",
            turns=tuple(Turn(role=one.role, text=one.content) for one in _checked(typed)),
            custom={**leaf.tags, _VALIDATE: leaf.own.get(_VALIDATE, True)},
        )


def _checked(row: _Row) -> list[_Message]:
    if not row.messages:
        raise BadRowError(
            "the row has no messages", fix="Write them as {role, content}, or leave the row out"
        )
    for number, message in enumerate(row.messages):
        if message.role not in _ROLES:
            raise BadRowError(
                f"message {number + 1} of the row has the role {_SHORT.repr(message.role)}",
                fix=f"Write one of {', '.join(_ROLES)}",
            )
    return row.messages
