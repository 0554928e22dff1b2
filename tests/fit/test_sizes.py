"""Sizes that the plan takes, whatever was found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhead.fit.sizes import merged, multiples, never_rising, takes_all_of
from playhead.plan.bins import check_bins

_SIZES = st.integers(1, 300)
_1D = st.dictionaries(st.integers(1, 90), _SIZES, min_size=1, max_size=12)
_2D = st.dictionaries(
    st.tuples(st.integers(1, 9), st.integers(0, 9)), _SIZES, min_size=1, max_size=20
)


def _split(found):
    bounds = sorted(found)
    return bounds, [found[bound] for bound in bounds]


@given(_1D)
def test_the_plan_takes_sizes_of_one_length(found):
    bounds, sizes = _split(found)
    check_bins(bounds, None, never_rising(bounds, sizes), None, in_tokens=False)


@given(_2D)
def test_the_plan_takes_sizes_of_two_lengths(found):
    bounds, sizes = _split(found)
    repaired = never_rising(bounds, sizes)
    check_bins(*zip(*bounds, strict=True), repaired, None, in_tokens=False)


@given(_2D)
def test_sizes_are_lowered_only_as_far_as_they_must_be(found):
    bounds, sizes = _split(found)
    repaired = never_rising(bounds, sizes)
    for place, (before, after) in enumerate(zip(sizes, repaired, strict=True)):
        below = [
            other
            for other in range(place)
            if takes_all_of(bounds[place], bounds[other]) and repaired[other] == after
        ]
        assert after == before or (after < before and below)
    assert never_rising(bounds, repaired) == repaired


def test_a_bucket_without_a_size_lowers_no_other():
    assert never_rising([1.0, 2.0, 3.0], [4, 0, 9]) == (4, 0, 4)


@given(_1D, st.integers(1, 16))
def test_multiples_are_the_largest_that_are_not_above(found, multiple):
    sizes = list(found.values())
    for before, after in zip(sizes, multiples(sizes, multiple), strict=True):
        assert after % multiple == 0
        assert before - multiple < after <= before


@given(_1D)
def test_merging_changes_no_sample_s_batch_size(found):
    bounds, sizes = _split(found)
    left, left_sizes, merges = merged(bounds, never_rising(bounds, sizes))
    for bound, size in zip(bounds, never_rising(bounds, sizes), strict=True):
        takes = next(place for place, other in enumerate(left) if other >= bound)
        assert left_sizes[takes] == size
    assert len(set(left_sizes)) == len(left)
    assert len(left) + len(merges) == len(bounds)
    assert [merge.bound for merge in merges] == [b for b in bounds if b not in left]


def test_sizes_that_only_their_limit_holds_down_are_not_merged():
    left, sizes, merges = merged([1.0, 2.0, 3.0, 4.0], [64, 64, 8, 8], most=64)
    assert (left, sizes) == ((1.0, 2.0, 4.0), (64, 64, 8))
    assert [merge.bound for merge in merges] == [3.0]


def test_pairs_are_never_merged():
    bounds = [(1, 5), (1, 9)]
    assert merged(bounds, [4, 4]) == (tuple(bounds), (4, 4), ())
