"""What every pack holds to, so that damage to its columns is noticed before it is used."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from playhead.blend.types import has_turns
from playhead.formats.columns import MAX_SECONDS
from playhead.index.columns import COLUMNS, PART_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.index.pack_table import LeafEntry

__all__ = [
    "Files",
    "check_audio",
    "check_column",
    "check_files",
    "check_layout",
    "check_parts",
    "check_sum",
]

_NOT_NEGATIVE = (
    *("num_samples", "rate", "channels", "row_offset", "row_size"),
    *("audio_offset", "audio_size"),
)
_NO_LIMIT = np.iinfo(np.int64).max
_LONGEST_US = round(MAX_SECONDS * 1_000_000)


class Files(NamedTuple):
    """The files of all leaves."""

    sizes: NDArray[np.int64]
    """Their bytes, shape (S,)."""
    have_middle: Callable[[], NDArray[np.bool_]]
    """Says of which of them offsets are those of the file as it is stored, shape (S,); only asked
    where that matters."""


def check_layout(batch: pa.RecordBatch, leaves: Sequence[LeafEntry]) -> None:
    """Check that a pack has the columns of a pack, and that its leaves lie end to end.

    Raises
    ------
    ValueError
        If it has not, or they do not.
    """
    for name, dtype in COLUMNS.items():
        if name not in batch.schema.names or batch.schema.field(name).type != _type_of(dtype):
            message = f"column {name} is not {dtype}"
            raise ValueError(message)
    rows = [leaf.num_rows for leaf in leaves]
    if [leaf.start for leaf in leaves] != [0, *accumulate(rows)][: len(rows)]:
        raise ValueError("its leaves do not lie end to end")


def check_files(leaves: Sequence[LeafEntry], num_files: int) -> None:
    """Check that a pack names the files that its leaves have.

    Raises
    ------
    ValueError
        If it does not.
    """
    if any(not 0 <= leaf.shard_start <= num_files - leaf.num_shards for leaf in leaves):
        raise ValueError("its leaves have more files than it names")


def check_column(name: str, column: NDArray[Any], leaves: Sequence[LeafEntry]) -> None:
    """Check that the numbers of a column can be what they say: one pass over it.

    Parameters
    ----------
    name
        The column.
    column
        Its numbers, shape (N,).
    leaves
        Whose rows they are, end to end.

    Raises
    ------
    ValueError
        If a number is none that a pack has.
    """
    rows = [leaf.num_rows for leaf in leaves]
    if name in ("shard", "tar"):
        least = 0 if name == "shard" else -1
        _check(name, column, least, _spread([leaf.num_shards for leaf in leaves], rows))
    elif name == "status":
        _check(name, column, -1, _spread([len(leaf.statuses) for leaf in leaves], rows))
    elif name == "duration_us":
        _check(name, column, 0, _LONGEST_US + 1)
    elif name in _NOT_NEGATIVE:
        _check(name, column, 0, None)


def check_sum(name: str, column: NDArray[Any], checksums: Mapping[str, int]) -> None:
    """Check that a column is as it was written.

    Parameters
    ----------
    name
        The column.
    column
        Its numbers, end to end.
    checksums
        What is known of the columns: their CRC-32.

    Raises
    ------
    ValueError
        If it is not.
    """
    if len(column) and checksums.get(name, checksum := crc32(column.data)) != checksum:
        message = f"column {name} has another checksum"
        raise ValueError(message)


def check_audio(
    columns: Mapping[str, NDArray[Any]], leaves: Sequence[LeafEntry], files: Files
) -> None:
    """Check that audio in archives ends before they do.

    Parameters
    ----------
    columns
        `tar`, `audio_offset` and `audio_size`, checked by themselves, shape (N,).
    leaves
        Whose rows they are, end to end.
    files
        Their files.

    Raises
    ------
    ValueError
        If some does not.
    """
    rows = [leaf.num_rows for leaf in leaves]
    first = _spread([leaf.shard_start for leaf in leaves], rows)
    _check_ends(columns, "tar", "audio_", first, files)


def check_parts(
    column: pa.LargeListArray,
    leaves: Sequence[LeafEntry],
    files: Files,
    duration_us: NDArray[np.int64],
) -> None:
    """Check that the parts of rows can be what they say.

    Parameters
    ----------
    column
        A list of parts for each row.
    leaves
        Whose rows they are, end to end.
    files
        Their files.
    duration_us
        Lengths of the rows, shape (N,).

    Raises
    ------
    ValueError, ArrowException
        If they cannot.
    """
    # Arrow trusts where variable-length values end, also beyond the end of the file.
    column.validate(full=True)
    _check_parts(column, leaves, files)
    _check_turns(column, leaves, duration_us)


def _type_of(dtype: np.dtype) -> pa.DataType:
    return pa.from_numpy_dtype(dtype)


def _check_parts(column: pa.LargeListArray, leaves: Sequence[LeafEntry], files: Files) -> None:
    ends = column.offsets.to_numpy()
    count = [int(ends[leaf.start + leaf.num_rows] - ends[leaf.start]) for leaf in leaves]
    used = slice(int(ends[0]), int(ends[-1]))
    values = {name: column.values.field(name).to_numpy()[used] for name in PART_COLUMNS}
    _check("duration_us", values["duration_us"], -1, _LONGEST_US + 1)
    _check("file", values["file"], -1, _spread([leaf.num_shards for leaf in leaves], count))
    _check("field", values["field"], 0, _spread([len(leaf.fields) for leaf in leaves], count))
    _check("offset", values["offset"], 0, None)
    _check("size", values["size"], 0, None)
    _check_ends(values, "file", "", _spread([leaf.shard_start for leaf in leaves], count), files)


def _check_turns(
    column: pa.LargeListArray, leaves: Sequence[LeafEntry], duration_us: NDArray[np.int64]
) -> None:
    """Check that the audio turns of rows are together as long as the rows."""
    talks = [leaf for leaf in leaves if has_turns(leaf.type)]
    if not talks:
        return
    ends = column.offsets.to_numpy()
    sums = np.concatenate([[0], np.cumsum(column.values.field("duration_us").to_numpy())])
    for leaf in talks:
        borders = sums[ends[leaf.start : leaf.start + leaf.num_rows + 1]]
        rows = duration_us[leaf.start : leaf.start + leaf.num_rows]
        if (np.diff(borders) != rows).any():
            raise ValueError("some rows are not as long as their audio")


def _check_ends(
    columns: Mapping[str, NDArray[Any]],
    file: str,
    prefix: str,
    first: int | NDArray[np.int64],
    files: Files,
) -> None:
    """Check that what lies in files ends before they do: nobody asks for memory beyond reason."""
    numbers = columns[file]
    if not len(numbers) or not len(files.sizes):
        return
    places = np.maximum(numbers, 0) + first
    room = np.where(numbers < 0, _NO_LIMIT, files.sizes[places])
    # The sum of two large numbers would be a small one.
    outside = columns[f"{prefix}size"] > room - columns[f"{prefix}offset"]
    if outside.any() and files.have_middle()[places[outside]].any():
        raise ValueError("some audio would end after its file")


def _spread(values: Sequence[int], count: Sequence[int]) -> int | NDArray[np.int64]:
    """What holds for each row, from what holds for each leaf."""
    if len(set(values)) <= 1:
        return max(values, default=0)
    return np.repeat(np.array(values, np.int64), count)


def _check(
    name: str, column: NDArray[Any], least: int, end: int | NDArray[np.int64] | None
) -> None:
    if not len(column):
        return
    is_bad = int(column.min()) < least
    if isinstance(end, int):
        is_bad |= int(column.max()) >= end
    elif end is not None:
        is_bad |= bool((column >= end).any())
    if is_bad:
        message = f"column {name} has a number that it cannot have"
        raise ValueError(message)
