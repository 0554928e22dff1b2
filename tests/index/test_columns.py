from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.index import columns as columns_module
from playhead.index.columns import COLUMNS, ColumnSpool, block_digests, prefix_fingerprint

CONTENT = sorted(set(COLUMNS) - {"rate", "channels"})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a few rows reach over several digests."""
    monkeypatch.setattr(columns_module, "DIGEST_ROWS", 4)


def random_columns(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, 1000, rows).astype(dtype) for name, dtype in COLUMNS.items()}


def fingerprint(columns: dict[str, np.ndarray], n: int) -> str:
    return prefix_fingerprint(columns, block_digests(columns), n)


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
    assert fingerprint(columns, 6) == "8b9d69d1936d1d81"
    assert fingerprint(columns, 0) == "0f4d1e41a4e7df6d"


@settings(max_examples=20)
@given(st.lists(st.integers(0, 7), max_size=6), st.booleans())
def test_a_spool_gives_back_what_was_appended(tmp_path_factory, sizes: list[int], embed: bool):
    spool = ColumnSpool(tmp_path_factory.mktemp("spool"))
    blocks = [random_columns(size, seed) for seed, size in enumerate(sizes)]
    for seed, block in enumerate(blocks):
        spool.append(block, bytes([seed]) * seed if embed else None)
    assert spool.num_rows == sum(sizes)
    for name, dtype in COLUMNS.items():
        expected = np.concatenate([np.zeros(0, dtype), *(block[name] for block in blocks)])
        np.testing.assert_array_equal(spool.column(name), expected)
        assert spool.column(name).dtype == dtype
    expected_bytes = b"".join(bytes([seed]) * seed for seed in range(len(sizes)))
    assert spool.row_bytes().tobytes() == (expected_bytes if embed else b"")
    spool.close()
