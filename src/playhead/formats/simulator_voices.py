"""Cuts of single speakers, by speaker, and mixtures of them as Lhotse cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError
from playhead.formats.cut_rows import cut_columns
from playhead.formats.mixtures import Voice
from playhead.formats.rows import decode_row
from playhead.formats.simulator_rows import bare_cut, check_seconds, on_line, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.cut_rows import CutRow
    from playhead.formats.mixtures import Mixture, MixtureOptions
    from playhead.formats.simulator_rows import Headers, SimulatorRow

__all__ = ["by_speaker", "mixed_cut", "read_voice"]

_MONO = "MonoCut"


def read_voice(leaf: Leaf, row: SimulatorRow, line: bytes, number: int) -> Voice:
    """Return the voice that a row is.

    Raises
    ------
    BadRowError
        If it is not the voice of one speaker, or does not say its audio or its length.
    """
    if row.type is not None:
        if row.type != _MONO:
            raise BadRowError(
                f"the row is a {row.type}, and only a {_MONO} can be mixed",
                fix="Leave it out, or make cuts of single channels",
            )
        cut_columns(line, _check_data)
    else:
        _check_declared(row)
    speaker = row.speaker
    if speaker is None:
        raise BadRowError(
            "the row does not say whose voice it is", fix="Add a speaker_id to it, a text"
        )
    name = None if row.type is not None else row.unmeasured(leaf)
    return Voice(line, number, row.duration or 0.0, speaker, name)


def by_speaker(voices: Sequence[Voice], options: MixtureOptions, where: str) -> list[list[Voice]]:
    """Return the cuts of each speaker, in the order in which speakers first appear.

    Raises
    ------
    ManifestError
        If there are fewer speakers than a mixture has, or no cut is as long as the shortest delay.
    """
    speakers: dict[str, list[Voice]] = {}
    for voice in voices:
        speakers.setdefault(voice.speaker, []).append(voice)
    if len(speakers) < options.num_speakers:
        raise ManifestError(
            f"the manifest has {len(speakers)} speakers, and num_speakers is "
            f"{options.num_speakers}",
            where=where,
            fix="Lower num_speakers, or add rows with another speaker_id",
        )
    longest = max(voice.duration for voice in voices)
    if options.num_speakers > 1 and longest * 1e6 < options.min_delay_us:
        raise ManifestError(
            f"the option min_delay is {options.min_delay_us / 1e6:g} s and no row is longer than "
            f"{longest:g} s, so that no two speakers would ever be heard together",
            where=where,
            fix="Lower min_delay",
        )
    return list(speakers.values())


def mixed_cut(leaf: Leaf, mixture: Mixture, number: int, headers: Headers) -> bytes:
    """Write a mixture as JSON: a Lhotse cut, as `MixedCut.to_dict` has it.

    Raises
    ------
    BadRowError
        If the audio of one of its rows cannot be looked at, or the row cannot be written.
    """
    tracks = [
        {"cut": _mono_cut(leaf, voice, headers), "type": _MONO, "offset": offset / 1e6}
        for voice, offset in zip(mixture.voices, mixture.offsets_us, strict=True)
    ]
    names = "_".join(voice.speaker for voice in mixture.voices)
    return msgspec.json.encode(
        {"id": f"lsmix_{names}_{number}", "tracks": tracks, "type": "MixedCut"}
    )


def _mono_cut(leaf: Leaf, voice: Voice, headers: Headers) -> msgspec.Raw:
    data = decode_row(voice.line, f"line {voice.number}")
    try:
        if data.get("type") is not None:
            cut = _own_cut(data, voice.speaker)
        else:
            bare = bare_cut(leaf, data, data.get("offset") or 0.0, voice.duration, headers)
            cut = {**bare, "supervisions": [_supervision(bare, voice.speaker)]}
        return msgspec.Raw(written(cut))
    except BadRowError as error:
        raise on_line(voice.number, error) from None


def _own_cut(cut: dict[str, Any], speaker: str) -> dict[str, Any]:
    """Return a row that is a cut, with its speaker in all supervisions."""
    said = [
        {"text": None, "language": None, **one, "speaker": one.get("speaker") or speaker}
        for one in cut.get("supervisions") or ()
    ]
    return {**cut, "supervisions": said or [_supervision(cut, speaker)]}


def _supervision(cut: dict[str, Any], speaker: str) -> dict[str, Any]:
    """Say that one speaker is heard in a whole cut; text and language come with the sample."""
    return {
        "id": cut["id"],
        "recording_id": cut["recording"]["id"],
        "start": 0.0,
        "duration": cut["duration"],
        "channel": cut.get("channel", 0),
        "speaker": speaker,
    }


def _check_declared(row: SimulatorRow) -> None:
    """Refuse a NeMo row that does not say where its audio is, or how long."""
    if not row.audio_filepath:
        raise BadRowError("the row has no audio_filepath", fix="Add the path of its audio")
    if row.duration is None:
        raise BadRowError("the row has no duration", fix="Add its length in seconds")
    for name, seconds in (("duration", row.duration), ("offset", row.offset or 0.0)):
        check_seconds(name, seconds)


def _check_data(cut: CutRow) -> None:
    recording = cut.recording
    if recording is None or any(source.type != "file" for source in recording.sources):
        raise BadRowError(
            "the cut has no recording in a file of its own", fix="Attach its recording to the cut"
        )
