"""The audio turns of conversations: what rows say of them, as columns and as samples."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from playhead.formats.base import BadRowError, RowAudio, RowColumns
from playhead.formats.columns import MAX_SECONDS, microseconds, rates
from playhead.formats.example import Audio, Example, Turn
from playhead.storage.compression import is_archive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Part, Place

__all__ = ["Spoken", "audio_turn", "conversation_columns", "refuse_archive_path"]

_ARCHIVES = (".tar/", ".tar.gz/", ".tgz/")


# There are very many: as structs they are quick to make, and the collector passes them by.
class Spoken(msgspec.Struct, gc=False):
    """What a row says of one audio turn."""

    name: str | None
    """Its path or its member's name, as the row has it; None where only the archive tells."""
    start: float
    """Where it begins in the file or member, seconds."""
    seconds: float | None
    """Its length; None is to the end."""
    rate: float | None = None
    """Hz of the file, as declared."""
    member: str | None = None
    """Name of the archive's member that holds it; None where it is a plain file."""
    path: str | None = None
    """The plain file, resolved."""
    tar: int = 0
    """Index in the pair's tars; -1 is any of them."""


def conversation_columns(
    num_rows: int, kept: Sequence[int], spoken: Sequence[Sequence[Spoken]]
) -> RowColumns:
    """Make the columns of some rows, of which those that are not kept asked to be skipped.

    Parameters
    ----------
    num_rows
        Rows read.
    kept
        Places of those that are kept, shape (K,).
    spoken
        The audio turns of each kept row, in order; shape (K,).

    Raises
    ------
    BadRowError
        If an offset, a length or a rate cannot be.
    """
    flat = list(chain.from_iterable(spoken))
    lengths = iter(_lengths(flat))
    audios = [
        [RowAudio(audio.member, audio.path, audio.start, next(lengths), audio.tar) for audio in row]
        for row in spoken
    ]
    count, dropped = len(kept), num_rows - len(kept)
    return RowColumns(
        num_rows=num_rows,
        kept=np.array(kept, np.int64),
        # What is not known yet the index measures; it sums them up again.
        duration_us=np.array(
            [sum(max(audio.duration_us, 0) for audio in row) for row in audios], np.int64
        ),
        num_samples=np.zeros(count, np.int64),
        rate=np.zeros(count, np.int32),
        channels=np.zeros(count, np.int16),
        tar=np.full(count, -1, np.int32),
        dropped={"_skipme": dropped} if dropped else {},
        audios=audios,
    )


def _lengths(flat: Sequence[Spoken]) -> list[int]:
    """Microseconds of each turn, -1 where nobody says; what cannot be is refused."""
    for audio in flat:
        # Written so that NaN fails too.
        if not 0 <= audio.start <= MAX_SECONDS:
            raise BadRowError(
                f"the offset of {_called(audio)} is {audio.start!r} seconds",
                fix=f"Write a number from 0 to {MAX_SECONDS:.0f}",
            )
    lengths = microseconds([0.0 if a.seconds is None else a.seconds for a in flat])
    rates([audio.rate for audio in flat])
    lengths[[audio.seconds is None for audio in flat]] = -1
    return lengths.tolist()


def audio_turn(
    leaf: Leaf,
    place: Place,
    role: str,
    spoken: Spoken,
    part: Part | None,
    *,
    text: str | None = None,
    unnamed: str = "",
) -> Turn:
    """Make an audio turn, whose sample is called as NeMo calls it.

    That is the name of its file without folder and suffix; where it begins later than the file,
    followed by its offset and its length in seconds.

    Parameters
    ----------
    leaf, place
        The source, and where the row lies.
    role
        Who speaks.
    spoken
        What the row says.
    part
        Where it lies, and its bytes; None where nobody asked for audio.
    text
        Its transcript.
    unnamed
        What it is called where the row does not name its file.
    """
    seconds = _seconds(spoken, part)
    called = unnamed if spoken.name is None else PurePosixPath(spoken.name).stem
    if spoken.start > 0:
        called += f"_{spoken.start:.3f}"
        called += "" if seconds is None else f"_{seconds:.3f}"
    sample = Example(
        id=called,
        text=text,
        language=None,
        audio=_audio(spoken, part),
        place=_place(place, spoken, part),
    )
    return Turn(
        role=role,
        text=text,
        audio=sample,
        locator=leaf.options.audio_locator_tag,
        duration=seconds,
    )


def _place(place: Place, spoken: Spoken, part: Part | None) -> Place:
    """Where a turn lies, for messages."""
    if part is None:
        return place
    if not is_archive(part.path):
        return replace(place, member=part.path or spoken.path or spoken.name, member_byte=None)
    member = part.path if spoken.name is None else f"{part.path}/{spoken.name}"
    return replace(place, member=member, member_byte=part.offset or None)


def _audio(spoken: Spoken, part: Part | None) -> Audio | None:
    """The stretch itself; None where it lies in an archive and nobody asked for its bytes."""
    if part is None or (not part.data and is_archive(part.path)):
        return None
    source = part.data or part.path or spoken.path
    if not source:
        return None
    return Audio(
        source=source,
        start=spoken.start,
        # What the index measured holds, though the file may have grown since.
        duration=_seconds(spoken, part) if spoken.seconds is None else spoken.seconds,
        sampling_rate=None if spoken.rate is None else int(spoken.rate),
    )


def _seconds(spoken: Spoken, part: Part | None) -> float | None:
    """How long a turn is, the same whether or not its part is there: whole microseconds."""
    if part is not None and part.duration_us >= 0:
        return part.duration_us / 1e6
    if spoken.seconds is None:
        return None
    return int(microseconds([spoken.seconds])[0]) / 1e6


def refuse_archive_path(path: str) -> None:
    """Refuse a path of a plain file that leads into an archive.

    Raises
    ------
    BadRowError
        If it does.
    """
    if any(mark in path for mark in _ARCHIVES):
        raise BadRowError(
            f"the audio {path!r} lies in an archive, and no archives are declared",
            fix="Name the archives in tarred_audio_filepaths, one for each manifest",
        )


def _called(audio: Spoken) -> str:
    return "its audio" if audio.name is None else repr(audio.name)
