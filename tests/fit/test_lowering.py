"""What is lowered stays what a config takes, and always becomes less."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.fit.lowering import lowered_limit, lowered_size, options_of
from playhead.plan import Batching
from playhead.plan.stats import Costly

SIZES = st.lists(st.integers(1, 5000), min_size=1, max_size=12).map(lambda s: sorted(s)[::-1])


@given(SIZES, st.data())
def test_sizes_go_down_to_one_and_never_rise_with_length(sizes, data):
    number = data.draw(st.integers(0, len(sizes) - 1))
    batching = Batching(bins_us=tuple(range(1, len(sizes) + 1)), bucket_batch_size=tuple(sizes))
    for times in range(40):
        size = batching.sizes[number]
        lower = lowered_size(batching, number, size, times)
        if lower is None:
            assert size == 1
            break
        assert 1 <= lower.sizes[number] < size
        assert all(one >= other for one, other in pairwise(lower.sizes))
        assert lower.sizes[:number] == batching.sizes[:number]
        batching = lower
    else:
        raise AssertionError(batching)


def test_of_two_lengths_only_buckets_that_take_more_are_lowered_too():
    batching = Batching(
        bins_us=(5, 5, 10, 10), bins_tokens=(20, 80, 40, 90), bucket_batch_size=(40, 40, 40, 40)
    )
    assert lowered_size(batching, 1, 40, 0).sizes == (40, 36, 40, 36)


@given(
    st.integers(2, 500), st.integers(1, 10**9), st.sampled_from([None, 7_000_000]), st.booleans()
)
def test_a_limit_becomes_less_than_what_failed(samples, length, quadratic, in_tokens):
    length = length % 10**6 + 1 if in_tokens else length
    names = ("batch_tokens", "quadratic_tokens") if in_tokens else ("batch_duration_us",) * 2
    limit = samples * length * 2
    batching = Batching(in_tokens=in_tokens, **{names[0]: min(limit, 10**10)})
    failed = Costly(bin=None, step=0, slot=0, samples=samples, cost=min(samples * length, limit))
    lower = lowered_limit(batching, failed, 0)
    assert lower.limit <= max(1, 0.9 * failed.cost)
    assert list(options_of(batching, lower)) == ["batch_tokens" if in_tokens else "batch_duration"]


def test_without_a_limit_of_length_it_is_the_number_of_samples():
    failed = Costly(bin=None, step=0, slot=0, samples=20, cost=9)
    lower = lowered_limit(Batching(batch_size=30), failed, 1)
    assert options_of(Batching(batch_size=30), lower) == {"batch_size": 18}
    one = Costly(bin=None, step=0, slot=0, samples=1, cost=9)
    assert lowered_limit(Batching(batch_size=30), one, 1) is None


@pytest.mark.parametrize(
    ("samples", "length", "second", "is_known"),
    [(10, 50, 7, True), (9, 50, 6, True), (9, 53, 7, False), (11, 40, 7, False), (9, 9, 8, False)],
)
def test_a_batch_is_no_worse_than_another_if_nothing_of_it_is_more(
    samples, length, second, is_known
):
    fitted = Costly(bin=0, step=0, slot=0, samples=10, cost=500, second=7)
    asked = Costly(bin=0, step=9, slot=1, samples=samples, cost=samples * length, second=second)
    assert asked.is_no_worse_than(fitted) is is_known
