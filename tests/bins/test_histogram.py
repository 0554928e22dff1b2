"""Lengths are counted in bounded memory, exactly up to 42 s and never too short above."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.bins.histogram import Histogram

_EXACT = 1 << 22


# Each makes arrays of millions of cells.
@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, _EXACT - 1)), max_size=5))
def test_short_lengths_are_counted_as_they_are(blocks):
    histogram = Histogram()
    for block in blocks:
        histogram.add(np.array(block, dtype=np.int64), 0.5)
    found = histogram.spectrum()
    count = Counter(length for block in blocks for length in block)
    assert dict(zip(found.lengths.tolist(), found.counts.tolist(), strict=True)) == count
    assert found.lengths.tolist() == sorted(count)
    assert found.weights.tolist() == [0.5 * count[length] for length in sorted(count)]
    assert found.longest == max(count, default=-1)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1 << 52), min_size=1))
def test_long_lengths_are_rounded_up_a_little_but_not_above_the_longest(lengths):
    histogram = Histogram()
    histogram.add(np.array(lengths, dtype=np.int64), 1.0)
    found = histogram.spectrum()
    assert found.counts.sum() == len(lengths)
    assert found.lengths[-1] == found.longest == max(lengths)
    places = np.searchsorted(found.lengths, lengths)
    rounded = found.lengths[places]
    assert (rounded - lengths <= np.array(lengths) * 1e-5).all()


def test_what_weighs_nothing_counts_as_the_longest_alone():
    histogram = Histogram()
    histogram.add(np.array([5, 7]), 1.0)
    histogram.add(np.array([90, 95]), 0.0)
    found = histogram.spectrum()
    assert found.lengths.tolist() == [5, 7]
    assert found.longest == 95


def test_any_spread_of_lengths_takes_bounded_memory():
    histogram = Histogram()
    histogram.add(np.geomspace(1, 1 << 45, 2_000_000).astype(np.int64), 1.0)
    assert len(histogram.spectrum().lengths) < _EXACT + 30 * (1 << 17)
