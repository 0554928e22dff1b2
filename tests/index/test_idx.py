import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import IndexFileError, IndexMissingError
from playhead.index.idx import read_idx, summarize_idx, write_idx, write_idx_blocks


def test_bytes_are_little_endian_and_nothing_else(tmp_path):
    path = tmp_path / "a.jsonl.idx"
    write_idx(path, np.array([0, 258, 1 << 40], np.uint64))
    assert path.read_bytes() == bytes(8) + b"\2\1" + bytes(6) + bytes(5) + b"\1" + bytes(2)


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1).map(sorted))
def test_round_trip(tmp_path_factory, offsets):
    path = tmp_path_factory.getbasetemp() / "round.idx"
    write_idx(path, np.array(offsets, np.uint64))
    found = read_idx(path)
    assert found.dtype == np.uint64
    assert found.tolist() == offsets
    summary = summarize_idx(path)
    assert summary.records == len(offsets) - 1
    assert summary.head == tuple(offsets[:2])
    assert summary.sentinel == offsets[-1]


def test_pieces_make_one_file(tmp_path):
    path = tmp_path / "a.idx"
    blocks = [np.arange(0, 300_000), np.array([], np.uint64), np.array([300_000, 300_007])]
    assert write_idx_blocks(path, blocks) == 300_001
    assert summarize_idx(path).records == 300_001
    assert summarize_idx(path).sentinel == 300_007
    np.testing.assert_array_equal(read_idx(path)[:-1], np.arange(300_001))


def test_a_failing_source_leaves_the_old_index(tmp_path):
    path = tmp_path / "a.idx"
    write_idx(path, np.array([0, 5]))

    def blocks():
        yield np.array([0])
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_idx_blocks(path, blocks())
    assert read_idx(path).tolist() == [0, 5]
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.idx"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (bytes(7), "cut short"),
        (bytes(8) + b"\1", "cut short"),
        (np.array([0, 9, 8], "<u8").tobytes(), "do not increase"),
        (np.array([0] * 200_000 + [5] * 70_000 + [4], "<u8").tobytes(), "do not increase"),
        (np.repeat(np.array([7, 3], "<u8"), 1 << 17).tobytes(), "do not increase"),
    ],
)
def test_what_is_no_index_is_refused_by_name(tmp_path, data, message):
    path = tmp_path / "broken.idx"
    path.write_bytes(data)
    for read in (read_idx, summarize_idx):
        with pytest.raises(IndexFileError, match=rf"{message}.*broken\.idx.*playhead index"):
            read(path)


def test_missing_index(tmp_path):
    with pytest.raises(IndexMissingError, match="playhead index"):
        read_idx(tmp_path / "a.idx")
