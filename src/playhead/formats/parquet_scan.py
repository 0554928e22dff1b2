"""A Parquet file as the index reads it: columns of its rows, without their audio where it can."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from playhead.formats.base import BadRowError, RowColumns, TableBlock
from playhead.formats.columns import MAX_SECONDS, microseconds, rates, sample_counts
from playhead.formats.headers import Encoded, Header, read_headers
from playhead.formats.parquet_file import Batch
from playhead.formats.parquet_rows import json_rows, python_values
from playhead.formats.rows import is_skipped, resolve_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats.parquet_file import Columns, Group, TableFile

__all__ = ["scan_group"]


class _Lengths(NamedTuple):
    """How long rows are; arrays of shape (K,)."""

    duration_us: NDArray[np.int64]
    num_samples: NDArray[np.int64]
    rate: NDArray[np.int32]
    channels: NDArray[np.int16]


def scan_group(
    file: TableFile,
    columns: Columns,
    group: Group,
    leaf: Leaf,
    on_bad: Callable[[BadRowError], None] | None,
) -> Iterator[TableBlock]:
    """Read a row group for the index.

    The audio is read only where a row has no duration, or where some rows have no audio and the
    statistics do not say which.

    Raises
    ------
    BadRowError
        If a row cannot be used; row group and row are named.
    DataError
        If the row group is damaged.
    """
    no_audio = None if columns.audio.leaf is None else file.num_nulls(columns.audio.leaf, group)
    with_audio = columns.audio.leaf is not None and (
        no_audio not in (None, 0, group.num_rows) or _lacks_durations(file, columns, group)
    )
    first = group.first
    for batch in file.batches(group, columns, with_audio=with_audio):
        has_bytes = columns.audio.leaf is not None and no_audio != group.num_rows
        rows = _Rows(file.path, group, first, batch, has_bytes)
        try:
            yield _block(columns, leaf, rows)
        except BadRowError:
            if on_bad is None:
                raise
            yield from _good_ones(columns, leaf, rows, on_bad)
        first += batch.num_rows


class _Rows(NamedTuple):
    """Some rows of a row group."""

    path: str
    group: Group
    first: int
    batch: Batch
    has_bytes: bool
    """Whether some cell may have bytes, read or not."""

    def part(self, start: int, stop: int) -> _Rows:
        """Some of them."""
        size, batch = stop - start, self.batch
        part = Batch(
            {name: column.slice(start, size) for name, column in batch.columns.items()},
            None if batch.audio is None else batch.audio.slice(start, size),
            size,
        )
        return self._replace(first=self.first + start, batch=part)

    def bad(self, at: int, what: str, fix: str) -> BadRowError:
        """The error of one of them."""
        return BadRowError(
            f"row {self.first + at} counted from 0, row group {self.group.number}: {what}", fix=fix
        )


def _good_ones(
    columns: Columns, leaf: Leaf, rows: _Rows, on_bad: Callable[[BadRowError], None]
) -> Iterator[TableBlock]:
    """Read rows in halves, down to those that cannot be used."""
    if rows.batch.num_rows == 0:
        return
    try:
        yield _block(columns, leaf, rows)
    except BadRowError as error:
        if rows.batch.num_rows == 1:
            on_bad(error)
            return
        middle = rows.batch.num_rows // 2
        for start, stop in ((0, middle), (middle, rows.batch.num_rows)):
            yield from _good_ones(columns, leaf, rows.part(start, stop), on_bad)


def _lacks_durations(file: TableFile, columns: Columns, group: Group) -> bool:
    """Whether some row has no duration."""
    if columns.duration is None:
        return True
    missing = file.num_nulls(columns.duration, group)
    if missing is not None:
        return missing > 0
    batches = file.batches(group, columns, with_audio=False)
    return any(batch.columns[columns.duration].null_count > 0 for batch in batches)


def _block(columns: Columns, leaf: Leaf, rows: _Rows) -> TableBlock:
    content = _json(rows)
    kept = np.arange(rows.batch.num_rows)
    if columns.skip is not None:
        skip = python_values(rows.batch.columns[columns.skip], columns.skip)
        kept = np.flatnonzero([not is_skipped(value, None) for value in skip])
    _check_audio(columns, rows, kept)
    lengths = _lengths(columns, leaf, rows, kept)
    dropped = rows.batch.num_rows - len(kept)
    status = None
    if columns.status is not None:
        values = python_values(rows.batch.columns[columns.status], columns.status)
        status = [None if values[at] is None else str(values[at]) for at in kept.tolist()]
    return TableBlock(
        columns=RowColumns(
            num_rows=rows.batch.num_rows,
            kept=kept,
            duration_us=lengths.duration_us,
            num_samples=lengths.num_samples,
            rate=lengths.rate,
            channels=lengths.channels,
            tar=np.full(len(kept), -1, np.int32),
            dropped={"_skipme": dropped} if dropped else {},
            status=status if status is not None and any(s is not None for s in status) else None,
        ),
        rows=[content[at] for at in kept.tolist()],
        place=kept + rows.first,
    )


def _check_audio(columns: Columns, rows: _Rows, kept: NDArray[np.int64]) -> None:
    """Refuse rows that have neither audio nor a path, as far as that can be seen."""
    name, leaf, path = columns.audio
    silent = np.ones(rows.batch.num_rows, bool)
    if path is not None:
        silent &= _is_null(rows.batch.columns[name])
    if rows.batch.audio is not None:
        silent &= _is_null(rows.batch.audio)
    elif leaf is not None and rows.has_bytes:
        return
    bad = kept[silent[kept]]
    if len(bad):
        raise rows.bad(
            int(bad[0]),
            f"the cell of the column {name!r} has no audio",
            "Fill it, or mark the row with _skipme",
        )


def _json(rows: _Rows) -> list[bytes]:
    """Write the rows as JSON, those of a bad row's batch one by one, to find it."""
    columns = rows.batch.columns
    try:
        return json_rows(columns)
    except BadRowError:
        return [_one_json(rows, at) for at in range(rows.batch.num_rows)]


def _one_json(rows: _Rows, at: int) -> bytes:
    try:
        return json_rows({n: column.slice(at, 1) for n, column in rows.batch.columns.items()})[0]
    except BadRowError as error:
        raise rows.bad(at, error.what, error.fix) from None


def _lengths(columns: Columns, leaf: Leaf, rows: _Rows, kept: NDArray[np.int64]) -> _Lengths:
    seconds, missing = _declared(columns, rows, kept)
    default = rates([leaf.own["sampling_rate"] or leaf.options.input_sampling_rate])
    rate = np.repeat(default, len(kept))
    one_channel = isinstance(leaf.options.channel_selector, int)
    lengths = _Lengths(
        microseconds(seconds),
        sample_counts(seconds, rate),
        rate,
        np.full(len(kept), 1 if one_channel else 0, np.int16),
    )
    if len(missing):
        headers = _measured(columns, rows, kept[missing])
        frames = np.array([header.frames for header in headers], np.int64)
        hertz = np.array([header.rate for header in headers], np.int32)
        lengths.duration_us[missing] = microseconds(frames / hertz)
        lengths.num_samples[missing] = frames
        lengths.rate[missing] = hertz
        if not one_channel:
            lengths.channels[missing] = [header.channels for header in headers]
    return lengths


def _declared(
    columns: Columns, rows: _Rows, kept: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The seconds of the kept rows, and the places of those that have none."""
    if columns.duration is None:
        return np.zeros(len(kept)), np.arange(len(kept))
    column = rows.batch.columns[columns.duration]
    missing = _is_null(column)[kept]
    seconds = np.zeros(len(kept))
    declared: Any = column.cast(pa.float64()).to_numpy()
    seconds[~missing] = declared[kept[~missing]]
    good = (seconds >= 0) & (seconds <= MAX_SECONDS)
    if not good.all():
        at = int(np.argmin(good))
        raise rows.bad(
            int(kept[at]),
            f"the duration is {float(seconds[at])!r} seconds",
            f"Write a number from 0 to {MAX_SECONDS:.0f}, or null to have it measured",
        )
    return seconds, np.flatnonzero(missing)


def _measured(columns: Columns, rows: _Rows, places: NDArray[np.int64]) -> list[Header]:
    """Read the headers of rows' audio, several at a time."""
    paths: list[str | None] = [None] * rows.batch.num_rows
    if columns.audio.path is not None:
        paths = python_values(rows.batch.columns[columns.audio.name], columns.audio.name)
    folder = os.path.dirname(rows.path)  # noqa: PTH120 - paths are strings

    def source(at: int) -> Encoded:
        data = None if rows.batch.audio is None else rows.batch.audio[at].as_py()
        return data if data is not None else resolve_path(paths[at] or "", folder)

    headers: list[Header] = []
    wanted: list[int] = places.tolist()
    for at, found in zip(wanted, read_headers(list(map(source, wanted))), strict=True):
        if isinstance(found, BadRowError):
            raise rows.bad(at, found.what, found.fix)
        headers.append(found)
    return headers


def _is_null(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(), bool)
