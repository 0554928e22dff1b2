"""Speed, truncation, windows and padding as arithmetic on lengths."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.items import Items
from playhead.plan.reshape import SHORTEST_PART_US, number_of_parts, reshaped
from support.plans import columns, speech

_S = 1_000_000
_ONES = Batching(batch_size=1)


def _items(*lengths):
    zeros = np.zeros(len(lengths), dtype=np.int64)
    return Items(
        leaf=zeros.astype(np.int32),
        pass_=zeros,
        row=np.arange(len(lengths)),
        length=np.array(lengths, dtype=np.int64),
    )


def _batches(leaves, shape, batching=_ONES, seed=1):
    plan = plan_window(start(leaves, shape, batching, seed=seed), leaves, shape, batching)
    return [plan.micro_batch(step, 0) for step in range(plan.num_steps)]


@settings(deadline=None)
@given(st.integers(1, 60 * 16_000), st.integers(160, 160_000), st.integers(160, 200_000))
def test_a_row_has_as_many_parts_as_lhotse_makes(samples, window, hop):
    """Counted in float32 seconds, long rows would have a part more or fewer here and there."""
    from lhotse.utils import compute_num_windows

    us = np.array([round(samples * 1e6 / 16_000)])
    w, h = round(window * 1e6 / 16_000), round(hop * 1e6 / 16_000)
    mine = int(number_of_parts(us, w, h)[0])
    theirs = compute_num_windows(us[0] / 1e6, w / 1e6, h / 1e6)
    rest = us[0] - (mine - 1) * h
    after = us[0] - mine * h
    assert rest > 0
    # Lhotse also counts a last window that is too short to be heard.
    assert mine == theirs or (theirs == mine + 1 and abs(after) < SHORTEST_PART_US)


def test_parts_are_those_of_a_cut_of_lhotse():
    from lhotse import MonoCut, Recording

    for samples, window, hop in [
        (16_000, 1.0, None),
        (15_999, 1.0, None),
        (16_032, 1.0, None),
        (48_000, 1.0, 0.5),
        (97_600, 1.0, 3.0),
        (94_400, 1.0, 3.0),
        (48_000, 1.0, 6.1),
        (5 * 16_000 + 800, 2.0, 0.7),
    ]:
        seconds = samples / 16_000
        recording = Recording("r", [], 16_000, samples, seconds, channel_ids=[0])
        cut = MonoCut("c", start=0, duration=seconds, channel=0, recording=recording)
        shape = Shape(window_us=int(window * _S), hop_us=None if hop is None else int(hop * _S))
        items = reshaped(_items(round(seconds * _S)), shape, None, None)
        starts = np.zeros(1, dtype=int) if items.start is None else items.start
        assert [(us / _S, n / _S) for us, n in zip(starts, items.length, strict=True)] == [
            (pytest.approx(part.start, abs=1e-6), pytest.approx(part.duration, abs=1e-6))
            for part in cut.cut_into_windows(window, hop)
        ]


@pytest.mark.parametrize("rest", [1, 2, 62, 63, 500, SHORTEST_PART_US - 1])
def test_no_part_is_shorter_than_a_sample(rest):
    """Lhotse makes a cut of zero samples of them, which no model can take."""
    assert number_of_parts(np.array([2 * _S + rest]), _S, _S).tolist() == [2]
    assert number_of_parts(np.array([2 * _S + SHORTEST_PART_US]), _S, _S).tolist() == [3]


def test_windows_say_where_they_lie():
    items = reshaped(_items(2_500_000, 400_000, 1_000_000, -1, 0), Shape(window_us=_S), None, None)
    assert items.row.tolist() == [0, 0, 0, 1, 2, 3, 4]
    assert items.part.tolist() == [0, 1, 2, 0, 0, 0, 0]
    assert items.start.tolist() == [0, _S, 2 * _S, 0, 0, 0, 0]
    assert items.length.tolist() == [_S, _S, 500_000, 400_000, _S, -1, 0]
    assert items.span.tolist() == [_S, _S, 500_000, -1, -1, -1, -1]


def test_windows_lie_inside_what_truncation_keeps_and_are_padded_last():
    shape = Shape(truncate_us=2_200_000, truncate_offset="end", window_us=_S, pad_us=600_000)
    items = reshaped(_items(3_000_000, 300_000), shape, None, None)
    assert items.start.tolist() == [800_000, 1_800_000, 2_800_000, 0]
    assert items.span.tolist() == [_S, _S, 200_000, -1]
    assert items.length.tolist() == [_S, _S, 600_000, 600_000]


def test_padding_gives_no_length_to_rows_that_have_none():
    """Lifted to the padded length, rows of a leaf that is gone would be dealt out."""
    items = reshaped(_items(-1, 0, 5), Shape(pad_us=3), None, None)
    assert items.length.tolist() == [-1, 3, 5]


def test_only_longer_rows_are_truncated():
    items = reshaped(_items(5, 6, 7), Shape(truncate_us=6, truncate_offset="start"), None, None)
    assert items.length.tolist() == [5, 6, 6]
    assert items.span.tolist() == [-1, -1, 6]
    assert reshaped(_items(5, 6), Shape(truncate_us=6), None, None).span is None


def test_a_random_offset_reaches_both_ends():
    leaf = columns("a", [5 * _S] * 40)
    starts = np.concatenate(
        [
            batch.start_us
            for batch in _batches(
                [leaf], Shape(truncate_us=5 * _S - 3, window_draws=4_000), Batching(batch_size=50)
            )
        ]
    )
    counts = Counter(starts.tolist())
    assert sorted(counts) == [0, 1, 2, 3]
    assert min(counts.values()) > 800


def test_speeds_are_equally_common_and_rounded_up():
    """Rounded down, a batch could be a microsecond above its limit."""
    leaf = columns("a", [1_000_001] * 30)
    batching = Batching(batch_duration_us=30 * _S)
    batches = _batches([leaf], Shape(perturb_speed=True, window_draws=9_000), batching)
    speeds = Counter(
        speed
        for batch in batches
        for speed in ([1000] * len(batch.row) if batch.speed is None else batch.speed.tolist())
    )
    assert set(speeds) == {900, 1000, 1100}
    assert all(2_800 < count < 3_200 for count in speeds.values())
    items = reshaped(
        _items(1_000_001, 1_000_001, 0, -1),
        Shape(perturb_speed=True),
        np.array([900, 1100, 900, 900], dtype=np.int16),
        None,
    )
    lengths = [math.ceil(1_000_001 / 0.9), math.ceil(1_000_001 / 1.1), 0, -1]
    assert items.length.tolist() == lengths


def test_another_pass_over_a_row_has_another_speed_and_offset():
    """Copies of a row of a small leaf in one window must not be copies of its augmentation too."""
    leaf = columns("a", [9 * _S])
    batches = _batches(
        [leaf], Shape(perturb_speed=True, truncate_us=4 * _S, window_draws=60), _ONES
    )
    assert len({int(batch.start_us[0]) for batch in batches}) > 50
    assert len({int(batch.sample_keys[0]) for batch in batches}) == 60


def test_parts_of_a_row_have_keys_of_their_own():
    leaf = columns("a", [9 * _S])
    batches = _batches([leaf], Shape(window_us=_S, finite=True), Batching(batch_size=9))
    (batch,) = batches
    assert sorted(batch.part.tolist()) == list(range(9))
    assert len(set(batch.sample_keys.tolist())) == 9
    assert batch.start_us.tolist() == [part * _S for part in batch.part.tolist()]


def test_where_nothing_is_switched_on_nothing_is_filled_in():
    leaf = columns("a", [2 * _S] * 9)
    (batch,) = _batches([leaf], Shape(finite=True), Batching(batch_size=9))
    assert batch.speed is batch.start_us is batch.span_us is None
    assert batch.part.tolist() == [0] * 9


def test_limits_count_what_samples_become_and_not_what_they_were():
    """Slowed down, a batch of rows that just fits the limit would be ninth as long again."""
    leaf = columns("a", [_S] * 4_000)
    batching = Batching(batch_duration_us=10 * _S)
    for batch in _batches([leaf], Shape(perturb_speed=True, window_draws=4_000), batching):
        speed = [1000] * len(batch.row) if batch.speed is None else batch.speed.tolist()
        assert len(batch.row) * math.ceil(_S * 1000 / min(speed)) <= 10 * _S


def test_a_window_of_draws_counts_their_parts():
    """Counted in rows, ten parts a row would make ten times as many steps as there should be."""
    leaf = columns("a", speech(60_000) * 10)
    batching = Batching(batch_duration_us=60 * _S, micro_batches_per_step=8)
    shape = Shape(window_us=6 * _S)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    assert 95 <= plan.num_steps <= 110


def test_the_last_draw_of_a_full_step_may_give_more_than_was_missing():
    """What it gives too much goes into the step: dropped, a part of a row would never come."""
    leaf = columns("a", [2 * _S] * 50)
    shape = Shape(window_us=_S, window_draws=2)
    ones = Batching(batch_size=1, micro_batches_per_step=1)
    plan = plan_window(start([leaf], shape, ones, seed=1), [leaf], shape, ones)
    twos = Batching(batch_size=2, micro_batches_per_step=8)
    position, _ = resume(plan.position_at(1), [leaf], shape, twos)
    plan = plan_window(position, [leaf], shape, twos)
    fresh, repeats = _counted(plan, twos)
    assert plan.num_steps == 1
    assert len(fresh) == fresh.total() == 9
    assert repeats == 0


def test_where_no_batch_takes_two_the_step_is_filled_with_repeats_that_are_marked():
    """An even number of parts a row never fills an odd number of places."""
    leaf = columns("a", [2 * _S] * 50)
    shape = Shape(window_us=_S, window_draws=2)
    batching = Batching(batch_size=1, micro_batches_per_step=1)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    position = plan.position_at(1)
    batching = Batching(batch_size=1, micro_batches_per_step=8)
    position, _ = resume(position, [leaf], shape, batching)
    plan = plan_window(position, [leaf], shape, batching)
    fresh, repeats = _counted(plan, batching)
    assert len(fresh) == fresh.total() == 9
    assert repeats == 7


def test_draws_of_several_samples_are_made_to_fill_whole_steps():
    """Three parts a row, two steps of batches of one: eight draws, not three and some repeats."""
    leaf = columns("a", [3 * _S] * 50)
    shape = Shape(window_us=_S, window_draws=2)
    batching = Batching(batch_size=1, micro_batches_per_step=8)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    fresh, repeats = _counted(plan, batching)
    assert len(fresh) == fresh.total() == 24
    assert repeats == 0
    after = plan.position_at(plan.num_steps)
    assert after.leaves["a"].done == 8


def _counted(plan, batching):
    fresh, repeats = Counter(), 0
    for step in range(plan.num_steps):
        for slot in range(batching.micro_batches_per_step):
            batch = plan.micro_batch(step, slot)
            repeats += int(batch.repeated.sum())
            fresh.update(
                zip(
                    batch.row[~batch.repeated].tolist(),
                    batch.part[~batch.repeated].tolist(),
                    strict=True,
                )
            )
    return fresh, repeats


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"truncate_us": 0}, "truncate_us is 0"),
        ({"window_us": 999}, "window_us is 999"),
        ({"window_us": 20_000, "hop_us": 1}, "hop_us is 1"),
        ({"hop_us": 20_000}, "window_us is not given"),
        ({"pad_us": -1}, "pad_us is -1"),
        ({"slice_length": 0}, "slice_length is 0"),
        ({"truncate_offset": "middle"}, "truncate_offset is 'middle'"),
        ({"exclusions": -1}, "exclusions is -1"),
        ({"keep": None}, "keep is None"),
        ({"tokens": 5}, "tokens is 5"),
        ({"min_tps": 2.0}, "min_tps looks at the tokens"),
        ({"max_cer": 0.0}, "max_cer looks at the fields"),
        ({"excluded_speakers": True}, "excluded_speakers looks at the fields"),
        ({"min_tps": 2.0, "max_tps": 1.0, "tokens": "x"}, "above max_tps"),
        ({"max_tps": float("inf"), "tokens": "x"}, "max_tps is inf"),
        ({"max_tps": float("nan"), "tokens": "x"}, "max_tps is nan"),
    ],
)
def test_shapes_that_mean_nothing_are_refused(options, named):
    with pytest.raises(PlanError, match=named):
        Shape(**options)
