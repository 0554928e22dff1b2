"""Recorded conversations with their transcripts, and stretches of them as Lhotse cuts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.errors import StorageError
from playhead.formats.base import BadRowError
from playhead.formats.columns import MAX_SECONDS
from playhead.formats.mixtures import Session, Utterance
from playhead.formats.rows import decode_row, resolve_path
from playhead.formats.simulator_rows import bare_cut, on_line, written
from playhead.storage import access

if TYPE_CHECKING:
    from playhead.blend.leaf import Leaf
    from playhead.formats.mixtures import Stretch
    from playhead.formats.simulator_rows import Headers, SimulatorRow

__all__ = ["read_session", "session_cut"]


class _Said(msgspec.Struct, gc=False):
    """One entry of a transcript (SegLST)."""

    start_time: float
    end_time: float
    speaker: str | int
    words: str = ""
    session_id: str | int | None = None


# Some write times as texts.
_DECODER = msgspec.json.Decoder(list[_Said], strict=False)


def read_session(leaf: Leaf, row: SimulatorRow, line: bytes, number: int, manifest: str) -> Session:
    """Read the transcript of a conversation.

    A transcript of several conversations gives the entries with the row's `session_id`; one in
    which none has it gives all.

    Raises
    ------
    BadRowError
        If the row names no audio or transcript, or the transcript cannot be used.
    """
    if not row.audio_filepath or not row.seglst_filepath:
        missing = "seglst_filepath" if row.audio_filepath else "audio_filepath"
        raise BadRowError(
            f"the row has no {missing}",
            fix="mixture_loader needs audio_filepath, seglst_filepath and session_id; "
            "for cuts of single speakers set simulator_type: lsmix",
        )
    if row.session_id is None:
        raise BadRowError("the row has no session_id", fix="Name the conversation")
    path = resolve_path(row.seglst_filepath, os.path.dirname(manifest))  # noqa: PTH120 - strings
    said = _read_seglst(path)
    mine = [one for one in said if str(one.session_id) == str(row.session_id)] or said
    utterances = sorted(_utterance(one, path) for one in mine)
    if not utterances:
        raise BadRowError(f"nobody says anything in {path}", fix="Leave the row out")
    islands: list[int] = []
    end = -1.0
    for at, one in enumerate(utterances):
        if one.start >= end:
            islands.append(at)
        end = max(end, one.end)
    return Session(line, number, utterances, islands, row.unmeasured(leaf))


def session_cut(leaf: Leaf, stretch: Stretch, number: int, headers: Headers) -> bytes:
    """Write a stretch as JSON: a Lhotse cut, as `MonoCut.to_dict` has it.

    Raises
    ------
    BadRowError
        If the audio of its row cannot be looked at, or the row cannot be written.
    """
    session = stretch.session
    data = decode_row(session.line, f"line {session.number}")
    name = data["session_id"]
    try:
        cut = bare_cut(leaf, data, stretch.start, stretch.seconds, headers)
        said = _supervisions(stretch, name, cut["recording"]["id"])
        return written({**cut, "id": f"{name}_{number}", "supervisions": said})
    except BadRowError as error:
        raise on_line(session.number, error) from None


def _supervisions(stretch: Stretch, name: str, recording: str) -> list[dict[str, Any]]:
    """Say who is heard when, timed from the begin of the stretch."""
    return [
        {
            "id": f"{name}-{number}",
            "recording_id": recording,
            "start": round(one.start - stretch.start, 8),
            "duration": round(one.end - one.start, 8),
            "channel": 0,
            "text": one.text,
            "speaker": one.speaker,
        }
        for number, one in enumerate(stretch.utterances, stretch.first)
    ]


def _read_seglst(path: str) -> list[_Said]:
    try:
        return _DECODER.decode(b"".join(access.stream(path)))
    except StorageError:
        raise
    except OSError as error:
        said = f"it cannot be opened: {error.strerror or error}"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        said = f"it is no list of entries with start_time, end_time, speaker and words: {error}"
    except ValueError as error:
        # A path with a zero byte.
        said = f"it cannot be opened: {error}"
    raise BadRowError(
        f"the transcript {path} cannot be read: {said}", fix="Correct it, or the seglst_filepath"
    )


def _utterance(one: _Said, path: str) -> Utterance:
    # Written so that NaN fails too.
    if not 0 <= one.start_time < one.end_time <= MAX_SECONDS:
        raise BadRowError(
            f"the transcript {path} has an entry from {one.start_time!r} to {one.end_time!r} s",
            fix="Write times from 0 on in seconds, the end after the start",
        )
    return Utterance(one.start_time, one.end_time, str(one.speaker), one.words)
