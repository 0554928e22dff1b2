"""The order of a mix."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhead.fit.probing.mixing import mixed_order

SIZES = st.lists(st.integers(0, 3), min_size=1, max_size=40)


@given(SIZES, st.integers(0, 200), st.integers(0, 2**63))
def test_every_bucket_that_is_in_comes_as_often_as_any_other(sizes, steps, seed):
    order = mixed_order(sizes, steps, seed)
    taken = [bucket for bucket, size in enumerate(sizes) if size]
    assert len(order) == (steps if taken else 0)
    counts = [order.count(bucket) for bucket in taken]
    assert set(order) <= set(taken)
    assert not counts or max(counts) - min(counts) <= 1


@given(SIZES, st.integers(1, 200), st.integers(0, 2**63))
def test_the_longest_comes_first(sizes, steps, seed):
    order = mixed_order(sizes, steps, seed)
    assert not order or order[0] == max(bucket for bucket, size in enumerate(sizes) if size)


def test_another_seed_gives_another_order_and_the_same_gives_the_same():
    sizes = [1] * 30
    assert mixed_order(sizes, 200, 1) == mixed_order(sizes, 200, 1)
    assert mixed_order(sizes, 200, 1) != mixed_order(sizes, 200, 2)
    assert mixed_order(sizes, 60, 1)[:30] != mixed_order(sizes, 60, 1)[30:]
