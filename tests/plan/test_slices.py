"""Passes over slices of shards: what they take, and what becomes of them when things change."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from playhead.errors import PositionError
from playhead.plan import Batching, Position, Shape, plan_window, resume, start
from playhead.plan.slices import rows_of_pass, slices_of
from support.plans import Trainer, columns

_S = 1_000_000
_SHAPE = Shape(slice_length=5, window_draws=33)
_BATCHING = Batching(batch_size=3)


def _leaf(key="a", shards=(8, 3, 12, 5), **more):
    shard = np.repeat(np.arange(len(shards)), shards).astype(np.int32)
    us = _S + np.arange(len(shard)) % 97 + 1_000 * (len(key) + sum(map(ord, key)))
    return columns(key, us, **{"slice_shard": shard, "shard": shard, **more})


def _trainer(shape=_SHAPE, leaves=None):
    leaves = leaves or [_leaf()]
    return Trainer(start(leaves, shape, _BATCHING, seed=1), leaves, shape, _BATCHING)


def _rows(trainer, key="a"):
    """Rows of each pass over a leaf, by pass."""
    rows = {}
    for leaf, pass_, row in trainer.seen.elements():
        if leaf == key:
            rows.setdefault(pass_, []).append(row)
    return {pass_: sorted(found) for pass_, found in sorted(rows.items())}


def _stretches(rows):
    """(first row, rows) of each shard of `_leaf`."""
    borders = np.searchsorted(rows, [0, 8, 11, 23, 28])
    parts = [rows[a:b] for a, b in pairwise(borders)]
    assert all(part == list(range(part[0], part[0] + len(part))) for part in parts)
    return [(part[0], len(part)) for part in parts]


def test_a_pass_is_over_the_slices():
    leaf = _leaf()
    assert rows_of_pass(leaf, 5) == 5 + 3 + 5 + 5
    assert rows_of_pass(leaf, None) == rows_of_pass(leaf, 99) == 28
    assert slices_of(columns("b", [1, 2]), 5) is None
    assert rows_of_pass(columns("b", [1, 2], slice_shard=None), 1) == 2
    assert rows_of_pass(_leaf(shards=()), 5) == 0


@pytest.mark.parametrize("locality", ["rows", "shards"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_pass_takes_other_stretches(locality, shuffle):
    trainer = _trainer(Shape(slice_length=5, window_draws=720, locality=locality, shuffle=shuffle))
    trainer.finish_window()
    starts = [Counter() for _ in range(4)]
    for rows in _rows(trainer).values():
        stretches = _stretches(rows)
        assert [count for _, count in stretches] == [5, 3, 5, 5]
        for shard, (first, _) in enumerate(stretches):
            starts[shard][first] += 1
    assert set(starts[0]) == {0, 1, 2, 3}
    assert set(starts[1]) == {8}
    assert set(starts[2]) == set(range(11, 19))
    assert set(starts[3]) == {23}


def test_shards_of_a_sliced_pass_are_read_in_one_stretch():
    shape = Shape(slice_length=5, window_draws=18, locality="shards")
    leaves = [_leaf()]
    unsorted = Batching(batch_size=18, bucketing=False)
    plan = plan_window(start(leaves, shape, unsorted, seed=1), leaves, shape, unsorted)
    drawn = sorted(plan._running.dealt.items.row.tolist())
    assert _stretches(drawn)
    order = leaves[0].shard[plan._running.dealt.items.row]
    assert np.count_nonzero(np.diff(order)) == 3


def test_declared_order_goes_from_slice_to_slice():
    shape = Shape(slice_length=5, finite=True, shuffle=False)
    leaves = [_leaf()]
    batching = Batching(batch_size=18, bucketing=False)
    plan = plan_window(start(leaves, shape, batching, seed=1), leaves, shape, batching)
    rows = plan.micro_batch(0, 0).row.tolist()
    assert rows == sorted(rows)
    assert len(rows) == 18


def test_a_running_pass_keeps_its_slices_when_the_length_changes():
    """Another length in mid-pass would make its places mean other rows."""
    trainer = _trainer(Shape(slice_length=5, window_draws=10))
    trainer.take(2)
    notes = trainer.change(shape=Shape(slice_length=2, window_draws=10))
    assert "in effect from the next window" in notes[0]
    trainer.finish_window()
    assert trainer.position.leaves["a"].slice_length == 5
    assert trainer.position.leaves["a"].next_slice_length == 2
    trainer.change(shape=Shape(window_draws=10))
    assert trainer.position.leaves["a"].slice_length == 5
    assert trainer.position.leaves["a"].next_slice_length is None
    trainer.change(shape=Shape(slice_length=2, window_draws=10))
    trainer.take(20)
    rows = _rows(trainer)
    assert [len(rows[pass_]) for pass_ in (0, 1, 2)] == [18, 8, 8]
    assert [count for _, count in _stretches(rows[0])] == [5, 3, 5, 5]
    assert [count for _, count in _stretches(rows[1])] == [2, 2, 2, 2]


def test_slices_end_with_the_pass_that_has_them():
    trainer = _trainer(Shape(slice_length=5, window_draws=10))
    trainer.take(2)
    trainer.change(shape=Shape(window_draws=10))
    trainer.take(40)
    rows = _rows(trainer)
    assert [len(rows[pass_]) for pass_ in (0, 1, 2)] == [18, 28, 28]


def test_a_finite_pass_that_began_keeps_its_slices():
    trainer = _trainer(Shape(slice_length=5, window_draws=9, finite=True))
    trainer.take(1)
    trainer.change(shape=Shape(slice_length=1, window_draws=9, finite=True))
    trainer.take(100)
    assert [count for _, count in _stretches(_rows(trainer)[0])] == [5, 3, 5, 5]


def test_rows_that_join_a_sliced_leaf_are_a_change_of_its_data():
    trainer = _trainer()
    trainer.take(2)
    grown = _leaf(shards=(8, 3, 12, 5, 6))
    with pytest.raises(PositionError, match=r"with slice_length .* other rows now"):
        trainer.change(leaves=[grown])
    trainer.change(leaves=[grown], on_change="restart_pass")
    assert trainer.position.leaves["a"].rows == 23
    trainer.take(30)
    assert all(n == 1 for (_, pass_, _), n in trainer.seen.items() if pass_)


def test_other_shards_of_the_same_rows_are_a_change_of_its_data():
    trainer = _trainer()
    trainer.take(2)
    with pytest.raises(PositionError, match="its shards are others"):
        trainer.change(leaves=[_leaf(shards=(4, 4, 3, 12, 5))])
    with pytest.raises(PositionError, match="its shards are others"):
        trainer.change(leaves=[_leaf(slice_shard=None)])


def test_leaves_that_are_not_sliced_grow_as_ever():
    shape = Shape(slice_length=5, window_draws=30)
    trainer = _trainer(shape, [_leaf(), _leaf("b", slice_shard=None)])
    trainer.take(2)
    grown = _leaf("b", (8, 3, 12, 5, 6), slice_shard=None)
    assert trainer.change(leaves=[_leaf(), grown]) == ()
    trainer.take(60)
    assert trainer.position.leaves["b"].rows == 34
    assert [len(rows) for rows in _rows(trainer).values()][:2] == [18, 18]


def test_a_moved_leaf_goes_on_with_its_slices():
    trainer = _trainer()
    trainer.take(2)
    moved = columns("elsewhere", _leaf().duration_us, slice_shard=_leaf().slice_shard)
    (note,) = trainer.change(leaves=[moved])
    assert "goes on from there" in note
    trainer.finish_window()
    rows = [row for _, pass_, row in trainer.seen.elements() if pass_ == 0]
    assert len(_stretches(sorted(rows))) == 4


def test_a_position_says_no_more_of_slices_than_it_must():
    trainer = _trainer()
    state = trainer.position.to_json()
    assert state["shape"]["slice_length"] == 5
    assert len(state["leaves"]["a"]) == 4
    assert state["leaves"]["a"][2] == 18
    for bad in ([0, 5], [5], ["5", 5], 5):
        entry = [*state["leaves"]["a"], {"slices": bad}]
        with pytest.raises(PositionError, match="damaged"):
            Position.from_json({**state, "leaves": {"a": entry}})


def test_another_seed_is_another_slice_from_the_next_pass_on():
    trainer = _trainer(Shape(slice_length=5, window_draws=10))
    trainer.take(2)
    trainer.change(reseed=9)
    trainer.take(40)
    first = _stretches(_rows(trainer)[0])
    same = _trainer(Shape(slice_length=5, window_draws=10))
    same.take(42)
    assert _stretches(_rows(same)[0]) == first
    assert [_rows(same)[p] for p in range(1, 5)] != [_rows(trainer)[p] for p in range(1, 5)]


def test_a_resumed_position_is_the_same():
    trainer = _trainer()
    trainer.take(3)
    resumed, notes = resume(trainer.position, trainer.leaves, _SHAPE, _BATCHING)
    assert (resumed, notes) == (trainer.position, ())
