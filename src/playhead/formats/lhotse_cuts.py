"""Lhotse cuts, one JSON object a line (`lhotse`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError, RowColumns, SourcePair
from playhead.formats.columns import MAX_SECONDS, microseconds, rates, sample_counts
from playhead.formats.example import Audio, Example
from playhead.formats.registry import register
from playhead.formats.rows import (
    CustomField,
    decode_block,
    decode_row,
    is_skipped,
    is_url,
    resolve_path,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Part, Place

__all__ = ["LhotseCuts"]

_FIX = "Write cuts, as CutSet.to_file does"
_SIMPLE = ("MonoCut", "MultiCut", "Cut")


class _Source(msgspec.Struct, gc=False):
    type: str


class _Recording(msgspec.Struct, gc=False):
    sampling_rate: float
    sources: list[_Source] = []


class _Features(msgspec.Struct, gc=False):
    sampling_rate: float


class _Cut(msgspec.Struct, gc=False):
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
    custom: CustomField = None


class _Track(msgspec.Struct, gc=False):
    cut: _Cut
    type: str | None = None
    offset: float = 0.0
    mute: bool = False


_DECODER = msgspec.json.Decoder(_Cut)


@register("lhotse")
class LhotseCuts:
    """MonoCut, MultiCut and MixedCut rows, as `CutSet.to_file` writes them.

    - Relative paths of recordings, features, arrays and images, also inside mixed cuts and custom
      fields, are looked for beside the manifest first.
    - A MonoCut of one plain file without transforms also gives `audio`, which decodes faster; for
      all others `audio` is None and `cut_data` says everything.
    - `text` joins the supervisions' texts by a space; `language` is the first one's.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a manifest, in declared order."""
        return [SourcePair(manifest=path) for path in leaf.paths["cuts"]]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:  # noqa: ARG002 - the protocol's
        """Read a block of rows; `Format.columns`."""
        rows = decode_block(_DECODER, _Cut, block)
        kept: list[int] = []
        lengths: list[tuple[float, float, int]] = []
        for index, row in enumerate(rows):
            if is_skipped(row.skipme, row.custom):
                continue
            if row.type == "PaddingCut":
                raise BadRowError("the row is a PaddingCut outside of a MixedCut", fix=_FIX)
            lengths.append(_length(row))
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
        )

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:  # noqa: ARG002 - the protocol's
        """Make the sample of one row; `Format.example`.

        `parts` are not used: cuts name their files themselves.
        """
        data = decode_row(row, place)
        cut_id = data.get("id")
        if not isinstance(cut_id, str) or not isinstance(data.get("type"), str):
            raise ManifestError("the row is not a cut", where=str(place), fix=_FIX)
        _resolve(data, os.path.dirname(place.shard))  # noqa: PTH120 - it may be a URL
        try:
            return self._example(leaf, place, cut_id, data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ManifestError(
                f"the cut cannot be read: {type(error).__name__}: {error}",
                where=str(place),
                fix="Index the manifest again if it has changed, else correct the cut",
            ) from error

    def _example(self, leaf: Leaf, place: Place, cut_id: str, data: dict[str, Any]) -> Example:
        main = _main_cut(data)
        supervisions: list[dict[str, Any]] = [
            supervision
            for cut in _simple_cuts(data)
            for supervision in cut.get("supervisions") or ()
        ]
        texts = [s["text"] for s in supervisions if s.get("text") is not None]
        languages = (s["language"] for s in supervisions if s.get("language") is not None)
        return Example(
            id=cut_id,
            text=" ".join(texts) if texts else None,
            language=next(languages, None),
            audio=_plain_audio(data),
            place=place,
            custom={**(main.get("custom") or {}), **leaf.tags},
            cut_data=data,
        )


def _length(cut: _Cut) -> tuple[float, float, int]:
    """Seconds, rate and number of channels of a cut."""
    if cut.id is None or cut.type is None:
        raise BadRowError("the row is not a cut: it has no type or no id", fix=_FIX)
    if cut.type == "MixedCut":
        return _mixed_length(cut)
    if cut.type not in (*_SIMPLE, "PaddingCut"):
        raise BadRowError(f"the row is a {cut.type}, not a cut that can be read", fix=_FIX)
    if cut.duration is None:
        raise BadRowError("the cut has no duration", fix=_FIX)
    _check_seconds("start", cut.start or 0.0)
    channels = len(cut.channel) if isinstance(cut.channel, list) else 1
    if cut.type == "PaddingCut":
        return cut.duration, cut.sampling_rate or 0, channels
    if cut.recording is not None:
        if any(source.type == "shar" for source in cut.recording.sources):
            raise BadRowError(
                "the cut's audio lies in a Lhotse Shar", fix="Use the type lhotse_shar for it"
            )
        return cut.duration, cut.recording.sampling_rate, channels
    if cut.features is not None:
        return cut.duration, cut.features.sampling_rate, channels
    raise BadRowError(
        "the cut has neither a recording nor features", fix="Attach its recording to the cut"
    )


def _mixed_length(cut: _Cut) -> tuple[float, float, int]:
    """Seconds as Lhotse counts them: to the end of the last track that is not mute."""
    if not cut.tracks:
        raise BadRowError("the mixed cut has no tracks", fix=_FIX)
    audible = [track for track in cut.tracks if not track.mute] or cut.tracks
    for track in cut.tracks:
        _check_seconds("offset of a track", track.offset)
    parts = [_length(_typed(track)) for track in audible]
    ends = [track.offset + part[0] for track, part in zip(audible, parts, strict=True)]
    sounding = [_typed(track) for track in cut.tracks]
    sounding = [part for part in sounding if part.type != "PaddingCut"] or sounding
    return round(max(ends), 8), _length(sounding[0])[1], max(part[2] for part in parts)


def _check_seconds(name: str, seconds: float) -> None:
    """Refuse what is not finite, or is longer than any recording."""
    if not abs(seconds) <= MAX_SECONDS:
        raise BadRowError(
            f"the {name} is {seconds!r} seconds", fix=f"Write a number up to {MAX_SECONDS:.0f}"
        )


def _typed(track: _Track) -> _Cut:
    if track.cut.type is None:
        track.cut.type = track.type
    return track.cut


def _simple_cuts(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cut itself, or the cuts of its tracks."""
    if data["type"] == "MixedCut":
        return [track["cut"] for track in data["tracks"]]
    return [dict(data)]


def _main_cut(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the cut whose custom fields Lhotse shows: of a mixed cut the first with sound."""
    if data["type"] != "MixedCut":
        return data
    cuts = [t["cut"] for t in data["tracks"] if t.get("type", t["cut"].get("type")) != "PaddingCut"]
    return cuts[0] if cuts else data["tracks"][0]["cut"]


def _plain_audio(data: Mapping[str, Any]) -> Audio | None:
    """Return the stretch of one file that a MonoCut is; None where it is more than that."""
    recording = data.get("recording")
    if data["type"] not in ("MonoCut", "Cut") or not recording or recording.get("transforms"):
        return None
    sources = recording["sources"]
    if len(sources) != 1 or sources[0]["type"] != "file":
        return None
    channels, channel = sources[0]["channels"], data.get("channel", 0)
    path: str = sources[0]["source"]
    # Lhotse decodes Opus at the recording's rate, whatever the file says: that needs the cut.
    if is_url(path) or path.lower().endswith(".opus") or channel not in channels:
        return None
    return Audio(
        source=path,
        start=float(data.get("start", 0.0)),
        duration=float(data["duration"]),
        channel=None if len(channels) == 1 else channels.index(channel),
        sampling_rate=int(recording["sampling_rate"]),
    )


def _is_in_memory(array: Mapping[str, Any]) -> bool:
    return str(array.get("storage_type")).startswith("memory")


def _resolve(value: Any, folder: str) -> None:
    """Make the paths of all recordings, arrays, features and images in `value` absolute."""
    if isinstance(value, list):
        for item in value:
            _resolve(item, folder)
    elif isinstance(value, dict):
        if value.get("type") == "file" and isinstance(value.get("source"), str):
            value["source"] = resolve_path(value["source"], folder)
        storage = value.get("storage_path")
        if isinstance(storage, str) and storage and not _is_in_memory(value):
            value["storage_path"] = resolve_path(storage, folder)
        for item in value.values():
            if isinstance(item, (dict, list)):
                _resolve(item, folder)
