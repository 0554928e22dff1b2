from __future__ import annotations

import datetime as dt
import decimal
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.formats import BadRowError
from playhead.formats.parquet_rows import json_rows

MOMENT = dt.datetime.fromisoformat("2024-01-31T09:30:00.250")


def rows(values: list, kind: pa.DataType) -> list:
    column = pa.chunked_array([pa.array(values, kind)])
    return [json.loads(row)["a"] for row in json_rows({"a": column})]


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        ("ü", pa.string(), "ü"),
        ("ü", pa.large_string(), "ü"),
        ("ü", pa.dictionary(pa.int8(), pa.string()), "ü"),
        (2**64 - 1, pa.uint64(), 2**64 - 1),
        (-5, pa.int8(), -5),
        (True, pa.bool_(), True),
        (0.1, pa.float64(), 0.1),
        (math.nan, pa.float64(), None),
        (-math.inf, pa.float32(), None),
        (b"x\xff", pa.binary(), "eP8="),
        (decimal.Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        (MOMENT.date(), pa.date32(), "2024-01-31"),
        (MOMENT.time(), pa.time64("us"), "09:30:00.250000"),
        (MOMENT, pa.timestamp("ms"), "2024-01-31 09:30:00.250"),
        (MOMENT, pa.timestamp("ns"), "2024-01-31 09:30:00.250000000"),
        (dt.timedelta(seconds=2), pa.duration("ms"), 2000),
        ([1, None], pa.list_(pa.int32()), [1, None]),
        ([MOMENT], pa.list_(pa.timestamp("s"), 1), ["2024-01-31 09:30:00"]),
        ([[1], []], pa.large_list(pa.list_(pa.int32())), [[1], []]),
        ({"x": MOMENT.date(), "y": None}, pa.struct([("x", pa.date32()), ("y", pa.int8())]),
         {"x": "2024-01-31", "y": None}),
        ([("k", MOMENT.date())], pa.map_(pa.string(), pa.date32()), [["k", "2024-01-31"]]),
    ],
)  # fmt: skip
def test_every_type_has_a_form_in_json(value, kind, written):
    assert rows([value], kind) == [written]
    assert rows([None, value, None, value], kind) == [None, written, None, written]
    # The same of a slice, whose buffers begin elsewhere.
    array = pa.array([value, None, value, value, None], kind)
    sliced = json_rows({"a": pa.chunked_array([array.slice(1, 3)])})
    assert [json.loads(row)["a"] for row in sliced] == [None, written, written]


def test_moments_with_a_zone_are_in_utc():
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    for zone in ("Europe/Berlin", "UTC", "+05:30"):
        assert rows([moment], pa.timestamp("s", zone)) == ["2024-07-01 10:00:00Z"]


def test_keys_stand_in_the_order_of_the_columns():
    columns = {name: pa.chunked_array([[1]]) for name in ("z", "a", "m")}
    assert json_rows(columns) == [b'{"z":1,"a":1,"m":1}']
    assert json_rows({}) == []


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (pa.array([b"a", b"\xff"], pa.binary()).view(pa.string()), "'a' is not UTF-8"),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]),
            "two fields of one name",
        ),
    ],
)
def test_what_has_no_form_is_refused_by_its_column(array, says):
    with pytest.raises(BadRowError, match=says):
        json_rows({"a": pa.chunked_array([array])})


VALUES = st.one_of(
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text(st.characters(codec="utf-8")))),
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pa.float32()), st.lists(st.none() | st.floats(width=32))),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans())),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.binary())),
    st.tuples(
        st.just(pa.list_(pa.struct([("x", pa.timestamp("us")), ("y", pa.float64())]))),
        st.lists(
            st.none()
            | st.lists(
                st.none()
                | st.fixed_dictionaries({"x": st.none() | st.datetimes(), "y": st.floats()}),
                max_size=3,
            )
        ),
    ),
)


@given(VALUES, st.integers(1, 5), st.integers(1, 4))
def test_a_row_has_the_same_bytes_however_it_is_read(tmp_path_factory, typed, group, batch):
    kind, values = typed
    path = tmp_path_factory.mktemp("rows") / "t.parquet"
    table = pa.table({"a": pa.array(values, kind), "n": range(len(values))})
    pq.write_table(table, path, row_group_size=group)
    whole = json_rows(dict(zip("an", pq.read_table(path).columns, strict=True)))
    file = pq.ParquetFile(path)
    parts = [
        row
        for part in file.iter_batches(batch)
        for row in json_rows(dict(zip("an", pa.Table.from_batches([part]).columns, strict=True)))
    ]
    assert parts == whole
    assert len(whole) == len(values)
