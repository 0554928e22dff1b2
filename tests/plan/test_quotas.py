"""Shares of a window: they sum up, are within one of what is due, and need no memory."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.plan.keyed import Purpose, key, stream
from playhead.plan.quotas import remaining_windows, shares_in_order, shares_keyed, systematic
from playhead.plan.roster import reduced

_weights = st.lists(st.integers(0, 2**70), min_size=1, max_size=50).filter(any)


@given(_weights, st.integers(1, 10**7), st.integers(0))
def test_each_leaf_gets_within_one_draw_of_its_share(weights, draws, offset):
    """Exact at any size of the weights: floats would drift by whole draws."""
    total = sum(weights)
    counts = systematic(weights, draws, offset % total)
    assert int(counts.sum()) == draws
    for weight, count in zip(weights, counts.tolist(), strict=True):
        assert abs(count - Fraction(weight * draws, total)) < 1
        assert count >= 0
        assert weight or not count


def test_shares_hold_over_many_windows():
    """With one keyed offset a window, what a window rounds away another one gives back."""
    weights = [1, 3, 7, 1000, 0, 5]
    got = np.zeros(len(weights), dtype=np.int64)
    for window in range(500):
        got += systematic(weights, 777, key(1, Purpose.QUOTA, window) % sum(weights))
    due = np.array(weights) * 777 * 500 / sum(weights)
    assert np.abs(got - due).max() < 40
    assert got[4] == 0


@given(_weights, st.integers(1, 1000))
def test_a_common_factor_does_not_matter(weights, factor):
    assert reduced([weight * factor for weight in weights]) == reduced(weights)


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=30), st.integers(50, 3000), st.booleans()
)
def test_windows_of_a_pass_share_it_out_completely(rows, draws, shuffle):
    """Windows are about equal, there is no small last one, and nothing is left at the end."""
    remaining = np.array(rows)
    planned = remaining_windows(int(remaining.sum()), draws)
    sizes = []
    while remaining.any():
        if shuffle:
            hashes = stream(key(1, 4, len(sizes)), np.arange(len(rows)))
            take = shares_keyed(remaining, draws, hashes)
        else:
            take = shares_in_order(remaining, draws)
        assert (take >= 0).all()
        assert (take <= remaining).all()
        sizes.append(int(take.sum()))
        remaining = remaining - take
    assert len(sizes) <= planned + shuffle
    if not shuffle and sizes:
        assert len(sizes) == planned
        assert max(sizes) - min(sizes) <= len(sizes)


def test_declared_order_takes_leaf_after_leaf():
    remaining = np.array([3, 0, 10, 7])
    assert shares_in_order(remaining, 10).tolist() == [3, 0, 7, 0]
    assert shares_in_order(remaining - [3, 0, 7, 0], 10).tolist() == [0, 0, 3, 7]


def test_keyed_shares_are_fair_to_leaves_of_one_row():
    """Rounding every leaf down would put all leaves of a single row into the last window."""
    remaining = np.ones(10_000, dtype=np.int64)
    take = shares_keyed(remaining, 1000, stream(key(1, 4, 0), np.arange(10_000)))
    assert 850 < int(take.sum()) < 1150
