"""No number that a pack cannot have is let through, wherever it stands; all that it can have is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from playhead.index.columns import COLUMNS, PART_COLUMNS
from playhead.index.pack_checks import (
    Files,
    check_audio,
    check_column,
    check_files,
    check_layout,
    check_parts,
)
from playhead.index.pack_table import LeafEntry

ROWS = [3, 0, 2]
SIZES = np.array([100, 50, 100, 70, 30])
SHARDS = [(0, 2), (2, 1), (2, 3)]


def leaves(**changed) -> list[LeafEntry]:
    starts = np.cumsum([0, *ROWS])
    return [
        LeafEntry(
            **{
                "key": f"k{number}",
                "source": f"s{number}",
                "type": "nemo",
                "start": int(starts[number]),
                "num_rows": ROWS[number],
                "shard_start": SHARDS[number][0],
                "num_shards": SHARDS[number][1],
                "manifests": [],
                "statuses": ["pass"] * number,
                "fields": ["recording"] * (number + 1),
                **changed,
            }
        )
        for number in range(3)
    ]


def columns(**changed) -> dict[str, np.ndarray]:
    made = {name: np.zeros(5, dtype) for name, dtype in COLUMNS.items()}
    made["shard"] = np.array([0, 1, 0, 2, 0], np.int32)
    made["tar"] = np.array([-1, 1, 0, -1, 2], np.int32)
    made["audio_offset"] = np.array([1 << 61, 20, 60, 1 << 61, 10])
    made["audio_size"] = np.array([1 << 61, 30, 40, 1 << 61, 20])
    made["status"] = np.array([-1, -1, -1, 0, 1], np.int16)
    made["duration_us"][0] = 10**14
    for name, (row, value) in changed.items():
        made[name][row] = value
    return made


def batch(made, *, row_ends=(0, 1, 1, 2, 2, 3), part_ends=(0, 1, 2, 2, 2, 3), **parts):
    values = {"field": [0, 0, 2], "file": [0, 1, 2], "offset": [90, 0, 0], "size": [10, 50, 30]}
    values["duration_us"] = [-1, 2_000_000, -1]
    for name, (at, value) in parts.items():
        values[name][at] = value
    structs = pa.StructArray.from_arrays(
        [
            pa.array(values[name], pa.from_numpy_dtype(dtype))
            for name, dtype in PART_COLUMNS.items()
        ],
        list(PART_COLUMNS),
    )
    arrays = {name: pa.array(column) for name, column in made.items()}
    arrays["row"] = pa.Array.from_buffers(
        pa.large_binary(), 5, [None, pa.py_buffer(np.array(row_ends, "<i8")), pa.py_buffer(b"abc")]
    )
    ends = pa.array(part_ends, pa.int64())
    arrays["parts"] = pa.LargeListArray.from_arrays(ends, structs)
    return pa.record_batch(arrays)


def check(made=None, entries=None, compressed=(), **damaged):
    files = Files(SIZES, lambda: ~np.isin(np.arange(len(SIZES)), compressed))
    made = columns() if made is None else made
    entries = leaves() if entries is None else entries
    whole = batch(made, **damaged)
    check_layout(whole, entries)
    check_files(entries, len(SIZES))
    for name, column in made.items():
        check_column(name, column, entries)
    check_audio(made, entries, files)
    whole.column("row").validate(full=True)
    check_parts(whole.column("parts"), entries, files, made["duration_us"])


def test_what_a_pack_can_have():
    check()


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        *((name, 4, -1) for name in COLUMNS if name not in ("row_crc", "tar", "status")),
        ("duration_us", 2, 10**14 + 1),
        ("shard", 1, 2),
        ("shard", 3, 3),
        ("tar", 0, 2),
        ("tar", 0, -2),
        ("tar", 4, 3),
        ("status", 0, 0),
        ("status", 4, 2),
        ("status", 4, -2),
        ("audio_size", 1, 31),
        ("audio_size", 4, 21),
        ("audio_offset", 2, 1 << 62),
        ("audio_size", 2, (1 << 63) - 1),
    ],
)
def test_numbers_that_no_pack_has(name, row, value):
    with pytest.raises(ValueError, match=r"number that it cannot have|end after its file"):
        check(columns(**{name: (row, value)}))


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("field", 0, 1),
        ("field", 2, 3),
        ("field", 1, -1),
        ("file", 1, 2),
        ("file", 2, 3),
        ("file", 0, -2),
        ("offset", 0, 91),
        ("offset", 2, -1),
        ("size", 1, 51),
        ("size", 1, -1),
        ("duration_us", 1, -2),
        ("duration_us", 1, (1 << 63) - 1),
        ("size", 2, (1 << 63) - 1),
    ],
)
def test_parts_that_no_row_has(name, at, value):
    with pytest.raises(ValueError, match=r"number that it cannot have|end after its file"):
        check(**{name: (at, value)})


@pytest.mark.parametrize("ends", [(0, 1, 1, 2, 2, 4), (0, 2, 1, 2, 2, 3), (0, 1, 1, 2, 2, 1 << 40)])
def test_embedded_rows_and_parts_that_end_where_nothing_is(ends):
    with pytest.raises(pa.ArrowInvalid):
        check(row_ends=ends)
    with pytest.raises(pa.ArrowInvalid):
        check(part_ends=ends)


@pytest.mark.parametrize(
    "changed", [{"start": 0}, {"num_rows": 2}, {"shard_start": 4}, {"shard_start": -1}]
)
def test_leaves_that_do_not_fit(changed):
    with pytest.raises(ValueError, match=r"end to end|more files"):
        check(entries=leaves(**changed))


def test_other_types():
    with pytest.raises(ValueError, match="column rate is not int32"):
        check({**columns(), "rate": np.zeros(5, np.int64)})


def test_in_a_compressed_file_audio_may_end_behind_the_bytes_that_are_stored():
    made = columns()
    tar = int(made["tar"][made["tar"] >= 0][0])
    made["audio_offset"][made["tar"] == tar] = 1 << 40
    with pytest.raises(ValueError, match="end after its file"):
        check(made)
    with pytest.raises(ValueError, match="end after its file"):
        check(made, compressed=[tar + 1])
    check(made, compressed=[tar])
