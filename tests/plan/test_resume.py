"""Stopped and started again with other GPUs, options and data: what is left comes exactly once."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from playhead.errors import PositionError
from playhead.plan import Batching, Position, Shape, plan_window, resume, start
from support.plans import Trainer, columns, speech

_BATCHING = Batching(batch_duration_us=60_000_000, micro_batches_per_step=4)
_SHAPE = Shape(window_draws=400)


def _leaves():
    return [columns("a", speech(1000), 3), columns("b", speech(150, 1), 1)]


def _trainer(shape=_SHAPE, batching=_BATCHING, leaves=None, seed=1):
    leaves = leaves or _leaves()
    return Trainer(start(leaves, shape, batching, seed=seed), leaves, shape, batching)


def _reversed(leaf):
    return columns(leaf.key, leaf.duration_us[::-1].copy(), leaf.weight)


# Batching


@pytest.mark.parametrize(
    "other",
    [
        Batching(batch_duration_us=30_000_000, micro_batches_per_step=4),
        Batching(batch_duration_us=60_000_000, micro_batches_per_step=6),
        Batching(
            batch_duration_us=60_000_000,
            quadratic_duration_us=9_000_000,
            micro_batches_per_step=4,
        ),
        Batching(
            bins_us=(9_000_000, 30_000_000), bucket_batch_size=(5, 2), micro_batches_per_step=4
        ),
        Batching(batch_duration_us=60_000_000, num_classes=7, micro_batches_per_step=4),
    ],
)
def test_a_lower_limit_after_an_out_of_memory_loses_nothing(other):
    """Replanned under the new options alone, nobody would know what the old batches held."""
    trainer = _trainer()
    trainer.take(7)
    notes = trainer.change(batching=other)
    assert any("dealt out anew" in note for note in notes)
    trainer.finish_window()
    assert trainer.position.window in (1, 2)
    draws = 400 * trainer.position.window
    assert sum(trainer.seen.values()) == draws
    assert max(trainer.seen.values()) == 1


def test_a_rest_smaller_than_a_step_takes_the_next_window_along():
    """Three samples left cannot fill eight slots: alone, they would be a step of eight singles."""
    trainer = _trainer(batching=Batching(batch_size=1, micro_batches_per_step=1))
    trainer.take(397)
    trainer.change(batching=Batching(batch_size=4, micro_batches_per_step=8))
    assert trainer.position.chain[-1].add == 1
    trainer.finish_window()
    assert trainer.position.window == 2
    assert sum(trainer.seen.values()) == 800
    assert max(trainer.seen.values()) == 1


def test_a_rest_of_many_batches_does_not():
    trainer = _trainer()
    trainer.take(2)
    trainer.change(batching=replace(_BATCHING, micro_batches_per_step=3))
    assert trainer.position.chain[-1].add == 0


def test_the_last_rest_of_a_finite_pass_has_no_window_to_take_along():
    trainer = _trainer(
        Shape(finite=True),
        Batching(batch_size=1, micro_batches_per_step=1),
        [columns("a", [1] * 9)],
    )
    trainer.take(6)
    trainer.change(batching=Batching(batch_size=1, micro_batches_per_step=8))
    assert trainer.position.chain[-1].add == 0
    assert trainer.take(10) == 1
    assert len(trainer.seen) == 9
    assert trainer.repeated == 5


def test_restarts_alone_do_not_lengthen_the_chain():
    """A job that dies before its first step, again and again, would fill its checkpoint."""
    trainer = _trainer()
    trainer.take(3)
    size = None
    for limit in (50, 40, 30, 20) * 5:
        trainer.change(batching=replace(_BATCHING, batch_duration_us=limit * 1_000_000))
        assert len(trainer.position.chain) == 2
        size = size or len(json.dumps(trainer.position.to_json()))
        assert len(json.dumps(trainer.position.to_json())) == size


def test_going_back_before_a_step_goes_on_as_if_nothing_was():
    """Keys of batches hold the number of the link: a link that never was must not count."""
    whole = _trainer()
    whole.take(20)
    tried = _trainer()
    tried.take(8)
    tried.change(batching=replace(_BATCHING, micro_batches_per_step=16))
    tried.change(batching=_BATCHING)
    tried.take(12)
    assert tried.steps == whole.steps
    assert tried.position == whole.position


def test_before_the_first_step_of_a_window_everything_takes_effect_at_once():
    trainer = _trainer()
    other = Shape(window_draws=99, max_duration_us=9_000_000)
    trainer.change(shape=other, batching=replace(_BATCHING, micro_batches_per_step=2), reseed=8)
    assert trainer.position == start(trainer.leaves, other, trainer.batching, seed=8)
    assert not trainer.notes


def test_a_state_taken_inside_a_step_counts_whole_steps():
    plan = plan_window(_trainer().position, _leaves(), _SHAPE, _BATCHING)
    assert plan.position_at(5).step == 5
    with pytest.raises(IndexError, match="not ahead"):
        plan.position_at(plan.num_steps + 1)


# Shape, weights, seed


def test_filters_and_weights_take_effect_at_the_next_window():
    trainer = _trainer()
    trainer.take(4)
    leaves = [columns("a", speech(1000), 1), columns("b", speech(150, 1), 9)]
    notes = trainer.change(leaves=leaves, shape=replace(_SHAPE, max_duration_us=8_000_000))
    assert notes == (
        "changed filters and drawing options, weights: in effect from the next window",
    )
    trainer.finish_window()
    assert sum(trainer.seen.values()) == 400
    assert sum(key == "b" for key, _, _ in trainer.seen.elements()) == 100
    trainer.seen.clear()
    trainer.finish_window()
    durations = {leaf.key: leaf.duration_us for leaf in leaves}
    assert all(durations[key][row] <= 8_000_000 for key, _, row in trainer.seen)
    assert sum(key == "b" for key, _, _ in trainer.seen.elements()) > 150


def test_a_new_seed_takes_effect_at_the_next_window_and_loses_nothing():
    """A pass that began under the old seed keeps its order: rows would come twice otherwise."""
    trainer = _trainer(leaves=[columns("a", speech(1000))])
    trainer.take(4)
    trainer.change(reseed=77)
    assert (trainer.position.seed, trainer.position.latest_seed) == (1, 77)
    trainer.change()
    assert trainer.position.latest_seed == 77
    trainer.finish_window()
    assert trainer.position.seed == 77
    while trainer.position.leaves["a"].pass_ < 2:
        trainer.finish_window()
    for pass_ in range(2):
        rows = [row for _, p, row in trainer.seen.elements() if p == pass_]
        assert sorted(rows) == list(range(1000))
    assert trainer.position.leaves["a"].seed == 77


def test_asking_for_the_old_seed_again_takes_a_new_one_back():
    trainer = _trainer()
    trainer.take(4)
    trainer.change(reseed=77)
    trainer.change(reseed=1)
    assert trainer.position.next_seed is None


def test_a_finite_pass_and_an_endless_blend_do_not_resume_each_other():
    trainer = _trainer()
    with pytest.raises(PositionError, match="of an endless blend, and this is a finite pass"):
        resume(trainer.position, trainer.leaves, Shape(finite=True), _BATCHING)


# Leaves


def test_rows_appended_to_a_leaf_join_at_its_next_pass():
    """A place counted modulo the number of rows would mean other rows after every growth."""
    trainer = _trainer(leaves=[columns("a", speech(1000))])
    trainer.take(4)
    grown = columns("a", np.concatenate([speech(1000), speech(200, 5)]))
    assert trainer.change(leaves=[grown]) == ()
    while trainer.position.leaves["a"].pass_ < 2:
        trainer.finish_window()
    rows = [sorted(r for _, p, r in trainer.seen.elements() if p == pass_) for pass_ in range(2)]
    assert rows == [list(range(1000)), list(range(1200))]


@pytest.mark.parametrize("steps", [0, 4])
def test_changed_data_are_refused_and_named(steps):
    trainer = _trainer()
    trainer.take(steps)
    leaves = [trainer.leaves[0], _reversed(trainer.leaves[1])]
    with pytest.raises(PositionError, match=r"'data/b.json' are not those .* first 150 rows"):
        trainer.change(leaves=leaves)
    explained = columns("b", leaves[1].duration_us, explain_change=lambda old, n: f"row {n - 1}")
    with pytest.raises(PositionError, match="row 149"):
        trainer.change(leaves=[trainer.leaves[0], explained])


def test_a_leaf_that_lost_rows_is_refused():
    trainer = _trainer()
    trainer.take(4)
    short = [columns("a", speech(999)), trainer.leaves[1]]
    with pytest.raises(PositionError, match="had 1000 rows and has 999"):
        trainer.change(leaves=short)


def test_a_changed_leaf_may_start_its_pass_over():
    trainer = _trainer()
    trainer.take(4)
    read = Counter(key for key, _, _ in trainer.seen.elements())
    notes = trainer.change(
        leaves=[trainer.leaves[0], _reversed(trainer.leaves[1])], on_change="restart_pass"
    )
    assert "its pass starts over" in notes[0]
    assert f"data/a.json: {300 - read['a']}" in notes[1]
    assert f"data/b.json: up to {100 - read['b']}" in notes[1]
    assert trainer.position.window == 1
    progress = trainer.position.leaves
    assert (progress["b"].pass_, progress["b"].done) == (1, 0)
    assert (progress["a"].pass_, progress["a"].done) == (0, 300)
    trainer.finish_window()
    assert max(trainer.seen.values()) == 1


def test_between_windows_a_change_costs_no_other_leaf_anything():
    trainer = _trainer()
    trainer.finish_window()
    notes = trainer.change(
        leaves=[trainer.leaves[0], _reversed(trainer.leaves[1])], on_change="restart_pass"
    )
    assert len(notes) == 1
    assert trainer.position.leaves["a"].done == 300


def test_a_leaf_that_is_gone_ends_the_window_and_every_unread_sample_is_counted():
    """Without its lengths nobody can tell which samples were in the batches handed out."""
    trainer = _trainer()
    trainer.take(4)
    read = Counter(key for key, _, _ in trainer.seen.elements())
    notes = trainer.change(leaves=[trainer.leaves[0]])
    assert len(notes) == 1
    assert f"data/a.json: {300 - read['a']}" in notes[0]
    assert f"b: up to {100 - read['b']}" in notes[0]
    assert trainer.position.step == 4
    trainer.finish_window()
    trainer.finish_window()
    rows = [(p, row) for key, p, row in trainer.seen.elements() if key == "a"]
    assert len(rows) == len(set(rows)) == read["a"] + 800
    assert trainer.position.leaves["b"].done == 100


@pytest.mark.parametrize("finite", [False, True])
def test_a_leaf_that_is_gone_before_it_was_drawn_from_is_not_needed_by_a_new_link(finite):
    """A small rest takes the next window along, which would draw from the leaf that is gone."""
    leaves = [
        columns("a", speech(300), 1000),
        columns("b", speech(60, 1), 1000),
        columns("c", speech(1, 2), 400),
    ]
    shape = Shape(finite=finite, window_draws=3)
    found = 0
    for seed in range(40):
        position = start(leaves, shape, Batching(batch_size=1), seed=seed)
        plan = plan_window(position, leaves, shape, Batching(batch_size=1))
        if plan.stats.draws.get("c"):
            continue
        found += 1
        late = plan.position_at(plan.num_steps - 1)
        wide = Batching(batch_size=4, micro_batches_per_step=6)
        resumed, notes = resume(late, leaves[:2], shape, wide)
        following = plan_window(resumed, leaves[:2], shape, wide)
        assert following.num_steps
        if resumed.window != late.window:
            assert any("which is gone" in note for note in notes)
    assert found > 5


def test_a_leaf_that_is_gone_between_windows_costs_nothing_and_may_come_back():
    trainer = _trainer()
    leaves = trainer.leaves
    trainer.finish_window()
    assert trainer.change(leaves=leaves[:1]) == ()
    trainer.finish_window()
    assert trainer.position.leaves["b"].done == 100
    assert trainer.change(leaves=leaves) == ()
    trainer.finish_window()
    assert trainer.position.leaves["b"].pass_ == 1
    rows = [row for key, p, row in trainer.seen.elements() if (key, p) == ("b", 0)]
    assert sorted(rows) == list(range(150))


def test_rows_that_filled_up_a_step_are_not_drawn_again_after_a_window_is_given_up():
    leaves = [columns("a", speech(1000), 3), columns("b", speech(150, 1), 1)]
    trainer = _trainer(
        Shape(window_draws=203), Batching(batch_size=1, micro_batches_per_step=8), leaves
    )
    trainer.take(20)
    trainer.change(leaves=leaves[:1])
    trainer.take(60)
    rows = [(p, r) for key, p, r in trainer.seen.elements() if key == "a"]
    assert len(rows) == len(set(rows))


def test_a_new_leaf_joins_at_the_next_window():
    trainer = _trainer()
    trainer.take(4)
    new = columns("c", speech(500, 7), 4)
    notes = trainer.change(leaves=[new, *trainer.leaves])
    assert notes == ("changed weights, new leaves (data/c.json): in effect from the next window",)
    trainer.finish_window()
    assert not any(key == "c" for key, _, _ in trainer.seen)
    trainer.finish_window()
    assert sum(key == "c" for key, _, _ in trainer.seen.elements()) == 200


def test_moved_data_are_recognised_by_their_content():
    """Under a new path a leaf has a new key: its place must not be lost, nor its order."""
    whole = _trainer()
    whole.take(40)
    moved = _trainer()
    moved.take(4)
    leaves = [columns("elsewhere", speech(1000), 3), moved.leaves[1]]
    notes = moved.change(leaves=leaves)
    assert len(notes) == 1
    assert "'data/elsewhere.json' (elsewhere) has the data of a" in notes[0]
    moved.take(30)
    assert moved.change() == ()
    moved.take(6)
    rows = [[[s[2] for s in slot[2]] for slot in step] for step in whole.steps]
    assert [[[s[2] for s in slot[2]] for slot in step] for step in moved.steps] == rows
    keys = [[slot[3] for slot in step] for step in whole.steps]
    assert [[slot[3] for slot in step] for step in moved.steps] == keys


def test_the_end_of_a_finite_pass_stays_the_end():
    leaves = [columns("a", speech(100))]
    shape = Shape(finite=True)
    trainer = _trainer(shape, leaves=leaves)
    trainer.take(1000)
    end = trainer.position
    trainer.change(leaves=[*leaves, columns("b", speech(50))], batching=Batching(batch_size=3))
    assert trainer.take(10) == 0
    assert trainer.position.step == end.step
    assert len(trainer.seen) == 100


def test_a_new_leaf_joins_a_finite_pass_at_its_next_window():
    leaves = [columns("a", speech(400))]
    trainer = _trainer(Shape(finite=True, window_draws=100), leaves=leaves)
    trainer.finish_window()
    trainer.change(leaves=[*leaves, columns("b", speech(50))])
    trainer.take(1000)
    assert trainer.seen == Counter(
        [("a", 0, row) for row in range(400)] + [("b", 0, row) for row in range(50)]
    )


def test_resuming_costs_the_same_at_any_step():
    """One window is planned, wherever training stands: the position holds no history."""
    trainer = _trainer()
    state = trainer.position.to_json()
    state["step"] = 10_000_000
    state["window"] = 123_456
    state["leaves"] = {
        key: [entry[0] + 9_999, *entry[1:]] for key, entry in state["leaves"].items()
    }
    far = Position.from_json(state)
    plan = plan_window(far, trainer.leaves, _SHAPE, _BATCHING)
    assert plan.micro_batch(0, 0).step == 10_000_000
    assert (
        abs(
            plan.num_steps
            - plan_window(trainer.position, trainer.leaves, _SHAPE, _BATCHING).num_steps
        )
        <= 3
    )


def test_counts_of_what_is_not_read_reach_over_all_links():
    trainer = _trainer()
    for per_step in (4, 2, 3):
        trainer.change(batching=replace(_BATCHING, micro_batches_per_step=per_step))
        trainer.take(3)
    assert len(trainer.position.chain) == 3
    read = Counter(key for key, _, _ in trainer.seen.elements())
    notes = trainer.change(leaves=[trainer.leaves[0]])
    assert f"data/a.json: {300 - read['a']}" in notes[-1]
    assert f"b: up to {100 - read['b']}" in notes[-1]


def test_repeats_that_were_not_handed_out_are_not_dealt_out_again():
    """They only filled a step: cut anew, the pass would give them as samples of their own."""
    leaves = [columns("a", speech(11))]
    trainer = _trainer(Shape(finite=True), Batching(batch_size=1, micro_batches_per_step=8), leaves)
    trainer.take(1)
    trainer.change(batching=Batching(batch_size=1, micro_batches_per_step=1))
    trainer.take(100)
    assert trainer.seen == Counter(("a", 0, row) for row in range(11))
    assert len(trainer.steps) == 1 + 3 + trainer.repeated
    assert trainer.repeated <= 5


def test_batches_of_another_link_have_keys_of_their_own():
    """Steps are numbered from 0 again: without the link, two batches would share their noise."""
    trainer = _trainer()
    trainer.take(4)
    trainer.change(batching=replace(_BATCHING, micro_batches_per_step=2))
    trainer.finish_window()
    keys = [slot[1] for step in trainer.steps for slot in step]
    assert len(set(keys)) == len(keys)
