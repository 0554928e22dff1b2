"""What a sample of speech says before its cut is made: who speaks when, how long it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from playhead.formats.base import BadRowError
from playhead.formats.cut_rows import WRITE_CUTS
from playhead.formats.headers import read_header
from playhead.formats.transforms.steps import CutStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.formats.example import Example

__all__ = [
    "Supervision",
    "num_samples_of",
    "rate_of",
    "seconds_of",
    "supervisions_of",
    "time_of",
]

Supervision = dict[str, Any]
"""A serialised Lhotse supervision."""


def supervisions_of(example: Example) -> list[Supervision]:
    """Return the supervisions of a sample as its cut will have them, with times within the cut.

    A row that is no cut has one, as long as itself.

    Raises
    ------
    BadRowError
        If its supervisions are malformed, or the header of its file cannot be read.
    """
    seconds = _bare_seconds(example) or 0.0
    said = [_whole(example, seconds)] if example.cut_data is None else _listed(example.cut_data)
    for one in said:
        for key, kind, wanted in (("speaker", str, "a text"), ("custom", dict, "an object")):
            if not isinstance(one.get(key), (kind, type(None))):
                raise BadRowError(
                    f"the {key} of a supervision is {one[key]!r}", fix=f"Write {wanted} there"
                )
    for step in example.cut_steps:
        if isinstance(step, CutStep):
            said = step.said(said, seconds)
            seconds = step.seconds(seconds, _rate(example))
    return said


def seconds_of(example: Example) -> float | None:
    """Length of a sample in seconds, all of its turns together.

    Returns
    -------
    float | None
        None where only its audio could say, and is not there.

    Raises
    ------
    BadRowError
        If the cut is malformed, or the header of its file cannot be read.
    """
    if example.kind != "cut":
        return sum(turn.duration or 0.0 for turn in example.turns)
    seconds = _bare_seconds(example)
    for step in example.cut_steps:
        if isinstance(step, CutStep) and seconds is not None:
            seconds = step.seconds(seconds, _rate(example))
    return seconds


def rate_of(data: Mapping[str, Any]) -> int:
    """Samples a second of a simple cut, as Lhotse counts its times.

    Raises
    ------
    BadRowError
        If it has neither a recording nor features.
    """
    sounding: Any = data.get("recording") or data.get("features")
    if not sounding:
        raise BadRowError("the cut has neither a recording nor features", fix=WRITE_CUTS)
    return int(sounding["sampling_rate"])


def num_samples_of(seconds: float, rate: int) -> int:
    """Count samples as Lhotse does: rounded, halves up.

    Examples
    --------
    >>> num_samples_of(0.1, 44100), num_samples_of(2.5 / 8000, 8000)
    (4410, 3)
    """
    return math.floor(round(seconds * rate, 8) + 0.5)


def time_of(of: Mapping[str, Any], key: str, what: str) -> float:
    """Return a time in seconds that must be there.

    Raises
    ------
    BadRowError
        If it is no finite number.
    """
    value = of.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise BadRowError(
            f"the {key} of {what} is {value!r}", fix="Write a number of seconds there"
        )
    return value


def _whole(example: Example, seconds: float) -> Supervision:
    return {
        "id": example.id,
        "recording_id": example.id,
        "start": 0.0,
        "duration": seconds,
        "channel": 0,
        "text": example.text,
        "language": example.language,
    }


def _bare_seconds(example: Example) -> float | None:
    """Length before the steps of its cut."""
    data, audio = example.cut_data, example.audio
    if data is not None:
        return _cut_seconds(data)
    if audio is None or audio.duration is not None or audio.source == b"":
        return None if audio is None else audio.duration
    header = read_header(audio.source)
    return max(0.0, round(header.frames / header.rate - audio.start, ndigits=8))


def _rate(example: Example) -> int | None:
    data = example.cut_data
    if data is None:
        return None if example.audio is None else example.audio.sampling_rate
    return None if data["type"] == "MixedCut" else rate_of(data)


def _listed(data: Mapping[str, Any]) -> list[Supervision]:
    if data["type"] != "MixedCut":
        return list(data.get("supervisions") or ())
    tracks: Sequence[Mapping[str, Any]] = data["tracks"]
    return [
        {**said, "start": round(said["start"] + track.get("offset", 0.0), ndigits=8)}
        for track in tracks
        for said in track["cut"].get("supervisions") or ()
    ]


def _cut_seconds(data: Mapping[str, Any]) -> float:
    """Length of a cut; of a mixed one to the end of its last track that is not mute."""
    if data["type"] != "MixedCut":
        return float(data["duration"])
    tracks: Sequence[Mapping[str, Any]] = data["tracks"]
    audible = [track for track in tracks if not track.get("mute")] or tracks
    ends = [track.get("offset", 0.0) + track["cut"]["duration"] for track in audible]
    return round(max(ends), ndigits=8)
