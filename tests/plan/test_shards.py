"""Locality: each shard of a leaf is used in one stretch of every pass, all rows exactly once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.shards import rows_by_shard
from support.plans import Trainer, columns, speech

_BATCHING = Batching(batch_duration_us=60_000_000, micro_batches_per_step=4)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.data())
def test_a_pass_goes_from_shard_to_shard(shard_of_rows, data):
    shard = np.array(shard_of_rows, dtype=np.int32)
    whole = rows_by_shard(shard, 0, len(shard), seed=1, leaf=2, pass_=3)
    assert np.array_equal(np.sort(whole), np.arange(len(shard)))
    visited = shard[whole]
    changes = int(np.count_nonzero(np.diff(visited)))
    assert changes == len(np.unique(shard)) - 1
    first = data.draw(st.integers(0, len(shard) - 1))
    count = data.draw(st.integers(1, len(shard) - first))
    part = rows_by_shard(shard, first, count, seed=1, leaf=2, pass_=3)
    assert np.array_equal(part, whole[first : first + count])


def test_shards_and_rows_are_shuffled_anew_every_pass():
    shard = np.repeat(np.arange(20, dtype=np.int32), 30)
    passes = [rows_by_shard(shard, 0, 600, seed=1, leaf=2, pass_=p) for p in range(2)]
    orders = [shard[rows[::30]].tolist() for rows in passes]
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])
    assert np.count_nonzero(np.diff(passes[0]) == 1) < 60


def _leaf(key, shards, rows_per_shard, weight=1, seed=0):
    count = shards * rows_per_shard
    return columns(
        key,
        speech(count, seed),
        weight,
        shard=np.repeat(np.arange(shards, dtype=np.int32), rows_per_shard),
        shard_bytes=np.full(shards, 1_000_000),
    )


@settings(max_examples=25, deadline=None)
@given(st.booleans(), st.integers(40, 400), st.integers(0, 9))
def test_windows_use_each_shard_in_one_stretch_of_a_pass(finite, draws, seed):
    """A shard that a window's border cuts is used by windows in a row, and by no later one."""
    leaves = [_leaf("a", 12, 25, 2), _leaf("b", 3, 40, 1, 1), columns("c", speech(30))]
    shape = Shape(locality="shards", window_draws=draws, finite=finite)
    position = start(leaves, shape, _BATCHING, seed=seed)
    windows = {}
    for number in range(8):
        plan = plan_window(position, leaves, shape, _BATCHING)
        for step in range(plan.num_steps):
            for slot in range(4):
                batch = plan.micro_batch(step, slot)
                for leaf, pass_, row in zip(batch.leaf, batch.pass_, batch.row, strict=True):
                    if leaves[leaf].shard is not None:
                        shard = int(leaves[leaf].shard[row])
                        windows.setdefault((int(leaf), int(pass_), shard), set()).add(number)
        if plan.is_end:
            break
        position = plan.position_at(plan.num_steps)
    open_at = {}
    for (leaf, pass_, _), used in windows.items():
        assert max(used) - min(used) + 1 == len(used)
        for number in range(min(used), max(used)):
            open_at[leaf, pass_, number] = open_at.get((leaf, pass_, number), 0) + 1
    # Of each leaf, at most one shard is carried from one window into the next.
    assert max(open_at.values(), default=0) <= 1


def test_a_window_takes_at_most_half_of_the_cache():
    """Shards of a window are read ahead while those of the one before are in use."""
    leaves = [_leaf("a", 400, 100)]
    roomy = start(leaves, Shape(locality="shards"), _BATCHING, seed=1)
    tight = start(leaves, Shape(locality="shards", cache_bytes=10_000_000), _BATCHING, seed=1)
    assert tight.window_draws == 500 < roomy.window_draws
    rows = start(leaves, Shape(cache_bytes=10_000_000), _BATCHING, seed=1)
    assert rows.window_draws == roomy.window_draws


def test_a_pass_keeps_its_order_when_locality_changes():
    """Places in a pass mean nothing in another order: rows would come twice, others never."""
    leaves = [_leaf("a", 12, 25)]
    shape = Shape(locality="shards", window_draws=70)
    trainer = Trainer(start(leaves, shape, _BATCHING, seed=1), leaves, shape, _BATCHING)
    trainer.finish_window()
    trainer.change(shape=replace(shape, locality="rows"))
    while trainer.position.leaves["a"].pass_ < 2:
        trainer.finish_window()
    for pass_ in range(2):
        rows = sorted(row for _, p, row in trainer.seen.elements() if p == pass_)
        assert rows == list(range(300))


@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_rows_of_a_shard_need_not_lie_together(order):
    shard = np.repeat(np.arange(5, dtype=np.int32), 8)
    if order == "mixed":
        shard = np.random.default_rng(0).permutation(shard)
    rows = rows_by_shard(shard, 3, 30, seed=9, leaf=9, pass_=9)
    assert len(np.unique(rows)) == 30
    assert np.count_nonzero(np.diff(shard[rows])) <= 4


def _by_shard(plan):
    """Whether each sample goes from shard to shard, by (leaf, pass)."""
    found = {}
    for step in range(plan.num_steps):
        for slot in range(4):
            batch = plan.micro_batch(step, slot)
            flags = np.zeros(len(batch.row), bool) if batch.by_shard is None else batch.by_shard
            for leaf, pass_, flag in zip(batch.leaf, batch.pass_, flags, strict=True):
                found.setdefault((int(leaf), int(pass_)), set()).add(bool(flag))
    return found


def test_batches_say_whether_their_passes_go_from_shard_to_shard():
    """A pass that began row by row goes on so, and those after it do as they are told."""
    leaves = [_leaf("a", 4, 25), _leaf("b", 4, 10), columns("c", speech(30))]
    rows = Shape(window_draws=60)
    position = start(leaves, rows, _BATCHING, seed=3)
    plan = plan_window(position, leaves, rows, _BATCHING)
    assert set(_by_shard(plan)) >= {(0, 0), (1, 0)}
    assert set().union(*_by_shard(plan).values()) == {False}
    shards = Shape(window_draws=400, locality="shards")
    changed, _ = resume(plan.position_at(plan.num_steps), leaves, shards, _BATCHING)
    later = plan_window(changed, leaves, shards, _BATCHING)
    later = plan_window(later.position_at(later.num_steps), leaves, shards, _BATCHING)
    running = {leaf: later._position.leaves[leaf].pass_ for leaf in "abc"}
    for (leaf, pass_), flags in _by_shard(later).items():
        began_by_rows = pass_ == 0
        assert pass_ >= running["abc"[leaf]]
        assert flags == {leaf != 2 and not began_by_rows}


@pytest.mark.parametrize("locality", ["rows", "shards"])
def test_the_declared_order_goes_from_shard_to_shard_where_that_is_wanted(locality):
    leaves = [_leaf("a", 4, 25)]
    shape = Shape(window_draws=60, shuffle=False, locality=locality)
    plan = plan_window(start(leaves, shape, _BATCHING, seed=3), leaves, shape, _BATCHING)
    assert set().union(*_by_shard(plan).values()) == {locality == "shards"}


@settings(max_examples=25, deadline=None)
@given(st.booleans(), st.sampled_from(["rows", "shards"]), st.integers(0, 3))
def test_what_is_handed_out_from_a_step_on_is_what_the_batches_hold(finite, locality, from_):
    leaves = [_leaf("a", 6, 25, 2), columns("c", speech(30))]
    shape = Shape(locality=locality, window_draws=90, finite=finite)
    plan = plan_window(start(leaves, shape, _BATCHING, seed=1), leaves, shape, _BATCHING)
    first = min(from_, plan.num_steps)
    found = plan.samples_from(first)
    batches = [
        (step, plan.micro_batch(step, slot))
        for step in range(first, plan.num_steps)
        for slot in range(4)
    ]
    expected = [
        (step, int(leaf), int(row))
        for step, batch in batches
        for leaf, row in zip(batch.leaf, batch.row, strict=True)
    ]
    columns_found = (found.step.tolist(), found.leaf.tolist(), found.row.tolist())
    assert list(zip(*columns_found, strict=True)) == expected
    flags = [batch.by_shard for _, batch in batches]
    if found.by_shard is None:
        assert all(flag is None for flag in flags)
    else:
        sizes = [len(batch.row) for _, batch in batches]
        whole = [np.zeros(n, bool) if f is None else f for f, n in zip(flags, sizes, strict=True)]
        assert np.array_equal(found.by_shard, np.concatenate(whole))
