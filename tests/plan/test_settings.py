"""Settings that mean nothing or contradict each other are refused by name."""

from __future__ import annotations

import pytest

from playhead.errors import PlanError
from playhead.plan import Batching, Shape
from playhead.plan.values import changed_fields


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "nothing limits a batch"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_duration_us": 0}, "batch_duration_us is 0"),
        ({"batch_size": 1, "micro_batches_per_step": 0}, "micro_batches_per_step is 0"),
        ({"batch_size": 1, "quadratic_duration_us": -1}, "quadratic_duration_us is -1"),
        ({"batch_size": 1, "num_classes": 10_001}, "num_classes is 10001"),
        ({"batch_size": 1, "oversize": "shrug"}, "oversize is 'shrug'"),
        ({"batch_size": 1, "bins_us": ()}, "not positive and strictly ascending"),
        ({"batch_size": 1, "bins_us": (5, 5)}, "not positive and strictly ascending"),
        ({"batch_size": 1, "bins_us": (9, 5)}, "not positive and strictly ascending"),
        ({"bins_us": (5, 9), "bucket_batch_size": (2,)}, "1 sizes for 2 duration bins"),
        ({"bucket_batch_size": (2,)}, "1 sizes for 0 duration bins"),
        ({"bins_us": (5,), "bucket_batch_size": (2,), "bucketing": False}, "for 0 duration bins"),
        ({"bins_us": (5, 9), "bucket_batch_size": (2, 3)}, "grow with the length"),
        ({"bins_us": (5, 9), "bucket_batch_size": (2, 0)}, "are not positive"),
    ],
)
def test_bad_batching_is_refused(options, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        Batching(**options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_duration_us": -1}, "min_duration_us is -1"),
        ({"min_duration_us": 5, "max_duration_us": 4}, "nothing would be kept"),
        ({"window_draws": 0}, "window_draws is 0"),
        ({"cache_bytes": 0}, "cache_bytes is 0"),
        ({"locality": "disk"}, "locality is 'disk'"),
    ],
)
def test_bad_shapes_are_refused(options, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        Shape(**options)


def test_lists_become_tuples_so_that_settings_compare():
    listed = Batching(bins_us=[5, 9], bucket_batch_size=[3, 2])
    assert listed == Batching(bins_us=(5, 9), bucket_batch_size=(3, 2))


def test_a_batch_is_always_finite():
    """A duration limit alone would put text-only rows into one batch without end."""
    assert Batching(batch_duration_us=1).max_samples == 4096
    assert Batching(batch_duration_us=1, batch_size=7).max_samples == 7
    assert Batching(bins_us=(5, 9), bucket_batch_size=(3, 2)).max_samples == 3


def test_only_what_changed_is_written():
    base = Batching(batch_size=4)
    assert changed_fields(base, base) == {}
    other = Batching(batch_size=4, bins_us=(1, 2), drop_last=True)
    assert changed_fields(other, base) == {"bins_us": [1, 2], "drop_last": True}
