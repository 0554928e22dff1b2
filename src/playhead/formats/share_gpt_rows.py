"""Rows of ShareGPT conversations: where their placeholders are, and which audio each means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from playhead.errors import ConfigError
from playhead.formats.base import BadRowError
from playhead.formats.conversation_audio import Spoken
from playhead.formats.rows import CustomField, decode_block, is_skipped

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf

__all__ = ["Piece", "ShareGptRow", "kept_rows", "pieces_of", "placeholder_pattern"]

_PLACEHOLDERS: Final = ("<sound>", "<speech>")
_ROLES: Final = {"human": "user", "user": "user", "system": "system"}
_PATH_FIELDS: Final = ("sound", "speech", "ori_sound")
_BIND = (
    "Name one file for all placeholders, one for each, or put one placeholder where all files go"
)


class _Turn(msgspec.Struct, gc=False):
    sender: str | None = msgspec.field(default=None, name="from")
    value: str | None = None
    duration: float | list[float | None] | None = None
    offset: float | list[float | None] | None = None
    sampling_rate: float | list[float | None] | None = None


class ShareGptRow(msgspec.Struct, gc=False):
    """What is read of a row."""

    id: str | int | None = None
    """What the conversation is called."""
    conversations: list[_Turn] | None = None
    """Its turns."""
    sound: str | list[str] | None = None
    """Its audio."""
    speech: str | list[str] | None = None
    """Its audio, where `sound` is empty."""
    ori_sound: str | list[str] | None = None
    """Its audio, where `speech` is empty too."""
    skipme: Any = msgspec.field(default=None, name="_skipme")
    """Anything truthy drops the row."""
    custom: CustomField = None
    """Where `_skipme` may stand too."""


_DECODER = msgspec.json.Decoder(ShareGptRow)


# There are very many: as structs they are quick to make, and the collector passes them by.
class Piece(msgspec.Struct, gc=False):
    """A turn of the conversation, as it is once placeholders are taken out."""

    role: str
    """Who speaks."""
    text: str | None
    """What is written; None where it is audio."""
    spoken: Spoken | None
    """What is said of the audio; None where it is text."""


class _Split(msgspec.Struct, gc=False):
    """A turn of the row: the texts before, between and behind its placeholders."""

    turn: _Turn
    role: str
    texts: list[str]


def kept_rows(block: bytes) -> tuple[int, dict[int, ShareGptRow]]:
    """Decode a block of rows: how many there are, and by their places those not to be skipped.

    Raises
    ------
    BadRowError
        If one is no row.
    """
    rows = decode_block(_DECODER, ShareGptRow, block)
    return len(rows), {
        index: row
        for index, row in enumerate(rows)
        if not ((row.skipme or row.custom) and is_skipped(row.skipme, row.custom))
    }


def placeholder_pattern(leaf: Leaf) -> re.Pattern[str]:
    """What finds a leaf's `audio_placeholders` in texts: the first of them, wherever it stands.

    Raises
    ------
    ConfigError
        If they are no texts, or empty ones.
    """
    given = leaf.own["audio_placeholders"]
    names: Any = [given] if isinstance(given, str) else _PLACEHOLDERS if given is None else given
    if (
        not isinstance(names, list | tuple)
        or not names
        or not all(isinstance(name, str) and name for name in names)
    ):
        raise ConfigError(
            f"the option audio_placeholders is {given!r}",
            where=f"leaf {leaf.name}",
            fix="Write what stands for audio in the texts, such as [<sound>, <speech>]",
        )
    return re.compile("|".join(map(re.escape, names)))


def pieces_of(
    row: ShareGptRow, pattern: re.Pattern[str], *, is_beside_audio: bool = False
) -> list[Piece]:
    """Take a row's texts apart at the placeholders, and bind those to its audio.

    Only turns of the user are looked through. One file serves all placeholders, as many files as
    there are placeholders serve them in order, and several files at the only placeholder follow
    each other. Texts are stripped; where a placeholder is, empty ones are left out.

    Parameters
    ----------
    row
        The row.
    pattern
        What finds placeholders.
    is_beside_audio
        Whether a row that names no file means the one that lies beside it.

    Raises
    ------
    BadRowError
        If the row has no turns, or its placeholders and files do not fit each other.
    """
    if not row.conversations:
        raise BadRowError(
            "the row has no turns in 'conversations'",
            fix="Write them as {from, value}, or leave the row out",
        )
    split = [_split(turn, number, pattern) for number, turn in enumerate(row.conversations)]
    wanted = sum(len(one.texts) - 1 for one in split)
    names: list[str | None] = [*_names(row)]
    if wanted and not names:
        if not is_beside_audio:
            raise BadRowError(
                f"the row has {wanted} placeholders for audio and names no audio",
                fix="Add its path as 'sound', or name other audio_placeholders if it is just text",
            )
        names = [None]
    if len(names) > 1 and wanted > 1 and len(names) != wanted:
        raise BadRowError(
            f"the row names {len(names)} audio files and has {wanted} placeholders", fix=_BIND
        )
    every = range(len(names))
    in_order = iter(every) if len(names) > 1 and wanted > 1 else None
    pieces: list[Piece] = []
    for one in split:
        for place, text in enumerate(one.texts):
            if place:
                chosen = every if in_order is None else (next(in_order),)
                pieces += [Piece(one.role, None, _spoken(one.turn, names[at], at)) for at in chosen]
            stripped = text.strip()
            if stripped or len(one.texts) == 1:
                pieces.append(Piece(one.role, stripped, None))
    return pieces


def _split(turn: _Turn, number: int, pattern: re.Pattern[str]) -> _Split:
    if not turn.sender:
        raise BadRowError(
            f"turn {number + 1} of the row has nobody in 'from'", fix="Write human, gpt or system"
        )
    if turn.value is None:
        raise BadRowError(
            f"turn {number + 1} of the row has no value", fix="Write what is said there"
        )
    role = _ROLES.get(turn.sender.lower(), "assistant")
    return _Split(turn, role, pattern.split(turn.value) if role == "user" else [turn.value])


def _names(row: ShareGptRow) -> list[str]:
    """The files that a row names, in the first of its fields that names any."""
    for field in _PATH_FIELDS:
        value: str | list[str] | None = getattr(row, field)
        if value:
            names = [value] if isinstance(value, str) else value
            if not all(names):
                raise BadRowError(
                    f"the row's field {field!r} holds an empty path", fix="Write the path"
                )
            return names
    return []


def _spoken(turn: _Turn, name: str | None, at: int) -> Spoken:
    """What a turn says of the row's file number `at`."""
    return Spoken(
        name,
        _value(turn.offset, "offset", at) or 0.0,
        _value(turn.duration, "duration", at),
        _value(turn.sampling_rate, "sampling_rate", at),
    )


def _value(value: float | list[float | None] | None, field: str, at: int) -> float | None:
    """One value for all files, or the file's own."""
    if not isinstance(value, list):
        return value
    if len(value) == 1:
        return value[0]
    if at >= len(value):
        raise BadRowError(
            f"the {field} of a turn has {len(value)} values, and file {at + 1} needs one",
            fix="Write one value, or one for each file that the row names",
        )
    return value[at]
