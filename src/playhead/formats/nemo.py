"""NeMo manifests, with plain audio files (`nemo`) or tars (`nemo_tarred`)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError, RowColumns, SourcePair, Unmeasured
from playhead.formats.columns import (
    MAX_SECONDS,
    microseconds,
    rates,
    sample_counts,
    statuses_of,
)
from playhead.formats.example import Audio, Example
from playhead.formats.nemo_shards import pair_shards
from playhead.formats.registry import register
from playhead.formats.row_fields import channel_of, text_of
from playhead.formats.rows import CustomField, decode_block, decode_row, is_skipped, resolve_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Part, Place

__all__ = ["Nemo", "member_name"]

_SUB_SEGMENT = re.compile(r"^(.+)-sub\d+(\.\w+)?$", re.DOTALL)


class _Row(msgspec.Struct, gc=False):
    audio_filepath: str | None = None
    duration: float | None = None
    offset: float | None = None
    sampling_rate: float | None = None
    sample_rate: float | None = None
    skipme: Any = msgspec.field(default=None, name="_skipme")
    custom: CustomField = None
    validation_status: Any = None


class _RoutedRow(_Row, gc=False):
    shard_id: int | None = None


class _NamedRow(msgspec.Struct, gc=False):
    audio_filepath: str | None = None


_DECODER = msgspec.json.Decoder(_Row)
_NAME_DECODER = msgspec.json.Decoder(_NamedRow)
_ROUTED_DECODER = msgspec.json.Decoder(_RoutedRow)


def member_name(audio_filepath: str) -> str:
    """Name of the archive's member that holds a row's audio.

    `stem-subN.ext` and `stem-subN` are stretches of the member `stem.ext` and `stem`; any other
    name is the member's own.

    Examples
    --------
    >>> member_name("talk-sub12.wav"), member_name("talk-sub3"), member_name("talk.wav")
    ('talk.wav', 'talk', 'talk.wav')
    """
    match = _SUB_SEGMENT.match(audio_filepath) if "-sub" in audio_filepath else None
    return match.group(1) + (match.group(2) or "") if match else audio_filepath


@register("nemo", "nemo_tarred")
class Nemo:
    """Rows of NeMo manifests; the leaf is tarred if it has tars, whatever its type is called.

    - A row's `offset` and `duration` are always honoured, in files and in members of tars: the
      sample is exactly that stretch.
    - The id of a row without `offset` is its `audio_filepath` as it stands there, `-subN`
      included, so that stretches of one member have ids of their own. With an `offset` (0
      included) it is followed by the offset and the duration in hundredths of a second, six
      digits each. A row's `id` field is kept in `custom`.
    - Rows whose `_skipme`, or that of their `custom` object, is truthy are dropped and counted.
    - `custom` holds every field of the row but `audio_filepath`, `duration`, `offset` and
      `_skipme`, then the leaf's tags.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Pair manifests with tars; see `pair_shards`."""
        tars = tuple(leaf.paths.get("tar", ()))
        if tars:
            return pair_shards(tuple(leaf.paths["manifest"]), tars, leaf.name)
        return [SourcePair(manifest=path) for path in leaf.paths["manifest"]]

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:
        """Read a block of rows; `Format.columns`."""
        rows: Sequence[_Row]
        if pair.numbers:
            rows = decode_block(_ROUTED_DECODER, _RoutedRow, block)
        else:
            rows = decode_block(_DECODER, _Row, block)
        num_rows = len(rows)
        skipped = [
            index
            for index, row in enumerate(rows)
            if (row.skipme or row.custom) and is_skipped(row.skipme, row.custom)
        ]
        kept = np.delete(np.arange(num_rows), skipped)
        if skipped:
            rows = [rows[index] for index in kept.tolist()]
        names = _names(rows)
        missing = [index for index, row in enumerate(rows) if row.duration is None]
        if missing and pair.tars:
            raise BadRowError(
                "the row has no duration",
                fix="Add its duration: the audio of a tar is not measured",
            )
        seconds = np.array(
            [0.0 if row.duration is None else row.duration for row in rows], np.float64
        )
        _check_offsets(rows)
        default_rate = leaf.options.input_sampling_rate
        rate = rates([row.sampling_rate or row.sample_rate or default_rate for row in rows])
        folder = os.path.dirname(pair.manifest)  # noqa: PTH120 - it may be a URL
        one_channel = isinstance(leaf.options.channel_selector, int)
        dropped = num_rows - len(rows)
        return RowColumns(
            num_rows=num_rows,
            kept=kept,
            duration_us=microseconds(seconds),
            num_samples=sample_counts(seconds, rate),
            rate=rate,
            channels=np.full(len(rows), 1 if one_channel else 0, np.int16),
            tar=_routes(pair, rows),
            members=[member_name(name) for name in names] if pair.tars else None,
            unmeasured=[
                Unmeasured(
                    index=index,
                    path=resolve_path(names[index], folder),
                    start=rows[index].offset or 0.0,
                )
                for index in missing
            ],
            dropped={"_skipme": dropped} if dropped else {},
            status=statuses_of([row.validation_status for row in rows]),
        )

    def member(self, row: bytes) -> str | None:
        """Name of the archive's member that holds a row's audio; None where the row has none."""
        name = decode_block(_NAME_DECODER, _NamedRow, row)[0].audio_filepath
        return member_name(name) if name else None

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        name = data.pop("audio_filepath", None)
        if not isinstance(name, str):
            raise ManifestError(
                "the row has no audio_filepath",
                where=str(place),
                fix="Index the manifest again if it has changed, else add the path",
            )
        duration: float | None = data.pop("duration", None)
        offset: float | None = data.pop("offset", None)
        data.pop("_skipme", None)
        folder = os.path.dirname(place.shard)  # noqa: PTH120 - it may be a URL
        rate = data.get("sampling_rate") or data.get("sample_rate")
        rate = rate or leaf.options.input_sampling_rate
        return Example(
            id=_stretch_id(name, offset, duration),
            text=text_of(data, leaf.options.text_field, place),
            language=text_of(data, leaf.options.lang_field, place),
            audio=Audio(
                source=parts[0].data if parts else resolve_path(name, folder),
                start=offset or 0.0,
                duration=duration,
                channel=channel_of(leaf, data, place),
                sampling_rate=None if rate is None else int(rate),
            ),
            place=place,
            custom={**data, **leaf.tags},
        )


def _names(rows: Sequence[_Row]) -> list[str]:
    names: list[str] = []
    for row in rows:
        if not row.audio_filepath:
            raise BadRowError("the row has no audio_filepath", fix="Add the path of its audio")
        names.append(row.audio_filepath)
    return names


def _check_offsets(rows: Sequence[_Row]) -> None:
    for row in rows:
        # Written so that NaN fails too.
        if row.offset is not None and not 0 <= row.offset <= MAX_SECONDS:
            raise BadRowError(
                f"the offset is {row.offset!r} seconds",
                fix=f"Write a number from 0 to {MAX_SECONDS:.0f}",
            )


def _routes(pair: SourcePair, rows: Sequence[_Row]) -> NDArray[np.int32]:
    """Index in the pair's tars for each row."""
    if not pair.tars:
        return np.full(len(rows), -1, np.int32)
    if not pair.numbers:
        return np.zeros(len(rows), np.int32)
    ordinals = {number: index for index, number in enumerate(pair.numbers)}
    routes: list[int] = []
    for row in rows:
        shard = row.shard_id if isinstance(row, _RoutedRow) else None
        if shard is None or shard not in ordinals:
            said = "the row has no shard_id" if shard is None else f"no tar has number {shard}"
            raise BadRowError(said, fix="Give the number of the tar that holds its audio")
        routes.append(ordinals[shard])
    return np.array(routes, np.int32)


def _stretch_id(name: str, offset: float | None, duration: float | None) -> str:
    if offset is None:
        return name
    parts = [offset] if duration is None else [offset, duration]
    return "-".join([name, *(f"{round(part * 100):06d}" for part in parts)])
