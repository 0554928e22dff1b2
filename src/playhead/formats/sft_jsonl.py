"""NeMo's chats for fine-tuning (`nemo_sft_jsonl`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from playhead.formats.base import BadRowError, SourcePair
from playhead.formats.example import Example
from playhead.formats.registry import register
from playhead.formats.rows import convert_row, decode_row, other_fields
from playhead.formats.text_conversation_turns import role_of, turns_from
from playhead.formats.txt_rows import (
    TextRow,
    chat_columns,
    decode_text_rows,
    language_of,
    row_id,
    text_files,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place
    from playhead.formats.text_conversation_turns import Said

__all__ = ["NemoSft"]


class _Turn(msgspec.Struct, gc=False):
    sender: str | None = msgspec.field(default=None, name="from")
    value: str | None = None


class _Row(TextRow, gc=False):
    conversations: list[_Turn] | None = None
    system: str | None = None


_DECODER = msgspec.json.Decoder(_Row)


@register("nemo_sft_jsonl")
class NemoSft:
    """Rows `{conversations: [{from, value}], system, mask, …}`.

    - Who speaks may be written in any case, and by the names that other chats use (`human`, `gpt`,
      …); `System` gives a system turn. NeMo takes whoever is not exactly `User` for the assistant.
    - A `system` that is not empty is a system turn before all others. NeMo has that for llama2
      alone and refuses the row with any other prompt format.
    - `mask`, and what turns have beside `from` and `value`, decide nothing, as in NeMo.
    - Rows whose `_skipme`, or that of their `custom` object, is truthy are dropped and counted.
    - The id is the row's own, else the file's name without its suffix and the sample's row in the
      leaf.
    - `custom` holds the row's other fields, those of its `custom` object, then the leaf's tags.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a file, in declared order.

        Raises
        ------
        ConfigError
            If the entry's language is not a text.
        """
        language_of(leaf)
        return [SourcePair(manifest=path) for path in text_files(leaf)]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        return chat_columns(decode_text_rows(_DECODER, _Row, block), _said)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        typed = convert_row(_Row, data)
        return Example(
            id=row_id(place, typed.id),
            text=None,
            language=language_of(leaf),
            audio=None,
            place=place,
            kind="sft",
            turns=turns_from(_said(typed)),
            custom=other_fields(leaf, data, ("conversations", "system")),
        )


def _said(row: _Row) -> list[Said]:
    if not row.conversations:
        raise BadRowError(
            "the row has no turns in 'conversations'",
            fix="Write them as {from, value}, or leave the row out",
        )
    said: list[Said] = [("system", row.system)] if row.system else []
    for number, turn in enumerate(row.conversations):
        if turn.value is None:
            raise BadRowError(
                f"turn {number + 1} of the row has no 'value'", fix="Write what is said there"
            )
        said.append((role_of(turn.sender, number, "from"), turn.value))
    return said
