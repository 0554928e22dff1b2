"""Written conversations in fragments (`nemotron_text_converation`)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from playhead.errors import SourceNotFoundError
from playhead.formats.base import BadRowError, Sample, SourcePair
from playhead.formats.example import Example
from playhead.formats.registry import register
from playhead.formats.row_fields import language_of_row
from playhead.formats.rows import convert_row, decode_row, other_fields
from playhead.formats.text_conversation_turns import role_of, turns_from
from playhead.formats.txt_rows import (
    TextRow,
    chat_columns,
    decode_text_rows,
    row_id,
)
from playhead.storage.folders import archives_under, is_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns
    from playhead.formats.example import Part, Place
    from playhead.formats.text_conversation_turns import Said

__all__ = ["NemotronText"]

_ID_DIGITS = 12


class _Fragment(msgspec.Struct, gc=False):
    value: str | None = None
    t: str | None = None


class _Turn(msgspec.Struct, gc=False):
    sender: str | None = None
    fragments: list[str | _Fragment] | None = None


class _Row(TextRow, gc=False):
    conversation: list[_Turn] | None = None


_DECODER = msgspec.json.Decoder(_Row)


# The name is spelt so in NeMo.
@register("nemotron_text_converation")
class NemotronText:
    """Rows `{id, conversation: [{sender, fragments}], custom}`, lines of JSONL or members of tars.

    - A path is a JSONL file, a tar, or a folder: then all tars in it and in its folders, sorted by
      their paths. The rows of a tar are its members that end with ``.json``; others are no rows.
    - A turn's text is its fragments, one behind the other. A fragment is a text, or an object with
      `value`, a text, whose `t` is missing or `text`. Turns without fragments and fragments
      without a value are refused, while NeMo takes them for empty.
    - Who speaks may be written in any case.
    - Rows whose `_skipme`, or that of their `custom` object, is truthy are dropped and counted.
    - The id is the row's own, else its tar member's name without folder and suffix, else the file's
      name without its suffix and the sample's row in the leaf, twelve digits; NeMo counts rows by
      file there.
    - `custom` holds the row's other fields, those of its `custom` object, then the leaf's tags.
    """

    rows_are_members = True

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a file, in declared order; those of a folder sorted.

        Raises
        ------
        SourceNotFoundError
            If a folder has no tars.
        """
        return [SourcePair(manifest=path) for given in leaf.paths["text"] for path in _files(given)]

    def samples(self, leaf: Leaf, names: Sequence[str]) -> Iterator[Sample]:  # noqa: ARG002 - the protocol's
        """Which members of a tar are rows; `Format`."""
        return (Sample(number) for number, name in enumerate(names) if name.endswith(".json"))

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        return chat_columns(decode_text_rows(_DECODER, _Row, block), _said)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        typed = convert_row(_Row, data)
        own = typed.id
        if not own and place.member is not None:
            own = PurePosixPath(place.member).stem
        return Example(
            id=row_id(place, own, digits=_ID_DIGITS),
            text=None,
            language=language_of_row(leaf, data, place),
            audio=None,
            place=place,
            kind="conversation",
            turns=turns_from(_said(typed)),
            custom=other_fields(leaf, data, ("conversation",)),
        )


def _files(path: str) -> list[str]:
    if not is_folder(path):
        return [path]
    tars = archives_under(path)
    if not tars:
        raise SourceNotFoundError(
            "there are no tars in the folder", where=path, fix="Name a folder of tars, or a file"
        )
    return tars


def _said(row: _Row) -> list[Said]:
    if not row.conversation:
        raise BadRowError(
            "the row has no turns in 'conversation'",
            fix="Write them as {sender, fragments}, or leave the row out",
        )
    return [
        (role_of(turn.sender, number, "sender"), _text(turn, number))
        for number, turn in enumerate(row.conversation)
    ]


def _text(turn: _Turn, number: int) -> str:
    if not turn.fragments:
        raise BadRowError(
            f"turn {number + 1} of the row has no fragments", fix="Write what is said there"
        )
    texts: list[str] = []
    for fragment in turn.fragments:
        if isinstance(fragment, str):
            texts.append(fragment)
        elif fragment.value is None or fragment.t not in (None, "text"):
            said = "no value" if fragment.value is None else f"the type {fragment.t!r}"
            raise BadRowError(
                f"a fragment in turn {number + 1} of the row has {said}",
                fix="Only text can be read here: write a string, or {t: text, value}",
            )
        else:
            texts.append(fragment.value)
    return "".join(texts)
