"""Permutations: one to one at every size, uniform, and the same however they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.plan.keyed import key
from playhead.plan.permute import SORTED_ROWS, Spans, permute, permute_spans, ranges

_POWERS = [2**k + d for k in range(4, 18) for d in (-1, 0, 1)]
_PRIMES = [97, 769, 1031, 4093, 10_007, 65_537]


def _spans(size, keys, first, count):
    return Spans(
        size=np.array(size),
        key=np.array(keys, dtype=np.uint64),
        first=np.array(first),
        count=np.array(count),
    )


@pytest.mark.parametrize("size", [*range(1, 70), *_POWERS, *_PRIMES])
def test_every_element_comes_once(size):
    order = permute(np.arange(size), size, key(3, 2, size))
    assert np.array_equal(np.sort(order), np.arange(size))


@pytest.mark.parametrize("size", [SORTED_ROWS + 1, 1 << 20, 10_000_019, (1 << 31) + 1])
def test_networks_stay_inside_their_range(size):
    """Also where the table of ⌈√N⌉ columns has more places than rows: those are walked on."""
    index = np.concatenate([np.arange(5000), size - 1 - np.arange(5000)])
    index = np.unique(index[(index >= 0) & (index < size)])
    elements = permute(index, size, key(8, 2))
    assert len(np.unique(elements)) == len(index)
    assert elements.min() >= 0
    assert elements.max() < size


@given(st.data())
def test_one_call_for_many_gives_what_single_calls_give(data):
    """Thousands of leaves are permuted in one call, long and short, sorted and by network."""
    sizes = data.draw(
        st.lists(st.sampled_from([1, 2, 3, 10, 900, 1023, 1024, 1025, 5000, 70_000]), min_size=1)
    )
    keys = [key(1, 2, number) for number in range(len(sizes))]
    first = [data.draw(st.integers(0, size)) for size in sizes]
    count = [data.draw(st.integers(0, size - f)) for size, f in zip(sizes, first, strict=True)]
    together = permute_spans(_spans(sizes, keys, first, count))
    single = [
        permute(np.arange(f, f + n), size, k)
        for size, k, f, n in zip(sizes, keys, first, count, strict=True)
    ]
    assert np.array_equal(together, np.concatenate(single))


def test_many_passes_of_a_tiny_leaf_cost_one_call():
    """A leaf of ten rows may be drawn five thousand times a window: each pass is whole."""
    passes = 5_000
    spans = _spans(
        [10] * passes, [key(1, 2, p) for p in range(passes)], [0] * passes, [10] * passes
    )
    orders = permute_spans(spans).reshape(passes, 10)
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(10), (passes, 1)))
    assert len(np.unique(orders, axis=0)) > 0.99 * passes


def _excess(counts, expected):
    """How many standard deviations chi-square lies above its mean."""
    chi = float(((counts - expected) ** 2 / expected).sum())
    free = len(counts) - 1
    return (chi - free) / (2 * free) ** 0.5


@pytest.mark.parametrize("size", [3, 4, 5, 16])
def test_small_permutations_are_uniform(size):
    """A small Feistel network prefers some pairs of neighbours by dozens of deviations."""
    trials = 40_000
    spans = _spans(
        [size] * trials, [key(1, 2, t) for t in range(trials)], [0] * trials, [2] * trials
    )
    pairs = permute_spans(spans).reshape(trials, 2)
    code = pairs[:, 0] * (size - 1) + (pairs[:, 1] - pairs[:, 0]) % size - 1
    cells = size * (size - 1)
    assert _excess(np.bincount(code, minlength=cells), trials / cells) < 4


@pytest.mark.parametrize("size", [1025, 1100, 2500])
def test_networks_are_uniform_where_they_begin(size):
    trials = 100_000
    spans = _spans(
        [size] * trials, [key(1, 2, t) for t in range(trials)], [0] * trials, [2] * trials
    )
    pairs = permute_spans(spans).reshape(trials, 2)
    assert _excess(np.bincount(pairs[:, 0], minlength=size), trials / size) < 4
    apart = (pairs[:, 1] - pairs[:, 0]) % size
    assert _excess(np.bincount(apart, minlength=size)[1:], trials / (size - 1)) < 4


def test_ranges_of_nothing_are_empty():
    nothing = np.array([], dtype=np.int64)
    assert ranges(nothing, nothing).tolist() == []
    assert ranges(np.array([3, 7]), np.array([0, 0])).tolist() == []
    assert permute_spans(_spans([5], [1], [5], [0])).tolist() == []
