"""A GPU that is not there: predictions, and room for what is not tensors."""

from __future__ import annotations

import pytest

from playhead.errors import ConfigError, FitError
from playhead.fit.bucket import Bucket
from playhead.fit.fake.prober import FakeProber

GIB = 2**30
BUCKETS = [Bucket(bound=n, input_length=n, output_length=1) for n in (1, 2, 3)]


class Linear:
    """A model that holds a GiB, and one for each unit of length of each sample."""

    blocked = None
    notes = ("an estimate",)

    def predict(self, bucket, batch_size):
        return GIB * (1 + bucket.input_length * batch_size)


class Blocked:
    blocked = "aten::nonzero in encoder (Encoder)"
    notes = ()

    def predict(self, bucket, batch_size):
        return None


def prober(memory=100 * GIB, fraction=0.5, **options):
    return FakeProber(Linear(), BUCKETS, memory, fraction, **options)


def test_it_is_a_prober_with_a_share_of_the_memory():
    made = prober(100 * GIB, 0.75, reserve=5 * GIB)
    assert made.budget == 70 * GIB
    assert made.predict(1, 4) == 9 * GIB


def test_a_memory_that_the_reserve_takes_whole_is_refused():
    with pytest.raises(ConfigError, match=r"0\.9 of 1 GiB is no more than .* 1 GiB.*--memory"):
        prober(GIB, 0.9)


def test_a_prediction_with_room_for_the_rest_is_within_the_budget_or_not():
    exact = prober(reserve=0, fragmentation=0.0)
    assert exact.probe(0, 49).status == "ok"
    assert exact.probe(0, 50).status == "oom"
    with_gaps = prober(reserve=2 * GIB, fragmentation=0.2)
    record = with_gaps.probe(0, 39)
    assert (record.status, record.allocated, record.predicted) == ("ok", 40 * GIB, 40 * GIB)
    assert record.reserved == 48 * GIB == record.budget
    record = with_gaps.probe(0, 40)
    assert (record.status, record.allocated, record.reserved) == ("oom", None, None)
    assert record.predicted == 41 * GIB
    assert record.reason == "it would hold 49.20 GiB"


def test_a_mix_holds_what_the_largest_of_its_batches_holds():
    exact = prober(reserve=0, fragmentation=0.0)
    record = exact.mix([10, 0, 5], steps=7, seed=1)
    assert (record.status, record.done, record.failed) == ("ok", 7, None)
    assert record.allocated == (11 * GIB, 0, 16 * GIB)
    assert record.reserved == 16 * GIB
    record = exact.mix([10, 30, 5], steps=7, seed=1)
    assert (record.status, record.done, record.failed) == ("oom", 0, 1)


def test_what_is_assumed_is_said():
    *others, last = prober(reserve=GIB // 2, fragmentation=0.1).notes
    assert others == ["an estimate"]
    assert last == (
        "what is not tensors is assumed: 0.5 GiB, which is no part of the budget, and 10% of the"
        " tensors for gaps between them"
    )


def test_a_model_that_cannot_run_fake_cannot_be_probed_so():
    blocked = FakeProber(Blocked(), BUCKETS, 2 * GIB, 0.9)
    assert blocked.predict(0, 1) is None
    with pytest.raises(FitError, match="cannot run on fake tensors: aten::nonzero in encoder"):
        blocked.probe(0, 1)
    with pytest.raises(FitError, match="Search on a GPU"):
        blocked.mix([1, 1, 1], 1, 0)


def test_a_record_has_the_seconds_of_all_predictions_since_the_last(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(f"{FakeProber.__module__}.time.monotonic", lambda: next(clock))
    made = prober()
    made.predict(0, 1)
    made.predict(0, 2)
    assert made.probe(0, 3).seconds == 3
    assert made.probe(0, 3).seconds == 1
    assert made.mix([1, 1, 0], 1, 0).seconds == 2
