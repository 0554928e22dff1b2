"""Side files: read by anyone, and no bit of them is believed that was not written."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import IndexFileError
from playhead.tokens import side_file
from playhead.tokens.side_file import SideColumns, read_side, write_side


def content_of(rows: int) -> SideColumns:
    rng = np.random.default_rng(rows)
    columns = {
        "tokens": rng.integers(0, 500, rows, dtype=np.uint32),
        "cer": np.where(rng.random(rows) < 0.3, np.nan, rng.random(rows)),
        "speaker": rng.random(rows) < 0.5,
    }
    return SideColumns(columns, rows, "0123456789abcdef", "fedcba9876543210")


@pytest.mark.parametrize("rows", [0, 1, 7, 300, 700, 1000, 5000])
def test_what_is_written_is_read(tmp_path, rows):
    path, content = tmp_path / "a.arrow", content_of(rows)
    write_side(path, content)
    read = read_side(path)
    assert read is not None
    assert read[1:] == content[1:]
    for name, column in content.columns.items():
        assert read.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(read.columns[name], column)
        with pytest.raises(ValueError, match="read-only"):
            read.columns[name][:1] = 0


def test_anyone_can_open_it(tmp_path):
    path, content = tmp_path / "a.arrow", content_of(100)
    write_side(path, content)
    with pa.ipc.open_file(path) as reader:
        table = reader.read_all()
    assert table["tokens"].to_pylist() == content.columns["tokens"].tolist()
    assert table.schema.field("tokens").type == pa.uint32()
    assert table.schema.metadata[b"playhead.side.digest"] == b"fedcba9876543210"
    assert table.schema.metadata[b"playhead.side.fingerprint"] == b"0123456789abcdef"
    assert table.schema.metadata[b"playhead.side.rows"] == b"100"


def test_no_file_is_none_and_so_is_another_version(tmp_path, monkeypatch):
    path = tmp_path / "a.arrow"
    assert read_side(path) is None
    monkeypatch.setattr(side_file, "SIDE_VERSION", "0")
    write_side(path, content_of(5))
    monkeypatch.undo()
    assert read_side(path) is None


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("side") / "a.arrow"
    write_side(path, content_of(1500))
    return path.read_bytes()


@given(data=st.data())
def test_a_bit_that_is_another_is_noticed(tmp_path_factory, written, data):
    place = data.draw(st.integers(0, len(written) - 1))
    bit = data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("bit") / "a.arrow"
    path.write_bytes(written[:place] + bytes([written[place] ^ (1 << bit)]) + written[place + 1 :])
    with pytest.raises(IndexFileError, match=re.escape(str(path))):
        read_side(path)


@given(data=st.data())
def test_a_part_of_a_file_is_noticed(tmp_path_factory, written, data):
    size = data.draw(st.integers(0, len(written) - 1))
    path = tmp_path_factory.mktemp("part") / "a.arrow"
    path.write_bytes(written[:size])
    with pytest.raises(IndexFileError, match="damaged"):
        read_side(path)


@pytest.mark.parametrize("data", [b"", b"no Arrow file", b"crc32:00000000" * 2])
def test_other_files_are_refused(tmp_path, data):
    path = tmp_path / "a.arrow"
    path.write_bytes(data)
    with pytest.raises(IndexFileError, match=r"damaged.*a\.arrow.*Delete"):
        read_side(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(IndexFileError, match="damaged"):
        read_side(path)
