"""Tests of counts by length: what is said to lie below a length does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from playhead.report.length_counts import LengthCounts

UNIT = 10_000


@given(
    st.lists(st.integers(1, 40_000_000), min_size=1, max_size=60),
    st.sampled_from([0.05, 0.5, 0.95, 1.0]),
)
def test_the_share_that_was_asked_for_lies_below_and_no_cell_less_would_do(lengths, part):
    given_lengths = np.array(lengths)
    counts = LengthCounts(unit=UNIT)
    counts.add(given_lengths, np.ones(len(lengths)))
    border = counts.below(part)
    slack = 1e-9 * len(lengths)
    assert (given_lengths < border).sum() >= part * len(lengths) - slack
    assert (given_lengths < (border - 1) // UNIT * UNIT).sum() < part * len(lengths) + slack
    heavy, total = counts.amount_below(part), given_lengths.sum()
    assert given_lengths[given_lengths < heavy].sum() >= part * total * (1 - 1e-9)
    assert given_lengths[given_lengths < (heavy - 1) // UNIT * UNIT].sum() < part * total * 1.0001


def test_short_samples_beside_few_long_ones_are_measured_exactly():
    # One bar of a second holds all of the short ones.
    lengths = np.array([400_000] * 2_000 + [500_000] * 700 + [25_000_000] * 8)
    counts = LengthCounts(unit=UNIT)
    counts.add(lengths, np.ones(len(lengths)))
    bars = counts.bars()
    assert bars is not None
    assert bars.samples[0] == 2_700
    assert counts.below(0.5) == 410_000
    assert counts.below(0.95) == 510_000


def test_what_is_longer_than_all_cells_is_below_the_longest():
    counts = LengthCounts(unit=1)
    counts.add(np.array([200_000, 300_000]), np.ones(2))
    assert counts.below(0.5) == counts.below(1.0) == 300_001
