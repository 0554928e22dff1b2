"""A Parquet file: its footer, its columns by what they are for, and its row groups in batches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from playhead.errors import DataError, PlayheadError
from playhead.storage.range_file import RangeFile

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf

__all__ = ["AudioColumn", "Batch", "Columns", "Group", "TableFile"]

# Bytes of a row group that are held decoded at a time, about.
_BATCH_BYTES = 16 << 20
_DEFAULTS = {"id_field": "id", "duration_field": "duration"}
_STATUS, _SKIP = "validation_status", "_skipme"


class AudioColumn(NamedTuple):
    """The column that holds the audio."""

    name: str
    """The column."""
    leaf: str | None
    """What holds the encoded audio as the file counts its columns; None where only paths do."""
    path: str | None
    """What holds paths, so counted; None where nothing does."""


class Columns(NamedTuple):
    """The columns of a file by what they are for."""

    audio: AudioColumn
    """The audio."""
    others: tuple[str, ...]
    """All others, in order."""
    duration: str | None
    """Seconds; None where there is none."""
    status: str | None
    """What somebody thinks of the row; None where there is none."""
    skip: str | None
    """Whether to leave the row out; None where there is none."""


class Group(NamedTuple):
    """A row group."""

    number: int
    """Its number in the file."""
    first: int
    """Rows of the file before it."""
    num_rows: int
    """Its rows."""
    num_bytes: int
    """Bytes of its columns, decompressed."""


class Batch(NamedTuple):
    """Some rows of a row group."""

    columns: dict[str, pa.ChunkedArray]
    """All columns but the audio's by name, then its paths by its name where it has any."""
    audio: pa.ChunkedArray | None
    """Encoded audio, `large_binary`; None where it was not asked for or there are only paths."""
    num_rows: int
    """How many there are."""


class TableFile:
    """An open Parquet file.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    DataError
        If it is not Parquet, or damaged.
    SourceNotFoundError
        If it does not exist.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with _damage_named(path):
            self._file = pq.ParquetFile(
                pa.PythonFile(RangeFile(path), mode="r"),
                pre_buffer=False,
                buffer_size=1 << 20,
                page_checksum_verification=True,
            )
            self._metadata = self._file.metadata
            self.schema: pa.Schema = self._file.schema_arrow
        counts = [
            self._metadata.row_group(n).num_rows for n in range(self._metadata.num_row_groups)
        ]
        self.ends: NDArray[np.int64] = np.cumsum(np.array(counts, np.int64))

    @property
    def groups(self) -> list[Group]:
        """Its row groups, in order."""
        rows = self._metadata.row_group
        starts = np.concatenate([[0], self.ends]).tolist()
        return [
            Group(n, starts[n], rows(n).num_rows, rows(n).total_byte_size)
            for n in range(len(self.ends))
        ]

    def columns(self, leaf: Leaf) -> Columns:
        """Find the columns by what they are for.

        Raises
        ------
        DataError
            If one is missing, is there twice, or has a type that cannot be used.
        """
        names: list[str] = self.schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(
                f"the file has two columns called {twice[0]!r}",
                where=self.path,
                fix="Rename one of them",
            )
        for option, default in _DEFAULTS.items():
            if leaf.own[option] not in names and leaf.own[option] != default:
                raise self._missing(leaf.own[option], option)
        if leaf.own["audio_field"] not in names:
            raise self._missing(leaf.own["audio_field"], "audio_field")
        duration = leaf.own["duration_field"]
        if duration in names:
            self._check_number(duration)
        audio = self._audio(leaf.own["audio_field"])
        return Columns(
            audio=audio,
            others=tuple(name for name in names if name != audio.name),
            duration=duration if duration in names else None,
            status=_STATUS if _STATUS in names else None,
            skip=_SKIP if _SKIP in names else None,
        )

    def num_nulls(self, column: str, group: Group) -> int | None:
        """Count the missing values of a column of a row group; None where its statistics do not.

        Parameters
        ----------
        column
            Its path in the file, such as ``audio.bytes``.
        group
            The row group.
        """
        rows = self._metadata.row_group(group.number)
        for number in range(rows.num_columns):
            chunk = rows.column(number)
            if chunk.path_in_schema == column:
                statistics = chunk.statistics
                if statistics is None or not statistics.has_null_count:
                    return None
                return statistics.null_count
        return None

    def batches(self, group: Group, columns: Columns, *, with_audio: bool) -> Iterator[Batch]:
        """Read a row group piece by piece, its audio or not.

        Raises
        ------
        DataError
            If the row group is damaged.
        """
        audio = columns.audio
        wanted = [*columns.others]
        if audio.path is not None:
            wanted.append(audio.path)
        if with_audio and audio.leaf is not None:
            wanted.append(audio.leaf)
        rows = group.num_rows
        size = group.num_bytes if with_audio else self._bytes_without(audio, group)
        batch_rows = max(1, min(rows, 65_536, rows * _BATCH_BYTES // max(size, 1)))
        with _damage_named(f"{self.path}, row group {group.number}"):
            batches = self._file.iter_batches(
                batch_rows, row_groups=[group.number], columns=wanted, use_threads=False
            )
            seen = 0
            for batch in batches:
                seen += batch.num_rows
                yield _parted(batch, columns, with_audio=with_audio)
            if seen != rows:
                raise DataError(
                    f"the row group has {seen} rows and its footer says {rows}",
                    where=f"{self.path}, row group {group.number}",
                    fix="Restore the file, or write it anew",
                )

    def _bytes_without(self, audio: AudioColumn, group: Group) -> int:
        rows = self._metadata.row_group(group.number)
        chunks = [rows.column(number) for number in range(rows.num_columns)]
        return sum(c.total_uncompressed_size for c in chunks if c.path_in_schema != audio.leaf)

    def _audio(self, name: str) -> AudioColumn:
        kind = _stored(self.schema.field(name).type)
        if _is_binary(kind):
            return AudioColumn(name, name, None)
        if pa.types.is_struct(kind):
            fields = {
                kind.field(n).name: _stored(kind.field(n).type) for n in range(kind.num_fields)
            }
            has_bytes = _is_binary(fields.get("bytes", pa.null()))
            has_path = _is_text(fields.get("path", pa.null()))
            if has_bytes or has_path:
                return AudioColumn(
                    name,
                    f"{name}.bytes" if has_bytes else None,
                    f"{name}.path" if has_path else None,
                )
        raise DataError(
            f"the column {name!r} holds {kind}, which is no audio",
            where=self.path,
            fix="Name the column with audio_field: its cells are encoded files, or structs with "
            "`bytes` or `path`",
        )

    def _check_number(self, name: str) -> None:
        kind = _stored(self.schema.field(name).type)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (is_number or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise DataError(
                f"the column {name!r} holds {kind}, not a number of seconds",
                where=self.path,
                fix="Name the column of the durations with duration_field, or leave the column out",
            )

    def _missing(self, name: str, option: str) -> DataError:
        return DataError(
            f"the file has no column {name!r}",
            where=self.path,
            fix=f"Name the column with {option}; there are {', '.join(self.schema.names)}",
        )


def _parted(batch: pa.RecordBatch, columns: Columns, *, with_audio: bool) -> Batch:
    table = pa.Table.from_batches([batch])
    parted: dict[str, pa.ChunkedArray] = {name: table.column(name) for name in columns.others}
    name, leaf, path = columns.audio
    if path is not None:
        parted[name] = _field(table.column(name), "path")
    audio = None
    if with_audio and leaf is not None:
        cells = table.column(name)
        audio = _as_bytes(cells if leaf == name else _field(cells, "bytes"))
    return Batch(parted, audio, batch.num_rows)


def _as_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = pa.large_binary()
    return pa.chunked_array([_storage(chunk).cast(kind) for chunk in column.chunks], kind)


def _field(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    # Missing where the struct is missing.
    return pc.call_function("struct_field", [column], pc.StructFieldOptions([name]))


def _stored(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _stored(kind.storage_type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _storage(array: Any) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        return _storage(array.storage)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_binary(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        )
    )


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


@contextmanager
def _damage_named(where: str) -> Generator[None]:
    """Say of Arrow's errors where they are; those of the disk stay what they are."""
    try:
        yield
    except PlayheadError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        said = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"the file is not Parquet, or damaged: {said[:300]}",
            where=where,
            fix="Restore the file, or write it anew",
        ) from error
