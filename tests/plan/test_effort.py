"""Effective lengths: never below the exact ones, and never nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.plan import Batching
from playhead.plan.effort import (
    SHORTEST_US,
    effective,
    effective_one,
    longest_allowed,
    longest_within,
)

_length = st.integers(0, 10**12)
_quadratic = st.one_of(st.none(), st.integers(1, 10**10))


@given(st.lists(_length, min_size=1, max_size=20), _quadratic)
def test_arrays_bound_the_exact_values_from_above(lengths, quadratic):
    got = effective(np.array(lengths), quadratic).tolist()
    for length, effort in zip(lengths, got, strict=True):
        counted = max(length, SHORTEST_US)
        exact = counted + (Fraction(counted * counted, quadratic) if quadratic else 0)
        one = effective_one(length, quadratic)
        assert exact <= one < exact + 1
        if length <= 3_000_000_000:
            assert effort == one
        elif effort < 1 << 62:
            assert exact <= effort <= exact * Fraction(1 + 2**-40) + 2


@given(st.integers(1, 10**11), _quadratic)
def test_the_longest_within_a_limit_is_the_last_that_is(limit, quadratic):
    longest = longest_within(limit, quadratic)
    assert not longest or effective_one(longest, quadratic) <= limit
    assert effective_one(longest + 1, quadratic) > limit


def test_a_length_counts_double_where_it_is_the_quadratic_one():
    assert effective(np.array([30_000_000]), 30_000_000).tolist() == [60_000_000]


@pytest.mark.parametrize("length", [0, 1, 9_999])
def test_a_sample_of_no_length_still_counts(length):
    """Text-only rows under a duration limit would make one batch without end."""
    assert effective(np.array([length]), None).tolist() == [10_000]
    assert effective_one(length, None) == 10_000


def test_only_a_duration_limits_single_samples():
    assert longest_allowed(Batching(batch_size=4)) is None
    assert longest_allowed(Batching(batch_duration_us=7_000_000)) == 7_000_000
