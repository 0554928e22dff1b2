"""A search ends, and asks nothing absurd, whatever a device answers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.fit.bucket import Bucket
from playhead.fit.problem import Finished, Probe, Problem
from playhead.fit.record import MixRecord, ProbeRecord
from playhead.fit.search_plan import next_action
from support.simulated_device import simulated_model


class _Erratic:
    """A device whose answers make no sense; with `is_silent`, it measures nothing."""

    def __init__(self, rng, budget, *, is_silent):
        self.rng, self.budget, self.is_silent = rng, budget, is_silent

    def _peak(self):
        return None if self.is_silent else self.rng.randrange(1, self.budget)

    def _status(self):
        return self.rng.choices(["ok", "oom", "lost"], [6, 3, 1])[0]

    def probe(self, bucket, batch_size):
        status, peak = self._status(), self._peak()
        return ProbeRecord(
            bucket=bucket,
            batch_size=batch_size,
            budget=self.budget,
            status=status,
            allocated=peak if status == "ok" else None,
            reserved=peak if status == "ok" else None,
        )

    def mix(self, sizes, steps):
        status = self._status()
        tried = [bucket for bucket, size in enumerate(sizes) if size]
        is_named = status != "ok" and self.rng.random() < 0.9
        return MixRecord(
            sizes=sizes,
            steps=steps,
            budget=self.budget,
            status=status,
            failed=self.rng.choice(tried) if is_named else None,
            allocated=tuple((self._peak() or 0) if size else 0 for size in sizes),
        )


@given(
    st.integers(0, 10**9),
    st.sampled_from([0, 50]),
    st.sampled_from([1, 8]),
    st.sampled_from([4, 64, 4096]),
    st.booleans(),
)
def test_a_search_ends_whatever_a_device_answers(seed, steps, multiple, most, is_silent):
    rng = random.Random(seed)
    model = simulated_model(seed % 40)
    problem = Problem(
        buckets=model.buckets[::4],
        budget=model.budget,
        verify_steps=steps,
        multiple_of=multiple,
        max_batch_size=most,
    )
    device = _Erratic(rng, model.budget, is_silent=is_silent)
    records = []
    while not isinstance(action := next_action(problem, records, lambda *_: None), Finished):
        sizes = [action.batch_size] if isinstance(action, Probe) else action.sizes
        assert any(sizes)
        assert all(0 <= size <= most and size % multiple == 0 for size in sizes)
        records.append(
            device.probe(action.bucket, action.batch_size)
            if isinstance(action, Probe)
            else device.mix(action.sizes, action.steps)
        )
        assert len(records) <= 300
    assert len(action.sizes) == len(problem.buckets)


@pytest.mark.parametrize("verify_steps", [0, 50])
def test_a_device_that_measures_nothing_still_gives_sizes(verify_steps):
    model = simulated_model(12)
    problem = Problem(buckets=model.buckets, budget=model.budget, verify_steps=verify_steps)
    records = []
    while not isinstance(action := next_action(problem, records, lambda *_: None), Finished):
        fits = model.survives_alone(action.bucket, action.batch_size)
        status = "ok" if fits else "oom"
        records.append(
            ProbeRecord(
                bucket=action.bucket,
                batch_size=action.batch_size,
                budget=model.budget,
                status=status,
            )
        )
    for bucket, size in enumerate(action.sizes):
        assert 0.9 * model.largest_alone(bucket) - 1 <= size <= model.largest_alone(bucket)
    assert any("not measured" in note for note in action.notes)


@pytest.mark.parametrize(("crashes_at", "found"), [(5, 4), (2, 1), (1, 0)])
def test_a_model_that_crashes_with_large_batches_is_found_out_with_the_smallest(crashes_at, found):
    bucket = Bucket(bound=1.0, input_length=100, output_length=12)
    problem = Problem(buckets=(bucket,), budget=1 << 30)
    records = []
    while not isinstance(action := next_action(problem, records, lambda *_: None), Finished):
        fits = action.batch_size < crashes_at
        peak = (1 + action.batch_size) << 20
        records.append(
            ProbeRecord(
                bucket=0,
                batch_size=action.batch_size,
                budget=problem.budget,
                status="ok" if fits else "lost",
                allocated=peak if fits else None,
                reserved=peak if fits else None,
            )
        )
    assert action.sizes == (found,)
    assert len(records) <= 30
    assert found or len(records) == 6
