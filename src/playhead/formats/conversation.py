"""Conversations of text and audio turns (`multimodal_conversation`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.formats.base import BadRowError
from playhead.formats.conversation_archives import locate, pair_archives
from playhead.formats.conversation_audio import (
    Spoken,
    audio_turn,
    conversation_columns,
    refuse_archive_path,
)
from playhead.formats.conversation_prompts import prompts_of, with_context, with_system
from playhead.formats.example import Example, Turn
from playhead.formats.registry import register
from playhead.formats.row_fields import language_of_row
from playhead.formats.rows import (
    CustomField,
    convert_row,
    decode_block,
    decode_row,
    is_skipped,
    other_fields,
    resolve_path,
)
from playhead.formats.text_conversation_turns import role_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import RowColumns, SourcePair
    from playhead.formats.example import Part, Place

__all__ = ["MultimodalConversation"]


class _Turn(msgspec.Struct, gc=False):
    sender: str | None = msgspec.field(default=None, name="from")
    type: str | None = None
    value: str | None = None
    duration: float | None = None
    offset: float | None = None
    sampling_rate: float | None = None
    text: str | None = None


class _Row(msgspec.Struct, gc=False):
    id: str | int | None = None
    conversations: list[_Turn] | None = None
    skipme: Any = msgspec.field(default=None, name="_skipme")
    custom: CustomField = None


_DECODER = msgspec.json.Decoder(_Row)


@register("multimodal_conversation")
class MultimodalConversation:
    """Rows `{id, conversations: [{from, type, value, ...}], custom}`.

    - A turn is of type `text`, and `value` is what is written, or `audio`, and `value` is the path
      of its file, relative to the manifest, or the name of its member where the leaf has tars. A
      row of a leaf with tars may name the archive too, as `audio_3.tar/a.wav`; without tars such
      paths are refused, while newer versions of NeMo open the archive.
    - `duration` and `offset` of an audio turn are honoured, in files and in members; a turn without
      `duration` goes to the end and is measured when it is indexed, in tars too.
    - `text` of an audio turn is its transcript, which NeMo writes and does not read.
    - Who speaks (`from`) may be written in any case, and be called `human` or `gpt` as well.
    - Every manifest has one tar; see `pair_archives`. Members are found by name: their order does
      not matter, several turns may be stretches of one, and rows that are skipped need none.
      NeMo 3.0 reads them in order and demands all.
    - Rows whose `_skipme`, or that of their `custom` object, is truthy are dropped and counted;
      NeMo 3.0 looks into `custom` only.
    - The tag `context` is written by the user before a first turn that is the user's and audio; the
      tag `system_prompt` is the system's first turn where the conversation has none; with
      `override_system_prompt` it takes the place of all system turns.
    - `custom` holds the row's other fields, those of its `custom` object, then the leaf's tags.
    - All channels of an audio turn are kept, whatever `channel_selector` says, as in NeMo.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Pair manifests with tars; see `pair_archives`."""
        prompts_of(leaf)
        return pair_archives(leaf.paths["manifest"], leaf.paths.get("tar", ()), leaf.name)

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        rows = decode_block(_DECODER, _Row, block)
        folder = os.path.dirname(pair.manifest)  # noqa: PTH120 - it may be a URL
        kept: list[int] = []
        spoken: list[list[Spoken]] = []
        for index, row in enumerate(rows):
            if (row.skipme or row.custom) and is_skipped(row.skipme, row.custom):
                continue
            kept.append(index)
            spoken.append(
                [_found(said, pair, folder) for _, _, said in _checked(row) if said is not None]
            )
        return conversation_columns(len(rows), kept, spoken)

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        typed = convert_row(_Row, data)
        folder = os.path.dirname(place.shard)  # noqa: PTH120 - it may be a URL
        waiting = iter(parts)
        turns: list[Turn] = []
        for role, turn, said in _checked(typed):
            if said is None:
                turns.append(Turn(role=role, text=turn.value))
                continue
            part = next(waiting, None)
            if part is not None and not part.path and turn.value is not None:
                said.path = resolve_path(turn.value, folder)
            turns.append(audio_turn(leaf, place, role, said, part, text=turn.text))
        prompts = prompts_of(leaf)
        return Example(
            id=str(typed.id),
            text=None,
            language=language_of_row(leaf, data, place),
            audio=None,
            place=place,
            kind="conversation",
            turns=tuple(with_system(prompts, with_context(prompts, turns))),
            custom=other_fields(leaf, data, ("conversations",)),
        )


def _checked(row: _Row) -> list[tuple[str, _Turn, Spoken | None]]:
    """The turns of a row with who speaks them, and what is said of those that are audio."""
    if row.id is None:
        raise BadRowError("the row has no id", fix="Add one: a text or a number")
    if not row.conversations:
        raise BadRowError(
            "the row has no turns in 'conversations'",
            fix="Write them as {from, type, value}, or leave the row out",
        )
    found: list[tuple[str, _Turn, Spoken | None]] = []
    for number, turn in enumerate(row.conversations):
        role = role_of(turn.sender, number, "from")
        said: Spoken | None = None
        if turn.type == "audio":
            if not turn.value:
                raise BadRowError(
                    f"turn {number + 1} of the row is audio and has no value",
                    fix="Write the path of its audio, or the name of its member in the tar",
                )
            said = Spoken(turn.value, turn.offset or 0.0, turn.duration, turn.sampling_rate)
        elif turn.type != "text":
            raise BadRowError(
                f"turn {number + 1} of the row has the type {turn.type!r}"
                if turn.type is not None
                else f"turn {number + 1} of the row has no type",
                fix="Write text or audio",
            )
        elif turn.value is None:
            raise BadRowError(
                f"turn {number + 1} of the row is text and has no value",
                fix="Write what is said there",
            )
        found.append((role, turn, said))
    return found


def _found(said: Spoken, pair: SourcePair, folder: str) -> Spoken:
    name = said.name or ""
    if pair.tars:
        said.member, said.tar = locate(pair, name, 0)
    else:
        refuse_archive_path(name)
        said.path = resolve_path(name, folder)
    return said
