from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.index import columns as columns_module
from playhead.index.columns import COLUMNS, ColumnSpool, Digester, prefix_fingerprint

CONTENT = sorted(set(COLUMNS) - {"rate", "channels", "status"})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a few rows reach over several digests."""
    monkeypatch.setattr(columns_module, "DIGEST_ROWS", 4)


def random_columns(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, 1000, rows).astype(dtype) for name, dtype in COLUMNS.items()}


def digested(columns: dict[str, np.ndarray], cuts: list[int]) -> Digester:
    """The rows in blocks that end at `cuts`."""
    digester = Digester()
    ends = sorted({*cuts, len(columns["shard"])})
    for start, end in zip([0, *ends], ends, strict=False):
        digester.append({name: column[start:end] for name, column in columns.items()})
    return digester


def fingerprint(columns: dict[str, np.ndarray], n: int) -> str:
    return prefix_fingerprint(columns, digested(columns, []).digests, n)


@given(st.integers(0, 20), st.lists(st.integers(0, 20)))
def test_how_the_rows_come_does_not_matter(rows: int, cuts: list[int]):
    columns = random_columns(rows)
    whole = digested(columns, [])
    parts = digested(columns, [cut for cut in cuts if cut <= rows])
    assert parts.digests == whole.digests
    assert len(whole.digests) == rows // 4
    assert parts.fingerprint() == whole.fingerprint() == fingerprint(columns, rows)


@given(st.integers(0, 20), st.integers(0, 20), st.data())
def test_a_grown_leaf_keeps_the_fingerprint_of_its_first_rows(old: int, more: int, data):
    grown = random_columns(old + more)
    before = {name: column[:old] for name, column in grown.items()}
    n = data.draw(st.integers(0, old))
    assert fingerprint(before, n) == fingerprint(grown, n)


@given(st.integers(1, 20), st.data())
def test_any_change_in_the_first_rows_is_seen(rows: int, data):
    columns = random_columns(rows)
    n = data.draw(st.integers(1, rows))
    row = data.draw(st.integers(0, rows - 1))
    name = data.draw(st.sampled_from(CONTENT))
    changed = {key: column.copy() for key, column in columns.items()}
    changed[name][row] += 1
    assert (fingerprint(columns, n) == fingerprint(changed, n)) is (row >= n)


@given(st.integers(0, 20), st.integers(0, 20))
def test_numbers_of_rows_are_told_apart(one: int, other: int):
    columns = random_columns(20)
    assert (fingerprint(columns, one) == fingerprint(columns, other)) is (one == other)


def test_zeros_do_not_hide_the_number_of_rows():
    columns = {name: np.zeros(9, dtype) for name, dtype in COLUMNS.items()}
    assert len({fingerprint(columns, n) for n in range(10)}) == 10


def test_what_is_learnt_later_is_not_content():
    columns = random_columns(6)
    changed = columns | {"rate": columns["rate"] + 1, "channels": columns["channels"] + 1}
    assert fingerprint(columns, 6) == fingerprint(changed, 6)


def test_fingerprints_are_the_same_everywhere():
    """They are stored in checkpoints: this value may only change with the pack's version."""
    columns = {
        name: np.arange(6, dtype=dtype) + np.asarray(i, dtype)
        for i, (name, dtype) in enumerate(COLUMNS.items())
    }
    assert fingerprint(columns, 6) == "a37401758af97bc6"
    assert fingerprint(columns, 0) == "0f4d1e41a4e7df6d"


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=6), st.booleans())
def test_a_spool_gives_back_what_was_appended(tmp_path_factory, blocks, embed: bool):
    with closing(
        ColumnSpool(tmp_path_factory.mktemp("spool"), embed=embed, with_parts=False)
    ) as spool:
        expected, data, ends = [], b"", [0]
        for seed, (size, with_rows) in enumerate(blocks):
            columns = random_columns(size, seed)
            rows = [bytes([seed]) * int(n) for n in columns["row_size"]] if with_rows else None
            spool.append(columns, rows if embed else None)
            expected.append(columns)
            for i in range(size):
                data += rows[i] if rows is not None and embed else b""
                ends.append(len(data))
        assert spool.num_rows == len(ends) - 1
        for name, dtype in COLUMNS.items():
            whole = np.concatenate([np.zeros(0, dtype), *(columns[name] for columns in expected)])
            np.testing.assert_array_equal(spool.read(name, 0, spool.num_rows), whole)
            middle = spool.num_rows // 2
            np.testing.assert_array_equal(spool.read(name, middle, len(whole)), whole[middle:])
        assert ("row" in spool.files) is embed
        if embed:
            for name, content in (("row", data), ("row_end", np.array(ends, "<i8").tobytes())):
                spool.files[name].seek(0)
                assert spool.files[name].read() == content
