"""Blends from which nothing could be trained are refused, with the option that is to blame."""

from __future__ import annotations

import pytest

from playhead.errors import PlanError
from playhead.plan import Batching, Shape, start
from support.plans import columns

_LIMIT = Batching(batch_duration_us=60_000_000)


def _start(leaves, shape=None, batching=_LIMIT):
    return start(leaves, shape or Shape(), batching, seed=1)


@pytest.mark.parametrize(
    ("leaves", "named"),
    [
        ([], "no leaves"),
        ([columns("a", [1]), columns("a", [2])], "the same key 'a'"),
        ([columns("a", [1], -1)], "has the weight -1"),
        ([columns("a", [1], 0)], "every weight of the blend is 0"),
        (
            [columns("a", [1]), columns("b", [])],
            "'data/b.json' has a weight and no row to draw: its manifests hold no rows",
        ),
    ],
)
def test_blends_that_give_nothing_are_refused(leaves, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        _start(leaves)


@pytest.mark.parametrize(
    ("shape", "batching", "named"),
    [
        (Shape(min_duration_us=9_000_000), _LIMIT, "min_duration is 9 s"),
        (Shape(max_duration_us=1_000_000), _LIMIT, "max_duration is 1 s"),
        (Shape(min_duration_us=4_000_000, max_duration_us=5_000_000), _LIMIT, "leave a gap"),
        (
            Shape(),
            Batching(bins_us=(1_000_000,), bucket_batch_size=(4,)),
            "last of the bins is 1 s",
        ),
        (Shape(), Batching(batch_duration_us=1_000_000, oversize="drop"), "batch limit is 1 s"),
    ],
)
def test_a_filter_that_removes_everything_is_named_with_the_range_of_the_data(
    shape, batching, named
):
    """Otherwise windows would stay empty and training would wait for the first batch for ever."""
    leaves = [
        columns("fine", [500_000, 4_500_000, 10_000_000]),
        columns("b", [2_000_000, 8_000_000]),
    ]
    with pytest.raises(PlanError, match=f"(?i){named}") as caught:
        _start(leaves, shape, batching)
    if "gap" not in named:
        assert "'data/b.json' range from 2 s to 8 s" in str(caught.value)


def test_a_leaf_of_weight_0_may_be_empty_or_filtered():
    leaves = [columns("a", [1_000_000]), columns("b", [], 0), columns("c", [9_000_000], 0)]
    position = _start(leaves, Shape(max_duration_us=2_000_000))
    assert position.weights == (1, 0, 0)


def test_a_finite_pass_minds_only_that_something_is_left():
    leaves = [columns("a", [1_000_000]), columns("b", []), columns("c", [9_000_000])]
    _start(leaves, Shape(finite=True, max_duration_us=2_000_000))
    with pytest.raises(PlanError, match="No row of any leaf is kept"):
        _start(leaves, Shape(finite=True, min_duration_us=20_000_000))


def test_oversize_error_names_the_longest_sample():
    leaves = [columns("a", [1_000_000, 70_000_000, 61_000_000])]
    strict = Batching(batch_duration_us=60_000_000, oversize="error")
    with pytest.raises(PlanError, match=r"'data/a.json', 70 s, .* allows 60 s \(row 1\)"):
        _start(leaves, batching=strict)
    _start(leaves, Shape(max_duration_us=60_000_000), strict)
