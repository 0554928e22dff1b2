"""Lhotse cuts as rows, wherever their audio lies: their columns and what is read of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from playhead.errors import AudioError, ManifestError
from playhead.formats.base import BadRowError, RowColumns
from playhead.formats.columns import (
    MAX_SECONDS,
    microseconds,
    rates,
    sample_counts,
    statuses_of,
)
from playhead.formats.example import Audio, Example
from playhead.formats.row_fields import channel_of
from playhead.formats.rows import (
    CustomObject,
    decode_block,
    decode_row,
    is_skipped,
    resolve_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Place

__all__ = [
    "WRITE_CUTS",
    "CutRow",
    "cut_columns",
    "cut_example",
    "decode_cut",
    "main_cut",
    "resolve_paths",
    "stretch_of",
]

WRITE_CUTS = "Write cuts, as CutSet.to_file does"
_SIMPLE = ("MonoCut", "MultiCut", "Cut")
# What Lhotse's classes take; they refuse any other key, which may be a misspelt one.
_CUT_KEYS = frozenset(
    {"_skipme", "channel", "custom", "duration", "features", "id", "recording", "start"}
    | {"supervisions", "type"}
)
_SUPERVISION_KEYS = frozenset(
    {"alignment", "channel", "custom", "duration", "gender", "id", "language", "recording_id"}
    | {"speaker", "start", "text"}
)
_MONO = ("MonoCut", "Cut")


class _Custom(CustomObject, gc=False):
    validation_status: Any = None


_CustomField: TypeAlias = _Custom | str | float | bool | list[Any] | None


class _Source(msgspec.Struct, gc=False):
    type: str


class _Recording(msgspec.Struct, gc=False):
    sampling_rate: float
    sources: list[_Source] = []


class _Features(msgspec.Struct, gc=False):
    sampling_rate: float


class CutRow(msgspec.Struct, gc=False):
    """What the index reads of a cut."""

    type: str | None = None
    id: str | None = None
    start: float | None = None
    duration: float | None = None
    channel: int | list[int] | None = None
    recording: _Recording | None = None
    features: _Features | None = None
    sampling_rate: float | None = None
    tracks: list[_Track] | None = None
    skipme: Any = msgspec.field(default=None, name="_skipme")
    custom: _CustomField = None


class _Track(msgspec.Struct, gc=False):
    cut: CutRow
    type: str | None = None
    offset: float = 0.0
    mute: bool = False


_DECODER = msgspec.json.Decoder(CutRow)


def cut_columns(block: bytes, check: Callable[[CutRow], None]) -> RowColumns:
    """Read a block of cuts, one a line.

    A cut that has neither a recording nor features has the rate 0, which is unknown.

    Parameters
    ----------
    block
        Whole lines, none of them blank.
    check
        Is given every simple cut that sounds, of mixed cuts too, and raises where it cannot be
        read.

    Raises
    ------
    BadRowError
        If a row is no cut, or `check` refuses it.
    """
    rows = decode_block(_DECODER, CutRow, block)
    kept: list[int] = []
    lengths: list[tuple[float, float, int]] = []
    ids: list[str] = []
    status: list[str | None] = []
    for index, row in enumerate(rows):
        ids.append(row.id or "")
        if is_skipped(row.skipme, row.custom):
            continue
        if row.type == "PaddingCut":
            raise BadRowError("the row is a PaddingCut outside of a MixedCut", fix=WRITE_CUTS)
        lengths.append(_length(row, check))
        status.append(_status_of(row))
        kept.append(index)
    seconds, hertz, channels = zip(*lengths, strict=True) if lengths else ((), (), ())
    dropped = len(rows) - len(kept)
    rate = rates(hertz)
    return RowColumns(
        num_rows=len(rows),
        kept=np.array(kept, np.int64),
        duration_us=microseconds(seconds),
        num_samples=sample_counts(seconds, rate),
        rate=rate,
        channels=np.array(channels, np.int16),
        tar=np.full(len(kept), -1, np.int32),
        dropped={"_skipme": dropped} if dropped else {},
        status=statuses_of(status),
        ids=ids,
    )


def decode_cut(row: bytes, place: Place) -> dict[str, Any]:
    """Decode one cut whole.

    Raises
    ------
    ManifestError
        If it is no cut.
    """
    data = decode_row(row, place)
    if not isinstance(data.get("id"), str) or not isinstance(data.get("type"), str):
        raise ManifestError("the row is not a cut", where=str(place), fix=WRITE_CUTS)
    return data


def cut_example(
    leaf: Leaf, place: Place, data: dict[str, Any], in_memory: Mapping[str, bytes] | None = None
) -> Example:
    """Make the sample of a cut.

    Parameters
    ----------
    leaf
        The source.
    place
        Where the cut lies.
    data
        The cut, with absolute paths.
    in_memory
        Bytes by the markers that `data` has in their place; see `Example.in_memory`.

    Raises
    ------
    ManifestError
        If the cut lacks what every cut has.
    AudioError
        If it has no such channel as `channel_selector` names.
    """
    in_memory = in_memory or {}
    heard = _one_channel(leaf, data, place)
    try:
        _check_keys(heard)
        main = main_cut(heard)
        supervisions: list[dict[str, Any]] = [
            supervision
            for cut in _simple_cuts(heard)
            for supervision in cut.get("supervisions") or ()
        ]
        texts = [s["text"] for s in supervisions if s.get("text") is not None]
        languages = (s["language"] for s in supervisions if s.get("language") is not None)
        return Example(
            id=data["id"],
            text=" ".join(texts) if texts else None,
            language=next(languages, None),
            audio=stretch_of(heard, in_memory),
            place=place,
            custom={**(main.get("custom") or {}), **leaf.tags},
            cut_data=data,
            in_memory=in_memory,
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ManifestError(
            f"the cut cannot be read: {type(error).__name__}: {error}",
            where=str(place),
            fix="Index the manifest again if it has changed, else correct the cut",
        ) from error


def _one_channel(leaf: Leaf, data: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the cut with the channel that the leaf chooses, and what is said on it."""
    if leaf.options.channel_selector is None or data["type"] == "MixedCut":
        return data
    custom, channels = data.get("custom"), data.get("channel")
    index = channel_of(leaf, custom if isinstance(custom, dict) else {}, place)
    channels = channels if isinstance(channels, list) else [channels]
    if index is None or not 0 <= index < len(channels):
        raise AudioError(
            f"the sample has {len(channels)} channels and channel {index} is wanted",
            where=str(place),
            fix="Count channels from 0 in channel_selector",
        )
    if data["type"] != "MultiCut":
        return data
    channel = channels[index]
    said = [
        supervision
        for supervision in data.get("supervisions") or ()
        if channel in (on if isinstance(on := supervision.get("channel"), list) else [on])
    ]
    return {**data, "type": "MonoCut", "channel": channel, "supervisions": said}


def main_cut(data: dict[str, Any]) -> dict[str, Any]:
    """Return the cut whose custom fields Lhotse shows: of a mixed cut the first with sound."""
    if data["type"] != "MixedCut":
        return data
    cuts = [t["cut"] for t in data["tracks"] if t.get("type", t["cut"].get("type")) != "PaddingCut"]
    return cuts[0] if cuts else data["tracks"][0]["cut"]


def stretch_of(data: Mapping[str, Any], in_memory: Mapping[str, bytes]) -> Audio | None:
    """Return the stretch of one file that a MonoCut is; None where it is more than that."""
    recording = data.get("recording")
    if data["type"] not in _MONO or not recording or recording.get("transforms"):
        return None
    sources = recording["sources"]
    if len(sources) != 1:
        return None
    kind, source = sources[0]["type"], sources[0]["source"]
    channels, channel = sources[0]["channels"], data.get("channel", 0)
    if kind == "memory":
        source = in_memory[source]
    # Lhotse decodes files of Opus at the recording's rate, whatever they say: that needs the cut.
    elif kind not in ("file", "url") or source.lower().endswith(".opus"):
        return None
    if channel not in channels:
        return None
    return Audio(
        source=source,
        start=float(data.get("start", 0.0)),
        duration=float(data["duration"]),
        channel=None if len(channels) == 1 else channels.index(channel),
        sampling_rate=int(recording["sampling_rate"]),
    )


def resolve_paths(value: Any, folder: str) -> None:
    """Make the paths of all recordings, arrays, features and images in `value` absolute."""
    if isinstance(value, list):
        for item in value:
            resolve_paths(item, folder)
    elif isinstance(value, dict):
        if value.get("type") == "file" and isinstance(value.get("source"), str):
            value["source"] = resolve_path(value["source"], folder)
        storage = value.get("storage_path")
        if isinstance(storage, str) and storage and not _is_in_memory(value):
            value["storage_path"] = resolve_path(storage, folder)
        for item in value.values():
            if isinstance(item, (dict, list)):
                resolve_paths(item, folder)


def _status_of(cut: CutRow) -> str | None:
    """Return the cut's `validation_status`, which only a MonoCut has for NeMo."""
    if cut.type not in _MONO or not isinstance(cut.custom, _Custom):
        return None
    status = cut.custom.validation_status
    return None if status is None else str(status)


def _length(cut: CutRow, check: Callable[[CutRow], None]) -> tuple[float, float, int]:
    """Seconds, rate and number of channels of a cut."""
    if cut.id is None or cut.type is None:
        raise BadRowError("the row is not a cut: it has no type or no id", fix=WRITE_CUTS)
    if cut.type == "MixedCut":
        return _mixed_length(cut, check)
    if cut.type not in (*_SIMPLE, "PaddingCut"):
        raise BadRowError(f"the row is a {cut.type}, not a cut that can be read", fix=WRITE_CUTS)
    if cut.duration is None:
        raise BadRowError("the cut has no duration", fix=WRITE_CUTS)
    _check_seconds("start", cut.start or 0.0)
    channels = len(cut.channel) if isinstance(cut.channel, list) else 1
    if cut.type == "PaddingCut":
        return cut.duration, cut.sampling_rate or 0, channels
    check(cut)
    sounding = cut.recording or cut.features
    return cut.duration, 0 if sounding is None else sounding.sampling_rate, channels


def _mixed_length(cut: CutRow, check: Callable[[CutRow], None]) -> tuple[float, float, int]:
    """Seconds as Lhotse counts them: to the end of the last track that is not mute."""
    if not cut.tracks:
        raise BadRowError("the mixed cut has no tracks", fix=WRITE_CUTS)
    audible = [track for track in cut.tracks if not track.mute] or cut.tracks
    for track in cut.tracks:
        _check_seconds("offset of a track", track.offset)
    parts = [_length(_typed(track), check) for track in audible]
    ends = [track.offset + part[0] for track, part in zip(audible, parts, strict=True)]
    sounding = [_typed(track) for track in cut.tracks]
    sounding = [part for part in sounding if part.type != "PaddingCut"] or sounding
    rate = _length(sounding[0], check)[1]
    return round(max(ends), 8), rate, max(part[2] for part in parts)


def _check_seconds(name: str, seconds: float) -> None:
    """Refuse what is not finite, or is longer than any recording."""
    if not abs(seconds) <= MAX_SECONDS:
        raise BadRowError(
            f"the {name} is {seconds!r} seconds", fix=f"Write a number up to {MAX_SECONDS:.0f}"
        )


def _typed(track: _Track) -> CutRow:
    if track.cut.type is None:
        track.cut.type = track.type
    return track.cut


def _simple_cuts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cut itself, or the cuts of its tracks."""
    if data["type"] == "MixedCut":
        return [track["cut"] for track in data["tracks"]]
    return [data]


def _check_keys(data: dict[str, Any]) -> None:
    """Refuse keys that Lhotse would refuse, where our own reading would pass them over."""
    for cut in _simple_cuts(data):
        if cut["type"] not in _SIMPLE:
            continue
        strange = cut.keys() - _CUT_KEYS
        for supervision in cut.get("supervisions") or ():
            strange |= supervision.keys() - _SUPERVISION_KEYS
        if strange:
            message = f"it has the key {min(map(str, strange))!r}, which no cut has"
            raise ValueError(message)


def _is_in_memory(array: Mapping[str, Any]) -> bool:
    return str(array.get("storage_type")).startswith("memory")
