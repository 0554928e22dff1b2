"""Packing: a hard bound, the oldest first, and hardly a gap."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.audio_tokens import AudioTokens
from playhead.errors import PlanError
from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.packing import Caps, pack
from support.multimodal import of_cuts, side_of
from support.plans import columns, speech


def _batches(order, starts):
    return [order[begin:end] for begin, end in pairwise([*starts, len(order)])]


def _holds_the_oldest(batches):
    """Whether every batch has the first sample that those before it have not."""
    placed = set()
    oldest = 0
    for batch in batches:
        if oldest not in batch:
            return False
        placed.update(batch.tolist())
        while oldest in placed:
            oldest += 1
    return True


@st.composite
def _caps(draw, limit):
    if draw(st.booleans()):
        return Caps(borders=[limit], sizes=[draw(st.integers(1, 30))])
    borders = sorted(draw(st.sets(st.integers(1, limit), min_size=1, max_size=4)) | {limit})
    sizes = sorted(draw(st.lists(st.integers(1, 20), min_size=len(borders), max_size=len(borders))))
    return Caps(borders=borders, sizes=sizes[::-1])


@given(st.data())
def test_whatever_is_packed_fits_comes_once_and_the_oldest_goes_first(data):
    limit = data.draw(st.integers(1, 200))
    some = st.one_of(st.integers(1, limit), st.integers(1, max(1, limit // 10)))
    if data.draw(st.booleans()):
        some = st.one_of(some, st.integers(limit, 2 * limit))
    cost = np.array(data.draw(st.lists(some, max_size=120)), dtype=np.int64)
    caps = data.draw(_caps(limit))
    order, starts = pack(cost, limit, caps)
    assert sorted(order.tolist()) == list(range(len(cost)))
    batches = _batches(order, starts)
    assert all(len(batch) for batch in batches)
    for batch in batches:
        assert cost[batch].sum() <= limit or len(batch) == 1
        bin_ = np.searchsorted(caps.borders, cost[batch].max())
        assert len(batch) == 1 or len(batch) <= caps.sizes[bin_]
        assert (np.diff(batch) > 0).all()
    assert _holds_the_oldest(batches)


def _blend(count, seed=0):
    """Tokens of short texts (half), long conversations and speech with its transcript."""
    rng = np.random.default_rng(seed)
    kind = rng.random(count)
    text = np.clip(rng.lognormal(4.2, 0.8, count), 3, 2_000)
    talk = np.clip(rng.lognormal(7.6, 0.7, count), 200, 12_000)
    heard = speech(count, seed) / 80_000 + np.clip(rng.lognormal(3.0, 0.5, count), 3, 200)
    return np.select([kind < 0.5, kind < 0.6], [text, talk], heard).astype(np.int64)


def _batches_needed(cost, limit, most=4096):
    return len(pack(cost, limit, Caps(borders=[limit], sizes=[most]))[1])


@pytest.mark.parametrize("limit", [12_000, 16_384, 65_536])
def test_a_blend_fills_its_batches(limit):
    """Batch after batch as samples come, it would leave 12, 9 and 2 % of them empty."""
    cost = _blend(60_000)
    assert _batches_needed(cost, limit) <= 1.002 * cost.sum() / limit + 1


def test_other_lengths_are_packed_about_as_well_as_they_can_be():
    rng = np.random.default_rng(1)
    short = rng.integers(20, 200, 20_000)
    assert _batches_needed(short, 16_384) <= 1.002 * short.sum() / 16_384 + 1
    # Nothing small is there to fill gaps with.
    long = rng.integers(2_000, 8_000, 20_000)
    assert _batches_needed(long, 16_384) <= 1.02 * long.sum() / 16_384
    # Each of the large ones needs a batch, in which all of the others have room.
    either = np.where(rng.random(20_000) < 0.1, 10_000, 10)
    assert _batches_needed(either, 16_384) <= 1.01 * np.count_nonzero(either > 10)


def test_pairs_are_found_where_only_pairs_fit():
    """7 + 3 and 6 + 4: in the order they come, no two that follow each other fit."""
    cost = np.array([7, 6, 7, 6] * 50 + [3, 4, 4, 3] * 50)
    _, starts = pack(cost, 10, Caps(borders=[10], sizes=[9]))
    assert len(starts) == 200


def test_large_gaps_are_filled_with_small_samples():
    """From long to short, every batch begins with a long one and waits for some 70 short ones."""
    rng = np.random.default_rng(0)
    cost = np.concatenate([rng.integers(9_000, 10_000, 1_200), rng.integers(50, 150, 100_000)])
    assert _batches_needed(cost, 16_384) <= 1.02 * cost.sum() / 16_384


def test_nothing_makes_packing_slow():
    """Sorted either way, of one size, hardly fitting, halving: never a cost for every pair."""
    count = 100_000
    rng = np.random.default_rng(0)
    cases = [
        (np.arange(1, count + 1), count),
        (np.arange(count, 0, -1), count),
        (np.full(count, 3_000), 16_384),
        (rng.integers(8_000, 8_400, count), 16_384),
        (np.maximum(16_384 >> (np.arange(count) // 7_000), 1), 16_384),
        (np.where(np.arange(count) % 2, 10_000, 10), 16_384),
        (np.ones(count, dtype=np.int64), 1 << 40),
    ]
    begin = time.process_time()
    for cost, limit in cases:
        _batches_needed(cost, limit)
    assert time.process_time() - begin < 6


def _leaves(count=6_000):
    rng = np.random.default_rng(5)
    words = np.clip(rng.lognormal(3.0, 0.5, count), 3, 200)
    text = np.clip(rng.lognormal(4.2, 0.8, count), 3, 2_000)
    talk = np.clip(rng.lognormal(7.4, 0.6, count), 200, 6_000)
    silent = np.zeros(count, dtype=np.int64)
    return [
        columns("asr", speech(count), 4, side={"t": of_cuts(words)}.get),
        columns("text", silent, 5, kind="text", side={"t": side_of(text, rng)}.get),
        columns("talk", silent, 1, kind="conversation", side={"t": side_of(talk, rng)}.get),
    ]


_SHAPE = Shape(
    multimodal=True,
    tokens="t",
    audio_tokens=AudioTokens.of_duration(80_000).text,
    window_draws=9_000,
)
_PACKED = Batching(in_tokens=True, packed=True, batch_tokens=8_192)


def _tokens(leaves, batch):
    """Tokens of each sample of a micro-batch."""
    return [
        int(leaves[leaf].side("t")["tokens"][row])
        + -(-int(leaves[leaf].duration_us[row]) // 80_000)
        for leaf, row in zip(batch.leaf.tolist(), batch.row.tolist(), strict=True)
    ]


@pytest.mark.parametrize("per_step", [1, 8])
def test_a_plan_of_a_blend_uses_its_batches(per_step):
    leaves = _leaves()
    batching = replace(_PACKED, micro_batches_per_step=per_step)
    plan = plan_window(start(leaves, _SHAPE, batching, seed=1), leaves, _SHAPE, batching)
    sums = [
        [sum(_tokens(leaves, plan.micro_batch(step, slot))) for slot in range(per_step)]
        for step in range(plan.num_steps)
    ]
    assert max(map(max, sums)) <= 8_192
    mean = np.mean(sums) / 8_192
    assert mean >= 0.98
    assert plan.stats.packing_efficiency == pytest.approx(mean)
    assert plan.stats.unused_budget == pytest.approx(1 - mean)
    assert plan.stats.padding == 0.0
    assert plan.stats.small_batches <= 2 * (per_step - 1) / (plan.num_steps * per_step) + 0.01
    assert plan.stats.imbalance < 1.02


def test_batches_of_a_step_cost_about_the_same_attention_too():
    """Sums are alike anyhow; dealt as they are packed, the dearest would be 1.9 times the mean."""
    leaves = _leaves()
    batching = replace(_PACKED, micro_batches_per_step=8)
    plan = plan_window(start(leaves, _SHAPE, batching, seed=1), leaves, _SHAPE, batching)
    worst = []
    for step in range(plan.num_steps):
        batches = [plan.micro_batch(step, slot) for slot in range(8)]
        squares = [sum(size * size for size in _tokens(leaves, batch)) for batch in batches]
        worst.append(max(squares) / np.mean(squares))
    assert np.mean(worst) < 1.1


def test_in_declared_order_every_batch_holds_the_first_row_that_is_left():
    leaf = _leaves(2_000)[2]
    shape = replace(_SHAPE, shuffle=False, window_draws=None, finite=True)
    plan = plan_window(start([leaf], shape, _PACKED, seed=1), [leaf], shape, _PACKED)
    rows = [plan.micro_batch(step, 0).row for step in range(plan.num_steps)]
    assert _holds_the_oldest(rows)
    four = replace(_PACKED, micro_batches_per_step=4)
    plan = plan_window(start([leaf], shape, four, seed=1), [leaf], shape, four)
    firsts = [
        plan.micro_batch(step, slot).row.min()
        for step in range(plan.num_steps)
        for slot in range(4)
    ]
    assert firsts == sorted(firsts)
    # Not for the reason that nothing is taken from further on.
    assert any(batch.max() > batch.min() + 50 for batch in rows)


def test_the_size_of_a_bin_caps_batches_whose_longest_is_in_it():
    leaves = _leaves()
    batching = replace(
        _PACKED, bins_length=(100, 400, 8_192), bucket_batch_size=(60, 25, 9), batch_size=50
    )
    plan = plan_window(start(leaves, _SHAPE, batching, seed=1), leaves, _SHAPE, batching)
    sizes = Counter()
    for step in range(plan.num_steps):
        batch = plan.micro_batch(step, 0)
        longest = max(_tokens(leaves, batch))
        most = 50 if longest <= 100 else 25 if longest <= 400 else 9
        assert len(batch.row) <= most
        sizes[most] += len(batch.row) == most
    assert sizes[25] > 10


def _long(count=40, above=3):
    tokens = np.full(count, 100)
    tokens[:above] = [700, 900, 800]
    side = side_of(tokens, np.random.default_rng(0))
    return columns("long", np.zeros(count), kind="text", side={"t": side}.get)


_FINITE = replace(_SHAPE, window_draws=None, finite=True)


def test_a_sample_above_the_limit_is_named_at_the_start():
    """Alone it would break the bound, and training would run out of memory days later."""
    batching = replace(_PACKED, batch_tokens=600)
    for oversize in ("alone", "error"):
        with pytest.raises(PlanError, match=r"900 tokens, is above.*600 tokens.*row 1.*max_tokens"):
            start([_long()], _FINITE, replace(batching, oversize=oversize), seed=1)


def test_a_sample_above_the_limit_is_dropped_and_counted_where_that_is_asked_for():
    batching = replace(_PACKED, batch_tokens=600, oversize="drop")
    plan = plan_window(start([_long()], _FINITE, batching, seed=1), [_long()], _FINITE, batching)
    assert plan.stats.dropped == {"oversize": 3}
    rows = [row for s in range(plan.num_steps) for row in plan.micro_batch(s, 0).row.tolist()]
    assert sorted(rows) == list(range(3, 40))
    assert plan.num_steps == 7


def test_what_counts_quadratically_is_rounded_up_sample_by_sample():
    """Of 1 + 1/3 each, three are 4 and a limit of 5 takes two: packed ones are whole tokens."""
    side = side_of(np.ones(12), np.random.default_rng(0))
    leaf = columns("a", np.zeros(12), kind="text", side={"t": side}.get)
    batching = replace(_PACKED, batch_tokens=5, quadratic_tokens=3)
    plan = plan_window(start([leaf], _FINITE, batching, seed=1), [leaf], _FINITE, batching)
    assert [len(plan.micro_batch(step, 0).row) for step in range(plan.num_steps)] == [2] * 6


def test_a_padded_window_may_go_on_packed_although_some_of_its_samples_are_too_long():
    """What the new settings refuse is refused, and counted."""
    leaf = _long()
    padded = replace(_PACKED, packed=False, batch_tokens=600)
    plan = plan_window(start([leaf], _FINITE, padded, seed=1), [leaf], _FINITE, padded)
    seen = plan.micro_batch(0, 0).row.tolist()
    shape = replace(_FINITE, max_tokens=600)
    packed = replace(_PACKED, batch_tokens=600)
    position, _ = resume(plan.position_at(1), [leaf], shape, packed)
    rest = plan_window(position, [leaf], shape, packed)
    left = 3 - len(set(seen) & {0, 1, 2})
    assert left
    assert rest.stats.dropped == {"oversize": left}
    seen += [row for s in range(rest.num_steps) for row in rest.micro_batch(s, 0).row.tolist()]
    assert len(seen) == len(set(seen)) == 40 - left


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"in_tokens": False}, "packed by their tokens, and nothing limits these"),
        ({"batch_tokens": None, "batch_size": 4}, "nothing limits these.*batch_tokens"),
        (
            {"bins_length": (9,), "bins_tokens": (9,), "bucket_batch_size": (1,)},
            "packed ones are not padded",
        ),
    ],
)
def test_packing_needs_a_limit_and_one_length(options, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        replace(_PACKED, **options)
