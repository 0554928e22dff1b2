"""Rows on their way from a source to a pack: what the scans of all kinds of sources share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.errors import PlayheadError
from playhead.formats import BadRowError
from playhead.index.columns import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats import RowColumns, SourcePair
    from playhead.index.columns import Block, Parts

__all__ = [
    "Rows",
    "ScanTask",
    "columns_of",
    "extent",
    "or_skip",
    "shared_columns",
    "status_codes",
    "typed",
]

_MOST_STATUSES = 1_000


class Rows(NamedTuple):
    """Some rows that are kept."""

    columns: Block
    """An array for each column."""
    data: list[bytes] | None
    """The bytes of each, where those are embedded."""
    position: int
    """Bytes of the manifest that have been read so far, decompressed."""
    statuses: list[str]
    """What the column `status` counts."""
    parts: Parts | None = None
    """What lies in other files; None where rows have no parts."""


@dataclass(kw_only=True)
class ScanTask:
    """One manifest to read, with what it needs to know of its leaf."""

    leaf: Leaf
    """The leaf."""
    pair: SourcePair
    """The manifest and its archives."""
    first_shard: int
    """Place of the manifest in the leaf's shard table; its archives follow."""
    embed: bool
    """Whether the rows' bytes go into the pack."""
    skip_bad_rows: bool
    """Whether rows that cannot be used are counted rather than raised."""
    has_offsets: bool = True
    """Whether archives are opened, to find where their members lie."""
    offsets_from: str | None = None
    """A pack of NeMo that says where those begin."""
    reader: type | None = None
    """The class of its input type: it travels by name, which loads and registers it."""
    field_codes: dict[str, int] = field(default_factory=dict[str, int])
    """Number of each field among those of the leaf."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Rows left out, by reason; complete when the task is done."""


def columns_of(reader: Any, task: ScanTask, data: bytes) -> RowColumns:
    """What a type says of some lines; what fails in a type of somebody's own is a bad row."""
    try:
        return reader.columns(task.leaf, task.pair, data)
    except (PlayheadError, MemoryError):
        raise
    except Exception as error:
        raise BadRowError(
            f"the input type {task.leaf.type!r} fails: {type(error).__name__}: {error}",
            fix="Correct the row, or the type",
        ) from error


def shared_columns(rows: RowColumns, first_shard: int) -> Block:
    """The columns that lines and tables have alike."""
    return {
        "duration_us": rows.duration_us,
        "num_samples": rows.num_samples,
        "rate": rows.rate,
        "channels": rows.channels,
        "shard": np.full(len(rows.kept), first_shard, np.int32),
        "tar": np.where(rows.tar < 0, -1, rows.tar + (first_shard + 1)),
        "audio_offset": np.zeros(len(rows.kept), np.int64),
        "audio_size": np.zeros(len(rows.kept), np.int64),
    }


def typed(columns: Block) -> Block:
    """The columns of a pack, each of its type."""
    return {name: np.ascontiguousarray(columns[name], dtype) for name, dtype in COLUMNS.items()}


def status_codes(rows: RowColumns) -> tuple[NDArray[np.int16], list[str]]:
    """Number the rows' statuses; -1 where a row has none."""
    if rows.status is None:
        return np.full(len(rows.kept), -1, np.int16), []
    codes: dict[str, int] = {}
    numbers = [-1 if text is None else codes.setdefault(text, len(codes)) for text in rows.status]
    if len(codes) > _MOST_STATUSES:
        raise BadRowError(
            f"the rows have more than {_MOST_STATUSES} values of validation_status",
            fix="Write a short word there, such as pass",
        )
    return np.array(numbers, np.int16), list(codes)


def extent(parts: Parts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the first part of each row begins, and the bytes of all: they tell data apart."""
    ends = np.cumsum(parts.num_parts)
    starts = ends - parts.num_parts
    has = parts.num_parts > 0
    offset, size = np.zeros(len(has), np.int64), np.zeros(len(has), np.int64)
    if has.any():
        offset[has] = parts.offset[starts[has]]
        size[has] = np.add.reduceat(parts.size, starts[has])
    return offset, size


def or_skip(fix: str) -> str:
    """What else can be done about a bad row."""
    return f"{fix}, or leave such rows out with `playhead index --skip-bad-rows`"
