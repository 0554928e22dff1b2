"""Effective lengths: never below the exact ones, and never nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.plan import Batching
from playhead.plan.effort import SHORTEST_US, Effort, effective, effective_one

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


def _of_time(limit, quadratic=None):
    return Effort.of(Batching(batch_duration_us=limit, quadratic_duration_us=quadratic))


def _of_tokens(limit, quadratic=None, **more):
    options = {"in_tokens": True, "batch_tokens": limit, "quadratic_tokens": quadratic}
    return Effort.of(Batching(**options, **more))


@given(st.integers(1, 10**11), _quadratic)
def test_the_longest_within_a_limit_is_the_last_that_is(limit, quadratic):
    longest = _of_time(limit, quadratic).longest
    assert longest < 0 or effective_one(longest, quadratic) <= limit
    assert effective_one(longest + 1, quadratic) > limit


_TOKENS = st.integers(0, 1 << 32)


@given(st.lists(_TOKENS, min_size=1), st.integers(1, 10**10), st.integers(1, 10**8), st.booleans())
def test_tokens_are_compared_with_the_limit_exactly(tokens, limit, quadratic, packed):
    """The fractions of l + l² / q count where samples are padded; packed ones are rounded up."""
    effort = _of_tokens(limit, quadratic, packed=packed)
    got = effort(np.array(tokens)).tolist()
    for length, units in zip(tokens, got, strict=True):
        counted = max(length, 1)
        exact = counted + Fraction(counted * counted, quadratic)
        if packed:
            assert (units <= effort.limit) == (math.ceil(exact) <= limit)
            if length < 1 << 30:
                assert units == math.ceil(exact)
        else:
            for samples in (1, 2, 3, 7):
                assert (samples * units <= effort.limit) == (samples * exact <= limit)
        assert effort.one(length) == units or length >= 1 << 30
        assert (length <= effort.longest) == (units <= effort.limit)


def test_a_batch_may_reach_a_limit_of_tokens_exactly():
    """Three samples of 4/3 are four; rounded up, they were more."""
    effort = _of_tokens(4, 3)
    assert 3 * effort.one(1) == effort.limit


def test_a_length_counts_double_where_it_is_the_quadratic_one():
    assert effective(np.array([30_000_000]), 30_000_000).tolist() == [60_000_000]


@pytest.mark.parametrize("length", [0, 1, 9_999])
def test_a_sample_of_no_length_still_counts(length):
    """Text-only rows under a duration limit would make one batch without end."""
    assert effective(np.array([length]), None).tolist() == [10_000]
    assert effective_one(length, None) == 10_000
    assert _of_tokens(5)(np.array([0])).tolist() == [1]
    assert _of_tokens(5).one(0) == 1


def test_only_a_duration_limits_single_samples():
    assert Effort.of(Batching(batch_size=4)).longest is None
    assert _of_time(7_000_000).longest == 7_000_000
    assert Effort.of(Batching(in_tokens=True, batch_size=4, batch_duration_us=1)).longest is None
    assert _of_tokens(700).longest == 700
