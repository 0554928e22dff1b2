"""What a window trains on: full steps, hard limits, and nothing lost or repeated in silence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from playhead.errors import PlanError, PositionError
from playhead.plan import Batching, Shape, count_steps, plan_window, start
from playhead.plan.keyed import Purpose, key, text_word
from support.plans import Trainer, columns, lengths, speech

_SPEECH = Batching(
    micro_batches_per_step=8, batch_duration_us=660_000_000, quadratic_duration_us=30_000_000
)


def _plan(leaves, shape, batching, seed=1, **more):
    position = start(leaves, shape, batching, seed=seed, **more)
    return plan_window(position, leaves, shape, batching)


def _trainer(leaves, shape, batching, seed=1):
    return Trainer(start(leaves, shape, batching, seed=seed), leaves, shape, batching)


def _batches(plan, per_step):
    return [
        plan.micro_batch(step, slot) for step in range(plan.num_steps) for slot in range(per_step)
    ]


# Multiples of the step


def test_batches_of_one_are_topped_up_in_an_endless_blend():
    """1,003 batches of one sample cannot be split into 1,008: five more rows are drawn."""
    leaves = [columns("a", speech(5000)), columns("b", speech(300, 1))]
    shape = Shape(window_draws=1003)
    batching = Batching(batch_size=1, micro_batches_per_step=8)
    trainer = _trainer(leaves, shape, batching)
    plan = plan_window(trainer.position, leaves, shape, batching)
    assert plan.num_steps == 126
    assert trainer.take(126) == 126
    assert trainer.repeated == 0
    assert sum(plan.stats.draws.values()) == 1008
    trainer.take(126)
    assert max(trainer.seen.values()) == 1
    assert sum(trainer.seen.values()) == 2016


def test_rows_that_fill_up_a_step_stay_in_their_window_when_it_is_cut_anew():
    """Saved inside such a window and resumed under other options, no row comes twice."""
    leaves = [columns("a", speech(3000)), columns("b", speech(700, 1))]
    shape = Shape(window_draws=203)
    trainer = _trainer(leaves, shape, Batching(batch_size=1, micro_batches_per_step=8))
    trainer.take(20)
    assert trainer.position.chain[-1].further == 5
    trainer.change(batching=Batching(batch_size=2, micro_batches_per_step=6))
    trainer.take(60)
    assert max(trainer.seen.values()) == 1


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_finite_pass_that_ends_inside_a_step_repeats_or_drops(drop_last, shuffle):
    """Only the very last step of a pass may repeat samples, and only `drop_last` leaves it out."""
    leaves = [columns("a", speech(1003))]
    shape = Shape(finite=True, shuffle=shuffle, window_draws=200)
    batching = Batching(batch_size=1, micro_batches_per_step=8, drop_last=drop_last)
    trainer = _trainer(leaves, shape, batching)
    total = count_steps(trainer.position, leaves, shape, batching)
    assert trainer.take(1000) == total == (125 if drop_last else 126)
    assert len(trainer.seen) == (1000 if drop_last else 1003)
    assert max(trainer.seen.values()) == 1
    assert trainer.repeated == (0 if drop_last else 5)


def test_what_drop_last_leaves_out_is_counted():
    leaves = [columns("a", speech(19))]
    shape = Shape(finite=True)
    plan = _plan(leaves, shape, Batching(batch_size=1, micro_batches_per_step=8, drop_last=True))
    assert plan.num_steps == 2
    assert plan.stats.dropped == {"drop_last": 3}
    kept = _plan(leaves, shape, Batching(batch_size=1, micro_batches_per_step=8))
    assert kept.stats.dropped == {}
    assert kept.stats.repeated == 5


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_pass_of_fewer_samples_than_a_step(rows, drop_last):
    leaves = [columns("a", speech(rows))]
    batching = replace(_SPEECH, drop_last=drop_last)
    trainer = _trainer(leaves, Shape(finite=True), batching)
    steps = trainer.take(10)
    assert steps == (0 if rows < 8 and drop_last else 1)
    assert len(trainer.seen) == rows * steps
    assert trainer.repeated == max(0, 8 - rows) * steps
    assert count_steps(trainer.position, leaves, Shape(finite=True), batching) == 0


def test_lowering_the_limit_spreads_the_loss():
    """Halving alone makes one batch in twenty small when a window has twenty steps."""
    leaves = [columns("a", speech(40_000))]
    batching = replace(_SPEECH, micro_batches_per_step=64)
    plan = _plan(leaves, Shape(window_draws=75_000), batching)
    assert 19 <= plan.num_steps <= 21
    assert plan.stats.small_batches < 0.01


def test_batches_of_a_size_are_made_even_and_not_halved():
    leaves = [columns("a", speech(40_000))]
    batching = Batching(batch_size=16, micro_batches_per_step=64)
    plan = _plan(leaves, Shape(window_draws=16_500), batching)
    sizes = {len(batch.row) for batch in _batches(plan, 64)}
    assert max(sizes) <= 16
    assert max(sizes) - min(sizes) <= 1


# Limits


def test_every_class_is_bounded_by_its_longest_sample():
    """Bound by the class's border or its mean, a batch would exceed the limit now and then."""
    leaves = [columns("a", speech(30_000))]
    trainer = _trainer(leaves, Shape(), replace(_SPEECH, bins_us=(4_000_000, 9_000_000)))
    trainer.take(100)
    assert sum(trainer.seen.values()) > 20_000


def test_rows_without_length_make_batches_that_end():
    """Text-only rows count 10 ms each and 4,096 at most, never one endless batch."""
    leaves = [columns("a", np.zeros(20_000))]
    plan = _plan(leaves, Shape(), Batching(batch_duration_us=10_000_000))
    sizes = [len(batch.row) for batch in _batches(plan, 1)]
    assert max(sizes) <= 1000
    huge = _plan(leaves, Shape(), Batching(batch_duration_us=10**12))
    assert max(len(batch.row) for batch in _batches(huge, 1)) <= 4096


@pytest.mark.parametrize("bucketing", [True, False])
def test_a_sample_above_the_limit_is_alone_and_named(bucketing):
    us = speech(500)
    us[77] = 700_000_000
    us[78] = 650_000_000
    leaves = [columns("a", us)]
    shape = Shape(finite=True)
    batching = Batching(batch_duration_us=600_000_000, bucketing=bucketing)
    plan = _plan(leaves, shape, batching)
    for batch in _batches(plan, 1):
        if max(lengths(leaves, batch)) > 600_000_000:
            assert len(batch.row) == 1
    assert plan.stats.oversize == 2
    longest = plan.stats.longest_oversize
    assert (longest.leaf, longest.row, longest.duration_us) == ("data/a.json", 77, 700_000_000)
    dropping = _plan(leaves, shape, replace(batching, oversize="drop"))
    assert dropping.stats.dropped == {"oversize": 2}
    assert {77, 78} & {row for b in _batches(dropping, 1) for row in b.row.tolist()} == set()


def test_samples_above_the_last_fixed_bin_are_dropped_and_counted():
    us = speech(500)
    leaves = [columns("a", us)]
    batching = Batching(bins_us=(5_000_000, 10_000_000), bucket_batch_size=(6, 3))
    plan = _plan(leaves, Shape(finite=True, window_draws=500), batching)
    above = int((us > 10_000_000).sum())
    assert plan.stats.dropped == {"above_last_bin": above}
    assert sum(len(batch.row) for batch in _batches(plan, 1)) == 500 - above


def test_filters_are_inclusive_and_counted():
    leaves = [columns("a", [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000])]
    shape = Shape(finite=True, min_duration_us=2_000_000, max_duration_us=4_000_000)
    plan = _plan(leaves, shape, Batching(batch_size=9))
    assert sorted(row for b in _batches(plan, 1) for row in b.row.tolist()) == [1, 2, 3]
    assert plan.stats.dropped == {"min_duration": 1, "max_duration": 1}


# Quality


def test_copies_of_a_row_are_spread_over_batches():
    """Sorted exactly by length, all copies of a row of a small leaf would share a batch."""
    leaves = [columns("big", speech(400_000), 99), columns("small", speech(300, 1), 1)]
    batching = replace(_SPEECH, micro_batches_per_step=64)
    plan = _plan(leaves, Shape(), batching)
    copies = plan.stats.draws["small"] / 300
    assert copies > 10
    assert plan.stats.most_copies <= 7


def test_batches_of_a_small_corpus_hold_no_sample_twice():
    """A window of many passes would put copies of a sample, which have one length, together."""
    leaves = [columns("a", speech(2000))]
    alone = replace(_SPEECH, micro_batches_per_step=1)
    position = start(leaves, Shape(), alone, seed=1)
    for _ in range(4):
        plan = plan_window(position, leaves, Shape(), alone)
        assert plan.stats.draws["a"] == 2000
        assert plan.stats.most_copies == 1
        position = plan.position_at(plan.num_steps)


def test_batches_are_full_and_ranks_even():
    leaves = [columns("a", speech(400_000))]
    batching = replace(_SPEECH, micro_batches_per_step=64)
    plan = _plan(leaves, Shape(), batching)
    stats = plan.stats
    assert plan.num_steps >= 100
    assert stats.padding < 0.02
    assert stats.unused_budget < 0.03
    assert stats.imbalance < 1.01
    for quadratic in (None, 8_000_000):
        cost = []
        for batch in _batches(plan, 64):
            longest = max(lengths(leaves, batch))
            effort = longest + (longest * longest / quadratic if quadratic else 0)
            cost.append(len(batch.row) * effort)
        cost = np.array(cost).reshape(-1, 64)
        assert (cost.max(axis=1) / cost.mean(axis=1)).mean() < 1.02


# Order


def test_the_order_of_leaves_does_not_matter():
    """Quotas by place in the config: moving a line of the YAML would change the whole stream."""
    leaves = [columns(f"k{n}", speech(40 + n, n), 1 + n) for n in range(7)]
    turned = leaves[3:] + leaves[:3]
    one = _trainer(leaves, Shape(), _SPEECH)
    other = _trainer(turned, Shape(), _SPEECH)
    one.take(30)
    other.take(30)
    assert one.steps == other.steps


def test_declared_order_is_kept_without_shuffling_and_buckets():
    leaves = [columns("z", speech(40)), columns("a", speech(25, 1))]
    shape = Shape(finite=True, shuffle=False, window_draws=20)
    batching = Batching(batch_duration_us=40_000_000, bucketing=False, micro_batches_per_step=3)
    trainer = _trainer(leaves, shape, batching)
    trainer.take(1000)
    order = [sample for step in trainer.steps for slot in step for sample in slot[2]]
    assert order == [("z", 0, row) for row in range(40)] + [("a", 0, row) for row in range(25)]


def test_an_endless_blend_in_declared_order_alternates_its_leaves():
    leaves = [columns("z", speech(4000)), columns("a", speech(1000, 1), 3)]
    shape = Shape(shuffle=False, window_draws=400)
    batching = Batching(batch_size=8, bucketing=False)
    trainer = _trainer(leaves, shape, batching)
    trainer.take(50)
    order = [sample for step in trainer.steps for slot in step for sample in slot[2]]
    assert [row for leaf, _, row in order if leaf == "a"] == list(range(300))
    assert [row for leaf, _, row in order if leaf == "z"] == list(range(100))
    for at in range(0, 400, 40):
        assert 28 <= sum(leaf == "a" for leaf, _, _ in order[at : at + 40]) <= 32


def test_buckets_without_shuffling_hand_out_steps_by_their_earliest_row():
    leaves = [columns("a", speech(600))]
    shape = Shape(finite=True, shuffle=False)
    trainer = _trainer(leaves, shape, replace(_SPEECH, batch_duration_us=60_000_000))
    trainer.take(1000)
    earliest = [min(row for slot in step for _, _, row in slot[2]) for step in trainer.steps]
    assert earliest == sorted(earliest)
    again = _trainer(leaves, shape, replace(_SPEECH, batch_duration_us=60_000_000), seed=99)
    again.take(1000)
    assert [[slot[2] for slot in step] for step in again.steps] == [
        [slot[2] for slot in step] for step in trainer.steps
    ]


def test_seeds_and_passes_have_their_own_order():
    leaves = [columns("a", speech(400))]
    shape = Shape(finite=True)
    first = {}
    for seed, pass_ in ((1, 0), (1, 1), (2, 0)):
        batch = _plan(leaves, shape, _SPEECH, seed, pass_=pass_).micro_batch(0, 0)
        first[seed, pass_] = batch.row.tolist()
        assert set(batch.pass_.tolist()) == {pass_}
    assert len({tuple(rows) for rows in first.values()}) == 3


# Passes


def test_a_finite_pass_of_several_leaves_ignores_weights_and_has_no_small_last_window():
    """Weights cannot hold to the end of a pass; windows of W draws would leave a rest."""
    leaves = [columns("a", speech(700), 5), columns("b", speech(331, 1), 0), columns("c", [])]
    shape = Shape(finite=True, window_draws=300)
    trainer = _trainer(leaves, shape, replace(_SPEECH, batch_duration_us=60_000_000))
    sizes = []
    while True:
        before = sum(trainer.seen.values())
        plan = plan_window(trainer.position, leaves, shape, trainer.batching)
        trainer.finish_window()
        sizes.append(sum(trainer.seen.values()) - before)
        if plan.is_end:
            break
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) < 30
    assert trainer.seen == Counter(
        [("a", 0, row) for row in range(700)] + [("b", 0, row) for row in range(331)]
    )


def test_a_tiny_leaf_is_drawn_in_whole_passes():
    leaves = [columns("a", speech(3)), columns("b", speech(10_007, 1))]
    shape = Shape(window_draws=1000)
    trainer = _trainer(leaves, shape, Batching(batch_size=10))
    trainer.take(100)
    rows = Counter((p, r) for k, p, r in trainer.seen.elements() if k == "a")
    assert trainer.position.leaves["a"].pass_ == 166
    assert all(rows[pass_, row] == 1 for pass_ in range(166) for row in range(3))


@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 10_007])
def test_counts_are_exact(size):
    leaves = [columns("a", speech(size)), columns("b", speech(size // 3, 1))]
    shape = Shape(finite=True, window_draws=500)
    batching = replace(_SPEECH, micro_batches_per_step=4, batch_duration_us=100_000_000)
    trainer = _trainer(leaves, shape, batching)
    total = count_steps(trainer.position, leaves, shape, batching)
    trainer.take(3)
    assert count_steps(trainer.position, leaves, shape, batching) == total - len(trainer.steps)
    trainer.take(10_000)
    assert len(trainer.steps) == total
    end = plan_window(trainer.position, leaves, shape, batching)
    assert (end.num_steps, end.first_step, end.is_end) == (0, 0, True)
    assert end.position_at(0) == trainer.position


def test_an_endless_blend_has_no_count():
    leaves = [columns("a", speech(10))]
    with pytest.raises(PlanError, match="endless"):
        count_steps(start(leaves, Shape(), _SPEECH, seed=1), leaves, Shape(), _SPEECH)


def test_windows_that_filters_leave_empty_are_passed_over():
    us = np.full(300, 1_000_000)
    us[150] = 9_000_000
    leaves = [columns("a", us)]
    shape = Shape(finite=True, min_duration_us=5_000_000, window_draws=10)
    trainer = _trainer(leaves, shape, Batching(batch_size=4))
    assert count_steps(trainer.position, leaves, shape, trainer.batching) == 1
    plan = plan_window(trainer.position, leaves, shape, trainer.batching)
    assert plan.stats.dropped["min_duration"] > 0
    assert trainer.take(100) == 1
    assert dict(trainer.seen) == {("a", 0, 150): 1}


def test_an_endless_blend_of_rare_rows_still_fills_its_steps():
    us = np.full(3000, 1_000_000)
    us[7] = 9_000_000
    leaves = [columns("a", us)]
    shape = Shape(min_duration_us=5_000_000, window_draws=10)
    trainer = _trainer(leaves, shape, Batching(batch_size=4, micro_batches_per_step=2))
    assert trainer.take(3) == 3
    assert [row for _, _, row in trainer.seen.elements()] == [7] * 6
    assert sorted(pass_ for _, pass_, _ in trainer.seen.elements()) == list(range(6))


# Micro-batches


def test_leaves_are_numbered_as_given():
    leaves = [columns("z", speech(50)), columns("a", np.full(50, 77_000))]
    plan = _plan(leaves, Shape(finite=True), Batching(batch_size=5))
    for batch in _batches(plan, 1):
        for leaf, length in zip(batch.leaf.tolist(), lengths(leaves, batch), strict=True):
            assert (length == 77_000) == (leaf == 1)


def test_keys_are_of_the_sample_and_of_the_batch():
    """A sample's key outlives re-batching; a batch's key knows neither rank nor worker."""
    leaves = [columns("a", speech(100))]
    plan = _plan(leaves, Shape(window_draws=50), Batching(batch_size=5, micro_batches_per_step=2))
    batch = plan.micro_batch(1, 1)
    assert batch.key == key(1, Purpose.BATCH, 0, 0, 1, 1)
    assert batch.sample_keys.tolist() == [
        key(1, Purpose.SAMPLE, text_word("a"), pass_, row, 0)
        for pass_, row in zip(batch.pass_.tolist(), batch.row.tolist(), strict=True)
    ]
    assert (batch.step, batch.slot) == (1, 1)
    assert not batch.part.any()
    assert not batch.repeated.any()
    every = [b.key for b in _batches(plan, 2)]
    assert len(set(every)) == len(every)


def test_copies_of_a_row_in_other_passes_have_other_keys():
    leaves = [columns("a", speech(3))]
    plan = _plan(leaves, Shape(window_draws=30), Batching(batch_size=5))
    keys = [k for batch in _batches(plan, 1) for k in batch.sample_keys.tolist()]
    assert len(set(keys)) == 30


@pytest.mark.parametrize(("step", "slot"), [(-1, 0), (0, 2), (0, -1), (10_000, 0)])
def test_slots_that_are_not_there_raise(step, slot):
    leaves = [columns("a", speech(100))]
    plan = _plan(leaves, Shape(), Batching(batch_size=5, micro_batches_per_step=2))
    with pytest.raises(IndexError, match="no slot"):
        plan.micro_batch(step, slot)


def test_a_position_of_other_batching_has_to_be_resumed_first():
    leaves = [columns("a", speech(100))]
    position = start(leaves, Shape(), _SPEECH, seed=1)
    with pytest.raises(PositionError, match="other batching"):
        plan_window(position, leaves, Shape(), Batching(batch_size=2))


def test_a_leaf_that_is_missing_from_the_running_window_is_never_passed_over():
    leaves = [columns("a", speech(100)), columns("b", speech(100, 1))]
    position = _plan(leaves, Shape(), _SPEECH).position_at(3)
    with pytest.raises(PositionError, match="'b' of the running window is missing"):
        plan_window(position, leaves[:1], Shape(), _SPEECH)


def test_the_same_arguments_give_the_same_plan():
    """Nothing is kept between calls: neither a generator nor what was planned before."""
    leaves = [columns("a", speech(900)), columns("b", speech(77, 1), 2)]
    plan = _plan(leaves, Shape(), _SPEECH)
    position = plan.position_at(4)
    _plan(leaves, Shape(shuffle=False), _SPEECH, seed=5)
    np.random.default_rng(0).random()
    again = plan_window(position, leaves, Shape(), _SPEECH)
    assert again.num_steps == plan.num_steps
    for step in range(4, plan.num_steps):
        for slot in range(8):
            one, other = plan.micro_batch(step, slot), again.micro_batch(step, slot)
            assert one.key == other.key
            assert one.step == other.step == step
            assert np.array_equal(one.sample_keys, other.sample_keys)


@pytest.mark.parametrize("size", [1500, 60])
def test_every_pass_has_an_order_of_its_own(size):
    leaves = [columns("a", speech(size))]
    trainer = _trainer(leaves, Shape(window_draws=size // 3), Batching(batch_size=10))
    thirds = []
    for _ in range(6):
        trainer.finish_window()
        thirds.append({row for _, _, row in trainer.seen})
        trainer.seen.clear()
    assert len(thirds[0] & thirds[3]) < 0.6 * size // 3


def test_a_length_at_a_fixed_border_has_the_size_of_the_bin_below():
    batching = Batching(bins_us=(5_000_000, 10_000_000), bucket_batch_size=(6, 3))
    for length, size in ((5_000_000, 6), (5_000_001, 3), (10_000_000, 3)):
        leaves = [columns("a", np.full(18, length))]
        plan = _plan(leaves, Shape(finite=True), batching)
        assert [len(batch.row) for batch in _batches(plan, 1)] == [size] * (18 // size)


def test_a_leaf_of_a_tenth_of_a_draw_a_window_gets_its_share_in_the_long_run():
    """Rounded the same way in every window, it would never be drawn, or ten times too often."""
    leaves = [
        columns("a", speech(500), 499),
        columns("b", speech(50, 1), 1),
        columns("c", [1], 500),
    ]
    trainer = _trainer(leaves, Shape(window_draws=100), Batching(batch_size=100))
    trainer.take(200)
    assert 8 <= sum(key == "b" for key, _, _ in trainer.seen.elements()) <= 35
