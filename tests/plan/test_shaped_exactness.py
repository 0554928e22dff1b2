"""Speed, truncation, windows, padding, filters, tokens, 2-D bins and slices, in seconds and in
tokens, padded and packed: still every sample comes once, no batch is above its limit, and a run
that was stopped is the run that was not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.plan import Batching, Shape, count_steps, plan_window, start
from playhead.plan.filters import refused_rows
from support.multimodal import (
    TokenWalker,
    leaves_in_tokens,
    padded_and_packed,
    shapes_in_tokens,
    token_batchings,
)
from support.plans import columns
from support.shaped import (
    Walker,
    batchings,
    leaves_of,
    refuse_nothing,
    shapes,
)

_relaxed = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

# These two plan several windows and check every sample twice.
_few = settings(_relaxed, max_examples=_relaxed.max_examples * 2 // 5)


def _start(leaves, shape, batching, seed=7, pass_=0):
    """The start; blends of which nothing is accepted are another test's."""
    try:
        return start(leaves, shape, batching, seed=seed, pass_=pass_)
    except PlanError:
        assume(False)


class Model(NamedTuple):
    """What samples count, and what is drawn of it."""

    walker: type[Walker]
    leaves: Any
    shapes: Any
    batchings: Any
    lossless: Any
    """Batchings that refuse no sample."""


_seconds = Model(Walker, leaves_of, shapes, batchings, lambda: batchings(refuse_nothing))
_tokens = Model(
    TokenWalker,
    leaves_in_tokens,
    shapes_in_tokens,
    token_batchings,
    lambda: token_batchings(padded_and_packed),
)
_both = pytest.mark.parametrize("model", [_seconds, _tokens], ids=["seconds", "tokens"])


@_both
@_relaxed
@given(st.integers(0, 3), st.data())
def test_a_finite_pass_gives_every_accepted_sample_once_and_counts_the_others(model, pass_, data):
    leaves = data.draw(model.leaves())
    shape = data.draw(model.shapes(finite=True, slice_length=None))
    batching = data.draw(model.batchings())
    walker = model.walker(_start(leaves, shape, batching, pass_=pass_), leaves, shape, batching)
    shape = walker.position.shape
    assert shape.exclusions == max(leaf.excluded_at.max(initial=0) for leaf in leaves)
    left = count_steps(walker.position, leaves, shape, batching)
    assert walker.take(10_000) == left
    kept, refused = Counter(), Counter()
    for leaf in leaves:
        more = walker.expected(leaf, [pass_], shape, 7, batching)
        kept.update(more[0])
        refused.update(more[1])
    assert walker.seen == kept
    assert walker.dropped == refused
    # In mid-pass only where rows have several parts and no batch may take two of them.
    windows = walker.position.window % (1 << 32) + 1 if shape.in_parts else 1
    assert walker.repeated <= windows * (batching.micro_batches_per_step - 1)


@_both
@_relaxed
@given(st.data())
def test_other_batching_from_some_step_on_gives_what_remains_once(model, data):
    """Other limits, padded or packed, and any number of micro-batches a step."""
    leaves = data.draw(model.leaves())
    shape = data.draw(model.shapes(finite=True, slice_length=None))
    batching = data.draw(model.lossless())
    walker = model.walker(_start(leaves, shape, batching), leaves, shape, batching)
    shape = walker.position.shape
    for _ in range(data.draw(st.integers(1, 4))):
        walker.take(data.draw(st.integers(0, 4)))
        walker.change(batching=data.draw(model.lossless()))
    walker.take(10_000)
    kept = Counter()
    for leaf in leaves:
        kept.update(walker.expected(leaf, [0], shape, 7)[0])
    assert walker.seen == kept


@_both
@_relaxed
@given(st.data())
def test_other_bins_from_some_step_on_lose_nothing_uncounted(model, data):
    leaves = data.draw(model.leaves())
    shape = data.draw(model.shapes(finite=True, slice_length=None))
    batching = data.draw(model.batchings())
    walker = model.walker(_start(leaves, shape, batching), leaves, shape, batching)
    shape = walker.position.shape
    for _ in range(data.draw(st.integers(1, 4))):
        walker.take(data.draw(st.integers(0, 4)))
        other = data.draw(model.batchings())
        try:
            start(leaves, shape, other, seed=0)
        except PlanError:
            continue
        walker.change(batching=other)
    walker.take(10_000)
    total = sum(
        len(walker.samples_of(leaf, 0, row, shape, 7))
        for leaf in leaves
        for row in range(leaf.num_rows)
    )
    assert max(walker.seen.values(), default=1) == 1
    assert len(walker.seen) + walker.dropped.total() == total


@_both
@_relaxed
@given(st.data())
def test_an_endless_blend_gives_every_pass_whole(model, data):
    leaves = data.draw(model.leaves())
    shape = data.draw(model.shapes(slice_length=None))
    batching = data.draw(model.lossless())
    walker = model.walker(_start(leaves, shape, batching), leaves, shape, batching)
    drawn_with = walker.position.shape
    for _ in range(data.draw(st.integers(0, 4))):
        walker.take(data.draw(st.integers(0, 4)))
        walker.change(
            batching=data.draw(model.lossless()),
            leaves=data.draw(st.permutations(leaves)),
        )
    walker.finish_window()
    for leaf in leaves:
        progress = walker.position.leaves[leaf.key]
        kept, _ = walker.expected(leaf, range(progress.pass_), drawn_with, 7)
        seen = Counter({sample: n for sample, n in walker.seen.items() if sample[0] == leaf.key})
        running = {s: seen.pop(s) for s in list(seen) if s[1] == progress.pass_}
        assert seen == kept
        assert set(running.values()) <= {1}
        rows = {row for _, _, row, _ in running}
        assert len(rows) <= progress.done
        for row in rows:
            samples = walker.samples_of(leaf, progress.pass_, row, drawn_with, 7)
            parts = {sample.part for sample in samples if sample.refused is None}
            assert {part for _, _, r, part in running if r == row} == parts


@_both
@_few
@given(st.booleans(), st.data())
def test_stopping_and_resuming_changes_nothing(model, finite, data):
    """Bit for bit, all arrays of all batches, wherever and however often it stopped."""
    leaves = data.draw(model.leaves())
    shape = data.draw(model.shapes(finite=finite))
    batching = data.draw(model.batchings())
    position = _start(leaves, shape, batching, seed=11)
    whole = model.walker(position, leaves, shape, batching)
    total = whole.take(10)
    pieces = model.walker(position, leaves, shape, batching)
    for stop in [*data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=5)), total]:
        fixed = finite and not shape.shuffle
        pieces.change(leaves=leaves if fixed else data.draw(st.permutations(leaves)))
        pieces.take(min(stop, total - len(pieces.steps)))
    assert not pieces.notes
    assert pieces.steps == whole.steps
    assert pieces.position == whole.position


@_few
@given(leaves_of(most=2), shapes(shuffle=True), batchings(), st.data())
def test_exclusions_and_filters_take_effect_at_the_next_window_only(leaves, shape, batching, data):
    position = _start(leaves, shape, batching)
    whole = Walker(position, leaves, shape, batching)
    stopped = Walker(position, leaves, shape, batching)
    steps = plan_window(position, leaves, shape, batching).num_steps
    assume(steps > 1)
    stopped.take(data.draw(st.integers(1, steps - 1)))
    newest = position.shape.exclusions + data.draw(st.integers(1, 1 << 40))
    later = []
    for leaf in leaves:
        more = np.flatnonzero(np.random.default_rng(newest).random(leaf.num_rows) < 0.4)
        rows, at = leaf.excluded_rows, leaf.excluded_at
        fresh = np.setdiff1d(more, rows)
        order = np.argsort(np.concatenate([rows, fresh]))
        later.append(
            replace(
                leaf,
                excluded_rows=np.concatenate([rows, fresh])[order],
                excluded_at=np.concatenate([at, np.full(len(fresh), newest)])[order],
            )
        )
    other = data.draw(shapes(shuffle=True))
    _start(later, other, batching)
    stopped.change(leaves=later, shape=other)
    while stopped.position.window == 0:
        stopped.finish_window()
    while len(whole.steps) < len(stopped.steps):
        whole.take(len(stopped.steps) - len(whole.steps))
    assert stopped.steps == whole.steps
    grown = max(leaf.excluded_at.max(initial=0) for leaf in later)
    assert stopped.position.shape == replace(other, exclusions=int(grown))
    stopped.seen.clear()
    stopped.finish_window()
    gone = {(leaf.key, row) for leaf in later for row in leaf.excluded_rows.tolist()}
    assert not gone & {(sample[0], sample[2]) for sample in stopped.seen}


@_relaxed
@given(leaves_of(), shapes(), st.data())
def test_a_pass_over_slices_takes_one_stretch_of_every_shard(leaves, shape, data):
    """Every draw is visible here, for nothing is filtered or cut."""
    length = data.draw(st.integers(1, 8))
    finite = data.draw(st.booleans())
    shape = replace(
        type(shape)(shuffle=shape.shuffle, locality=shape.locality),
        finite=finite,
        window_draws=shape.window_draws,
        slice_length=length,
    )
    plain = [replace(leaf, status=None, excluded_rows=None, excluded_at=None) for leaf in leaves]
    batching = data.draw(batchings(refuse_nothing))
    walker = Walker(_start(plain, shape, batching), plain, shape, batching)
    for _ in range(data.draw(st.integers(1, 4))):
        walker.take(data.draw(st.integers(1, 9)))
        walker.change(batching=data.draw(batchings(refuse_nothing)))
    walker.take(10_000) if finite else walker.finish_window()
    assert set(walker.seen.values()) == {1}
    for leaf in plain:
        progress = walker.position.leaves[leaf.key]
        shards = np.split(np.arange(leaf.num_rows), range(7, leaf.num_rows, 7))
        assert progress.rows == sum(min(len(shard), length) for shard in shards)
        whole = range(1) if finite else range(progress.pass_)
        for pass_ in whole:
            rows = {s[2] for s in walker.seen if s[:2] == (leaf.key, pass_)}
            for shard in shards:
                taken = sorted(rows & set(shard.tolist()))
                assert len(taken) == min(len(shard), length)
                assert taken == list(range(taken[0], taken[0] + len(taken)))
        running = [s for s in walker.seen if s[:2] == (leaf.key, progress.pass_)]
        assert len(running) == progress.done


@_both
@_relaxed
@given(st.data())
def test_what_a_leaf_refuses_is_counted_without_drawing_it(model, data):
    (leaf,) = data.draw(model.leaves(most=1))
    shape = data.draw(model.shapes(slice_length=None, perturb_speed=False))
    batching = data.draw(model.batchings())
    shape = replace(shape, exclusions=int(leaf.excluded_at.max(initial=0)))
    _, refused = model.walker.expected(leaf, [0], shape, 7, batching)
    assert refused_rows(leaf, shape, batching) == refused


@pytest.mark.parametrize("seed", range(3))
def test_slices_begin_anywhere_in_a_shard_from_pass_to_pass(seed):
    """Slices that always began at the first row would never show the rest of a shard."""
    leaf = columns("a", [1_000_000] * 50, slice_shard=np.zeros(50, dtype=np.int32))
    leaves = [leaf]
    shape = Shape(slice_length=10, window_draws=2_000)
    batching = Batching(batch_size=5)
    walker = Walker(start(leaves, shape, batching, seed=seed), leaves, shape, batching)
    walker.finish_window()
    firsts = Counter(min(s[2] for s in walker.seen if s[1] == pass_) for pass_ in range(200))
    assert set(firsts) <= set(range(41))
    assert len(firsts) == 41
    assert max(firsts.values()) < 20
