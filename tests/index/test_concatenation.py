from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.blend.leaf import Concatenation
from playhead.index.concatenation import joined_durations, joined_rows

SECOND = 1_000_000
LENGTHS = st.lists(st.integers(0, 40).map(lambda tenths: tenths * SECOND // 10), max_size=40)


def by_hand(durations: list[int], longest: int, gap: int) -> list[int]:
    starts, total = [], 0
    for row, duration in enumerate(durations):
        if starts and total + gap + duration <= longest:
            total += gap + duration
        else:
            starts.append(row)
            total = duration
    return [*starts, len(durations)]


@given(LENGTHS, st.integers(1, 60), st.integers(0, 20))
def test_greedy_as_by_hand(durations: list[int], tenths: int, gap: int):
    how = Concatenation(max_duration=tenths / 10, gap=gap / 10)
    columns = np.array(durations, np.int64)
    starts = joined_rows(columns, how)
    assert starts.tolist() == by_hand(durations, tenths * SECOND // 10, gap * SECOND // 10)
    lengths = joined_durations(columns, starts, how)
    sizes = np.diff(starts)
    assert lengths.sum() == sum(durations) + ((sizes - 1) * gap * SECOND // 10).sum()
    assert (lengths[sizes > 1] <= tenths * SECOND // 10).all()


@given(LENGTHS, LENGTHS)
def test_what_follows_changes_no_sample_but_the_last(durations: list[int], more: list[int]):
    how = Concatenation(max_duration=3.0, gap=0.1)
    before = joined_rows(np.array(durations, np.int64), how).tolist()
    after = joined_rows(np.array(durations + more, np.int64), how).tolist()
    assert after[: max(len(before) - 1, 0)] == before[:-1]


@pytest.mark.parametrize(
    ("longest", "gap", "lengths"),
    [(2.5, 0.0, [2.0] * 5), (5.0, 0.5, [4.0, 4.0, 4.0, 1.0]), (2.0, 0.0, [2.0] * 5)],
)
def test_ten_rows_of_a_second(longest: float, gap: float, lengths: list[float]):
    how = Concatenation(max_duration=longest, gap=gap)
    rows = np.full(10, SECOND)
    found = joined_durations(rows, joined_rows(rows, how), how)
    assert (found / SECOND).tolist() == lengths


def test_a_row_that_is_too_long_stays_alone():
    how = Concatenation(max_duration=2.0)
    rows = np.array([500, 5000, 500, 1500, 1]) * 1000
    assert joined_rows(rows, how).tolist() == [0, 1, 2, 4, 5]
