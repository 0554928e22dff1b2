from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lhotse import CutSet
from lhotse.testing.dummies import dummy_cut

from playhead.blend.leaf import Concatenation
from playhead.index.concatenation import joined_content, joined_durations, joined_rows

SECOND = 1_000_000


def joined(seconds: list[float], **how: float) -> tuple[list[int], list[float]]:
    duration_us = np.round(np.array(seconds) * SECOND).astype(np.int64)
    concatenation = Concatenation(**how)
    starts = joined_rows(duration_us, concatenation)
    lengths = joined_durations(duration_us, starts, concatenation)
    return starts.tolist(), (lengths / SECOND).tolist()


def greedy(duration_us: list[int], limit: int, gap: int) -> list[list[int]]:
    """The same, row by row."""
    groups: list[list[int]] = []
    length = 0
    for row, duration in enumerate(duration_us):
        if groups and length + gap + duration <= limit:
            groups[-1].append(row)
            length += gap + duration
        else:
            groups.append([row])
            length = duration
    return groups


@pytest.mark.parametrize(
    ("seconds", "how", "lengths"),
    [
        ([1.0] * 10, {"max_duration": 2.5}, [2.0] * 5),
        ([1.0] * 10, {"max_duration": 5, "gap": 0.5}, [4.0, 4.0, 4.0, 1.0]),
        ([1.0] * 10, {"max_duration": 3}, [3.0, 3.0, 3.0, 1.0]),
        ([1.0, 1.0], {"max_duration": 2.1, "gap": 0.1}, [2.1]),
        ([1.0, 1.0], {"max_duration": 2.099999, "gap": 0.1}, [1.0, 1.0]),
        ([0.1, 0.2], {"max_duration": 0.3}, [0.3]),
        ([5.0, 1.0, 1.0, 9.0, 0.5], {"max_duration": 2}, [5.0, 2.0, 9.0, 0.5]),
        ([0.0, 0.0, 2.0, 0.0], {"max_duration": 2}, [2.0]),
        ([3.0], {"max_duration": 2}, [3.0]),
        ([], {"max_duration": 2}, []),
    ],
)
def test_rows_are_joined_greedily(seconds, how, lengths):
    starts, got = joined(seconds, **how)
    assert got == pytest.approx(lengths)
    assert starts[-1] == len(seconds)
    assert len(starts) == len(lengths) + 1


@given(
    st.lists(st.integers(0, 3_000_000), max_size=60),
    st.integers(1, 6_000_000),
    st.integers(0, 2_000_000),
)
def test_it_is_what_a_loop_over_rows_finds(duration_us, limit, gap):
    how = Concatenation(max_duration=limit / SECOND, gap=gap / SECOND)
    rows = np.array(duration_us, np.int64)
    starts = joined_rows(rows, how)
    groups = greedy(duration_us, limit, gap)
    assert [list(range(*pair)) for pair in pairwise(starts.tolist())] == groups
    lengths = joined_durations(rows, starts, how).tolist()
    assert lengths == [
        sum(duration_us[row] for row in group) + gap * (len(group) - 1) for group in groups
    ]


@given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=40), st.integers(1, 6_000_000))
def test_what_follows_changes_no_sample_but_the_last(duration_us, limit):
    how = Concatenation(max_duration=limit / SECOND)
    rows = np.array(duration_us, np.int64)
    whole = joined_rows(rows, how).tolist()
    for length in range(len(duration_us)):
        part = joined_rows(rows[:length], how).tolist()
        assert part[:-1] == whole[: len(part) - 1]


def test_lengths_are_those_of_lhotses_cuts():
    seconds = [0.7, 1.3, 0.4, 2.2, 0.9, 0.1, 3.5, 0.25]
    cuts = CutSet.from_cuts(dummy_cut(n, duration=s) for n, s in enumerate(seconds))
    how = {"max_duration": 3.0, "gap": 0.25}
    starts, lengths = joined(seconds, **how)
    for (first, end), length in zip(pairwise(starts), lengths, strict=True):
        rows = list(cuts)[first:end]
        whole = rows[0]
        for cut in rows[1:]:
            whole = whole.pad(duration=whole.duration + how["gap"]).append(cut)
        assert whole.duration == pytest.approx(length)


def test_a_million_rows_take_no_time():
    duration_us = np.random.default_rng(0).integers(SECOND, 20 * SECOND, 1_000_000)
    how = Concatenation(max_duration=40, gap=0.2)
    begin = time.process_time()
    starts = joined_rows(duration_us, how)
    joined_durations(duration_us, starts, how)
    assert time.process_time() - begin < 2.0
    assert len(starts) > 200_000


def content_of(seconds: list[float], rows: str = "a", **how: float):
    duration_us = np.round(np.array(seconds) * SECOND).astype(np.int64)
    concatenation = Concatenation(**how)
    starts = joined_rows(duration_us, concatenation)
    return joined_content(
        lambda n: f"{hash((rows, n)) % 2**64:016x}",
        lambda before, n: f"{before == f'{hash((rows, n)) % 2**64:016x}'} {n}",
        starts,
        concatenation,
    )


def test_a_digest_says_rows_borders_and_gap():
    seconds = [1.0] * 10
    how = {"max_duration": 2.5}
    one = content_of(seconds, **how).fingerprint
    assert [one(n) for n in range(6)] == [
        content_of(seconds, **how).fingerprint(n) for n in range(6)
    ]
    assert len({one(n) for n in range(6)}) == 6
    assert all(len(one(n)) == 16 for n in range(6))
    # A longest sample that makes the same samples is no other; a gap is, even where they fit.
    assert content_of(seconds, max_duration=2.9).fingerprint(5) == one(5)
    others = [
        content_of(seconds, rows="b", **how),
        content_of(seconds, max_duration=2.5, gap=0.1),
        content_of([2.0, *seconds[2:], 1.0], **how),
        content_of(seconds, max_duration=1.5),
    ]
    assert len({one(5), *(other.fingerprint(5) for other in others)}) == 5


def test_a_change_of_rows_is_explained_by_the_rows():
    content = content_of([1.0] * 10, max_duration=2.5)
    assert content.explain_change(content.fingerprint(3), 3) == "True 6"
    assert content.explain_change(content.fingerprint(2), 3) == "False 6"
    assert content.explain_change(content.fingerprint(2), 9) == (
        "there were 9 samples or more, and there are 5"
    )
