"""Cuts: hard bounds, nothing lost, and a multiple of the step at little cost."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.plan import Batching
from playhead.plan.cut import (
    Cut,
    PackedCosts,
    PaddedCosts,
    RunningCut,
    cut_by_class,
    cut_evenly,
    cut_fixed,
    shrink,
    split,
)
from playhead.plan.effort import Effort


def _greedy(effort, limit, most):
    starts, at, longest = [], 0, 0
    for place, value in enumerate(effort):
        longest = max(longest, value)
        if place == at or (place - at + 1) * longest > limit or place - at >= most:
            starts.append(place)
            at, longest = place, value
    return starts


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=80),
    st.integers(1, 200),
    st.integers(0, 150),
    st.integers(1, 20),
)
def test_a_running_cut_is_the_greedy_one(effort, limit, more, most):
    """Sample by sample, at the limit that it was made for and at any lower one."""
    cut = RunningCut(np.array(effort), limit + more, most)
    assert cut(limit) == _greedy(effort, limit, most)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 100)), min_size=1, max_size=12),
    st.integers(1, 1000),
    st.integers(1, 40),
)
def test_a_cut_by_class_never_exceeds_the_limit(classes, limit, most):
    """A batch that begins in one class and ends in a shorter one is bounded by the first."""
    efforts = sorted((effort for _, effort in classes), reverse=True)
    counts = [count for count, _ in classes]
    ends = np.cumsum(counts).tolist()
    starts = cut_by_class(ends, efforts, limit, most)
    per_sample = np.repeat(efforts, counts)
    assert starts[0] == 0
    for start, end in zip(starts, [*starts[1:], ends[-1]], strict=True):
        assert 1 <= end - start <= most
        assert end - start == 1 or (end - start) * per_sample[start] <= limit
    alone = sum(
        -(-count // max(1, min(limit // e, most))) for e, count in zip(efforts, counts, strict=True)
    )
    assert len(starts) <= alone


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=10))
def test_fixed_sizes_move_what_is_left_to_longer_classes(classes):
    """Only the last batch may be small: every other is full for the class that it was moved to."""
    counts = [count for count, _ in classes]
    sizes = sorted((size for _, size in classes), reverse=True)
    ends = np.cumsum(counts).tolist()
    starts = cut_fixed(ends, sizes)
    allowed = np.repeat(sizes, counts)
    if not starts:
        assert ends[-1] == 0
        return
    for start, end in pairwise(starts):
        assert end - start in sizes
        assert end - start <= allowed[end - 1]
    assert 0 < ends[-1] - starts[-1] <= allowed[-1]


def test_even_cuts_differ_by_one():
    for samples, batches in ((1003, 1000), (7, 7), (64, 8), (65, 8)):
        starts = cut_evenly(samples, batches)
        sizes = np.diff([*starts, samples])
        assert len(sizes) == batches
        assert sizes.max() - sizes.min() <= 1


def test_shrinking_costs_less_than_splitting():
    """Halving batches to fill the last steps makes small ones; a lower limit makes none."""
    counts = [500] * 20
    efforts = [1000 - 40 * number for number in range(20)]
    ends = np.cumsum(counts).tolist()
    slices = partial(cut_by_class, ends, efforts, max_samples=4096)

    def cut(limit):
        return Cut(np.arange(ends[-1]), slices(limit))

    starts = cut(20_000).starts
    wanted = -(-len(starts) // 64) * 64
    assert len(starts) < wanted
    shrunk = shrink(cut, cut(20_000), 20_000, wanted, 14).starts
    assert len(shrunk) <= wanted
    assert wanted - len(shrunk) < wanted - len(starts)
    sizes = np.diff([*shrunk, ends[-1]])
    per_sample = np.repeat(efforts, counts)
    assert (sizes * per_sample[shrunk] <= 20_000).all()
    assert np.mean(sizes[:-1] * per_sample[shrunk[:-1]] < 10_000) < 0.02


@given(st.integers(1, 60), st.integers(1, 400), st.integers(1, 14))
def test_shrinking_never_gives_too_many(count, limit, attempts):
    effort = np.random.default_rng(count).integers(1, 60, count)
    running = RunningCut(effort, limit, 4096)

    def cut(limit):
        return Cut(np.arange(count), running(limit))

    starts = cut(limit).starts
    wanted = -(-len(starts) // 8) * 8
    shrunk = shrink(cut, cut(limit), limit, wanted, attempts)
    assert len(starts) <= len(shrunk.starts) <= wanted


_PLAIN = Effort.of(Batching(batch_duration_us=1))


def _split(starts, lengths, batches):
    lengths = np.array(lengths) * 1_000_000
    return split(starts, len(lengths), PaddedCosts(lengths, _PLAIN), batches)


def test_the_costliest_batch_is_halved_first():
    lengths = [30, 30, 30, 30, 10, 10, 10, 5]
    assert _split([0, 4, 7], lengths, 4) == [0, 2, 4, 7]
    assert _split([0, 4, 7], lengths, 6) == [0, 1, 2, 3, 4, 7]
    assert _split([0, 4, 7], lengths, 8) == list(range(8))


def test_of_packed_batches_the_one_with_the_largest_sum_is_halved_first():
    """Padded, the first would cost twice as much as the second."""
    cost = np.array([20, 1, 1, 9, 9, 9])
    assert split([0, 3], 6, PackedCosts(cost), 3) == [0, 3, 5]
    assert split([0, 3], 6, PackedCosts(cost), 4) == [0, 2, 3, 5]


def test_ties_are_halved_by_position():
    assert _split([0, 2, 4], [1] * 6, 4) == [0, 1, 2, 4]


def test_singles_cannot_be_split():
    with pytest.raises(IndexError):
        _split([0, 1], [1, 1], 3)
