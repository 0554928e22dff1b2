"""Parquet files with audio in their cells (`parquet`)."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from playhead.errors import ManifestError, StaleIndexError
from playhead.formats.base import BadRowError, SourcePair, TableRow
from playhead.formats.example import Audio, Example
from playhead.formats.parquet_cache import UNPACKED, cache_name, open_unpacked, pick_rows
from playhead.formats.parquet_file import TableFile
from playhead.formats.parquet_rows import json_rows
from playhead.formats.parquet_scan import scan_group
from playhead.formats.registry import register
from playhead.formats.row_fields import channel_of, text_of
from playhead.formats.rows import decode_row, resolve_path
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats.base import TableBlock
    from playhead.formats.example import Part, Place
    from playhead.formats.parquet_file import Columns, Group

__all__ = ["Parquet"]

_log = logging.getLogger(__name__)

_GIANT_BYTES = 512 << 20
_MOST_LAYOUTS = 1024
_REINDEX = (
    "Run `playhead index` again (`playhead pack --overwrite` where index_pack names the pack); if"
    " the file should not have changed, restore it"
)


@register("parquet")
class Parquet:
    """Rows of Parquet files whose cells hold encoded audio.

    - A cell of audio is bytes, or a struct with `bytes`; where those are null, or there are none,
      the struct's `path` names a file, looked for beside the Parquet file first.
    - The id is that of the id column; without the column, or where it is null, the file's stem and
      the row's number in the whole file, as in ``train_17``.
    - A row's duration is honoured: the sample is as long as it says. Where there is none the audio
      is taken whole, and measured by its header when the index is built.
    - Rows whose `_skipme` is truthy are dropped and counted.
    - `custom` holds every other column, then the leaf's tags; see `json_rows` for what becomes of
      types that JSON does not have.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One source a file, in declared order."""
        return [SourcePair(manifest=path) for path in leaf.paths["parquet"]]

    def scan(
        self, leaf: Leaf, pair: SourcePair, on_bad: Callable[[BadRowError], None] | None
    ) -> Iterator[TableBlock]:
        """Read a file for the index; `TableFormat.scan`."""
        file = TableFile(pair.manifest)
        columns = file.columns(leaf)
        for group in file.groups:
            yield from scan_group(file, columns, group, leaf, on_bad)

    def groups(self, leaf: Leaf, pair: SourcePair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the row groups, and warn of what makes them slow or unsafe; `TableFormat.groups`."""
        file = TableFile(pair.manifest)
        columns = file.columns(leaf)
        groups = file.groups
        for remark in _remarks(file, columns, groups, leaf):
            _log.warning("%s: %s", pair.manifest, remark)
        return file.ends, np.array([group.num_bytes for group in groups], np.int64)

    def load(
        self, leaf: Leaf, path: str, places: NDArray[np.int64], *, with_audio: bool
    ) -> list[TableRow]:
        """Read rows by their numbers in the file; `TableFormat.load`.

        The row groups that they lie in are unpacked into a cache that all processes of the machine
        share; see `open_unpacked`.

        Raises
        ------
        StaleIndexError
            If the file has no such row.
        ManifestError
            If a row has no audio.
        """
        layout = _layout_of(path)
        last = int(layout.ends[-1]) if len(layout.ends) else 0
        if len(places) and int(places.max()) >= last:
            raise StaleIndexError(
                f"the file has {last} rows and row {int(places.max())} is wanted",
                where=f"leaf {leaf.name}, {path}",
                fix=_REINDEX,
            )
        numbers = np.searchsorted(layout.ends, places, "right")
        rows: list[TableRow | None] = [None] * len(places)
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            group = layout.groups[number]
            found = _rows_of(leaf, layout, group, places[mine] - group.first, with_audio=with_audio)
            for at, row in zip(mine.tolist(), found, strict=True):
                if with_audio and row.audio is None:
                    _check_path(leaf, path, group, int(places[at]), row.row)
                rows[at] = row
        return [row for row in rows if row is not None]

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`."""
        data = decode_row(row, place)
        own, options = leaf.own, leaf.options
        path = data.pop(own["audio_field"], None)
        name = text_of(data, own["id_field"], place)
        source = parts[0].data if parts else None
        if source is None and path is not None:
            source = resolve_path(path, os.path.dirname(place.shard))  # noqa: PTH120 - paths are strings
        duration = data.get(own["duration_field"])
        text = text_of(data, options.text_field, place)
        language = text_of(data, options.lang_field, place)
        channel = channel_of(leaf, data, place)
        known = (own["id_field"], own["duration_field"], options.text_field, options.lang_field)
        for field in (*known, "_skipme"):
            data.pop(field, None)
        return Example(
            id=f"{Path(place.shard).stem}_{place.byte}" if name is None else name,
            text=text,
            language=language,
            audio=None
            if source is None
            else Audio(
                source=source,
                duration=None if duration is None else float(duration),
                channel=channel,
            ),
            place=place,
            custom={**data, **leaf.tags},
        )


def _remarks(
    file: TableFile, columns: Columns, groups: Sequence[Group], leaf: Leaf
) -> Iterator[str]:
    for giant in [group for group in groups if group.num_bytes > _GIANT_BYTES][:1]:
        yield (
            f"row group {giant.number} has {giant.num_bytes >> 20} MiB of {giant.num_rows} rows, "
            "and a row group is only unpacked whole. Write the file anew with smaller ones, "
            "such as row_group_size=1000 of pyarrow.parquet.write_table"
        )
    audio = columns.audio.leaf
    full = [] if audio is None else [group for group in groups if group.num_rows]
    blind = [group for group in full if file.num_nulls(audio or "", group) is None]
    if blind:
        yield (
            f"{len(blind)} of {len(groups)} row groups have no statistics, so rows without audio "
            "are only found when they are read. Write the file anew with write_statistics=True"
        )
    if leaf.options.text_field not in columns.others:
        yield (
            f"there is no column {leaf.options.text_field!r}, so no row has a transcript. Name the "
            f"column with text_field; there are {', '.join(file.schema.names)}"
        )


class _Layout(NamedTuple):
    """What the footer of a file says, and which state of the file it is."""

    identity: tuple[str, int, int]
    ends: NDArray[np.int64]
    groups: list[Group]


_layouts: OrderedDict[str, _Layout] = OrderedDict()


def _layout_of(path: str) -> _Layout:
    (found,) = access.stats([path])
    identity = (path, found.size, found.version)
    layout = _layouts.get(path)
    if layout is None or layout.identity != identity:
        file = TableFile(path)
        layout = _layouts[path] = _Layout(identity, file.ends, file.groups)
        while len(_layouts) > _MOST_LAYOUTS:
            _layouts.popitem(last=False)
    return layout


def _rows_of(
    leaf: Leaf, layout: _Layout, group: Group, places: NDArray[np.int64], *, with_audio: bool
) -> list[TableRow]:
    path = layout.identity[0]

    def unpack() -> Iterator[pa.RecordBatch]:
        file = TableFile(path)
        columns = file.columns(leaf)
        yield from _unpacked(file, columns, group, with_audio=with_audio)

    facts = [layout.identity, group.number, leaf.own["audio_field"], with_audio]
    unpacked = open_unpacked(
        cache_name(facts),
        unpack,
        num_bytes=group.num_bytes if with_audio else 0,
        most_bytes=leaf.options.cache_bytes,
    )
    return pick_rows(unpack(), places) if unpacked is None else unpacked.rows(places)


def _unpacked(
    file: TableFile, columns: Columns, group: Group, *, with_audio: bool
) -> Iterator[pa.RecordBatch]:
    for batch in file.batches(group, columns, with_audio=with_audio):
        try:
            content = json_rows(batch.columns)
        except BadRowError as error:
            raise ManifestError(
                error.what, where=f"{file.path}, row group {group.number}", fix=error.fix
            ) from None
        rows = pa.array(content, UNPACKED.field("row").type)
        audio = batch.audio
        if audio is None:
            audio = pa.chunked_array([pa.nulls(len(rows), pa.large_binary())])
        table = pa.Table.from_arrays([pa.chunked_array([rows]), audio], schema=UNPACKED)
        yield from table.to_batches()


def _check_path(leaf: Leaf, path: str, group: Group, place: int, row: bytes) -> None:
    if msgspec.json.decode(row).get(leaf.own["audio_field"]) is None:
        raise ManifestError(
            f"the cell of the column {leaf.own['audio_field']!r} has no audio",
            where=f"leaf {leaf.name}, {path}, row group {group.number}, row {place} counted from 0",
            fix="Fill it, or mark the row with _skipme, and index the file again",
        )
