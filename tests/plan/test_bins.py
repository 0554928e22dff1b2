"""Bins of length and tokens: which takes a sample, and where what is left of a bin goes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.bins import NO_BIN, bins_in_2d, cut_2d, successors
from playhead.plan.chain import running_link, source_of
from support.plans import columns, speech

_EXAMPLE = (10, 10, 20, 20), (5, 10, 12, 18)


def _options(**more):
    return {
        "bins_us": (10, 10, 20, 20),
        "bins_tokens": (5, 10, 12, 18),
        "bucket_batch_size": (8, 6, 4, 2),
        **more,
    }


@pytest.mark.parametrize(
    ("length", "tokens", "strict", "lenient"),
    [
        (8, 11, NO_BIN, 2),
        (8, 5, 0, 0),
        (10, 10, 1, 1),
        (11, 10, 2, 2),
        (11, 13, 3, 3),
        (20, 18, 3, 3),
        (21, 1, NO_BIN, NO_BIN),
        (1, 19, NO_BIN, NO_BIN),
        (0, 0, 0, 0),
    ],
)
def test_a_sample_falls_where_nemo_puts_it(length, tokens, strict, lenient):
    sample = np.array([length]), np.array([tokens])
    assert bins_in_2d(*sample, *_EXAMPLE, strict=True).tolist() == [strict]
    assert bins_in_2d(*sample, *_EXAMPLE, strict=False).tolist() == [lenient]


_BINS = st.sets(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=12).map(
    sorted
)


@given(_BINS, st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=40))
def test_bins_are_those_of_a_search_one_by_one(bins, samples):
    us, tokens = zip(*bins, strict=True)
    x = np.array([sample[0] for sample in samples], dtype=np.int64)
    y = np.array([sample[1] for sample in samples], dtype=np.int64)
    fitting = [[i for i, (a, b) in enumerate(bins) if a >= u and b >= v] for u, v in samples]
    lenient = [min(fits, default=NO_BIN) for fits in fitting]
    strict = [
        min((i for i in fits if us[i] == min(a for a in us if a >= u)), default=NO_BIN)
        for (u, _), fits in zip(samples, fitting, strict=True)
    ]
    assert bins_in_2d(x, y, us, tokens, strict=False).tolist() == lenient
    assert bins_in_2d(x, y, us, tokens, strict=True).tolist() == strict


@given(_BINS, st.data())
def test_what_is_left_moves_only_where_it_fits(bins, data):
    """Moved to the next bin of the list, which may be one for fewer tokens, it would not fit."""
    us, tokens = zip(*bins, strict=True)
    sizes = []
    for i, (_, most) in enumerate(bins):
        dominated = [sizes[j] for j in range(i) if tokens[j] <= most]
        sizes.append(data.draw(st.integers(1, min(dominated, default=9))))
    counts = [data.draw(st.integers(0, 20)) for _ in bins]
    of = np.repeat(np.arange(len(bins)), counts)
    goes_to = successors(us, tokens, sizes)
    order, starts = cut_2d(np.arange(len(of)), counts, sizes, goes_to)
    assert sorted(order.tolist()) == list(range(len(of)))
    small = Counter()
    for begin, end in pairwise([*starts, len(of)]):
        batch = of[order[begin:end]]
        # The bin that a batch was made in is one that takes all of it: its last at the latest.
        fitting = [
            i
            for i in range(len(bins))
            if all(us[b] <= us[i] and tokens[b] <= tokens[i] for b in batch)
        ]
        assert any(len(batch) <= sizes[i] for i in fitting)
        if not any(len(batch) == sizes[i] for i in fitting):
            small[int(batch[-1])] += 1
    ends = sum(target is None for target in goes_to)
    assert small.total() <= ends


def test_what_is_left_of_a_bin_goes_before_what_the_next_one_has():
    """At the end it would wait for the last batch of the bin, and be left over again."""
    order, starts = cut_2d(np.arange(7), [3, 4], [2, 2], [1, None])
    assert order.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert starts == [0, 2, 4, 6]
    order, starts = cut_2d(np.array([0, 1, 2, 5, 3, 4]), [1, 2, 3], [2, 2, 2], [2, None, None])
    assert order.tolist() == [1, 2, 0, 5, 3, 4]
    assert starts == [0, 2, 4]


def _leaf(count, seed=0):
    us = speech(count, seed)
    rate = np.random.default_rng(seed).uniform(1.0, 6.0, count)
    tokens = (us / 1e6 * rate).astype(np.uint32)
    return columns("a", us, side={"tok": {"tokens": tokens}}.get), tokens


_BINS_OF_SPEECH = [(s, t * s // 5) for s in (5, 10, 20, 30) for t in (10, 18, 30)]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("per_step", [1, 7])
def test_no_batch_holds_what_its_bin_does_not_take(strict, per_step):
    """Rests that move to the next bin of the list put 20 samples a million where they run out of
    memory: bin (5 s, 30 tokens) is followed by (10 s, 20 tokens)."""
    leaf, tokens = _leaf(6_000)
    batching = Batching(
        micro_batches_per_step=per_step,
        bins_us=tuple(s * 1_000_000 for s, _ in _BINS_OF_SPEECH),
        bins_tokens=tuple(t for _, t in _BINS_OF_SPEECH),
        bucket_batch_size=tuple(max(1, 600 // (s + t)) for s, t in _BINS_OF_SPEECH),
        strict_2d=strict,
    )
    shape = Shape(tokens="tok", window_draws=2_000)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    full = 0
    for step in range(plan.num_steps):
        for slot in range(per_step):
            rows = plan.micro_batch(step, slot).row
            longest, most = leaf.duration_us[rows].max(), tokens[rows].max()
            sizes = [
                size
                for us, n, size in zip(
                    batching.bins_us, batching.bins_tokens, batching.sizes, strict=True
                )
                if us >= longest and n >= most and size >= len(rows)
            ]
            assert sizes
            full += len(rows) in sizes
    assert full >= 0.9 * plan.num_steps * per_step
    assert plan.stats.small_batches < 0.1


def test_a_limit_caps_the_sizes_of_bins():
    leaf, _ = _leaf(500)
    batching = Batching(
        bins_us=(10_000_000, 30_000_000),
        bins_tokens=(200, 200),
        bucket_batch_size=(50, 40),
        batch_size=30,
        batch_duration_us=120_000_000,
    )
    shape = Shape(tokens="tok", window_draws=500)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    for step in range(plan.num_steps):
        rows = plan.micro_batch(step, 0).row
        assert len(rows) <= (12 if leaf.duration_us[rows].max() <= 10_000_000 else 4)


def test_ratios_of_fixed_sizes_by_length_refuse_what_is_too_dense():
    us = np.full(60, 2_000_000)
    tokens = np.arange(60).astype(np.uint32)
    leaf = columns("a", us, side={"tok": {"tokens": tokens}}.get)
    batching = Batching(bins_us=(5_000_000,), bucket_batch_size=(4,), max_tps_per_bin=(10,))
    shape = Shape(tokens="tok", finite=True)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    assert plan.stats.dropped == {"no_bucket": 39}
    rows = [row for s in range(plan.num_steps) for row in plan.micro_batch(s, 0).row.tolist()]
    assert sorted(rows) == list(range(21))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (_options(bins_us=(10, 20, 10, 20)), "not positive and strictly ascending"),
        (_options(bins_tokens=(10, 5, 12, 18)), "strictly ascending, by length and then by tokens"),
        (_options(bins_tokens=(5, 5, 12, 18)), "strictly ascending"),
        (_options(bins_us=(0, 10, 20, 20)), "not positive"),
        (_options(bins_tokens=(5, 10, 12)), "4 lengths, 3 tokens and 4 sizes"),
        (_options(bucket_batch_size=(8, 6)), "4 lengths, 4 tokens and 2 sizes"),
        (_options(bucket_batch_size=None, batch_size=2), "4 lengths, 4 tokens and 0 sizes"),
        (_options(bucket_batch_size=(8, 9, 4, 2)), "grow: bin .10, 10. takes all that bin .10, 5."),
        (
            _options(bucket_batch_size=(8, 3, 4, 2)),
            "grow: bin .20, 12. takes all",
        ),
        (_options(bucket_batch_size=(8, 6, 4, 0)), "not positive"),
        (_options(bins_tokens=(5, 10, 12, 1 << 33)), "too large"),
        (_options(bucketing=False), "for 0 duration bins"),
        (_options(max_tps_per_bin=(1.0,)), "1 ratios for 4 bins"),
        (_options(max_tps_per_bin=(1.0, 2.0, float("inf"), 4.0)), "not positive numbers"),
        ({"batch_size": 1, "max_tps_per_bin": (1.0,)}, "1 ratios for 0 bins"),
    ],
)
def test_bins_that_do_not_belong_together_are_refused(options, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        Batching(**options)


def test_sizes_may_grow_where_no_bin_takes_all_of_the_other():
    """(10, 18) does not fit (20, 12): one may well have more samples than the other."""
    Batching(bins_us=(10, 10, 20), bins_tokens=(5, 18, 12), bucket_batch_size=(8, 2, 7))


def test_bins_by_tokens_need_tokens():
    leaf, _ = _leaf(20)
    batching = Batching(bins_us=(30_000_000,), bins_tokens=(200,), bucket_batch_size=(4,))
    with pytest.raises(PlanError, match="made by tokens"):
        start([leaf], Shape(), batching, seed=1)
    with pytest.raises(PlanError, match="looks at tokens of rows"):
        start([leaf], Shape(tokens="other"), batching, seed=1)


def test_a_window_of_durations_may_go_on_in_bins_by_tokens():
    """Nobody who meets an OOM and turns to 2-D bins should have to finish the window first."""
    leaf, _ = _leaf(300)
    shape, batching = Shape(finite=True), Batching(batch_duration_us=60_000_000)
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    position = plan.position_at(plan.num_steps // 2)
    seen = [row for s in range(plan.num_steps // 2) for row in plan.micro_batch(s, 0).row.tolist()]
    other = Batching(bins_us=(30_000_000,), bins_tokens=(200,), bucket_batch_size=(4,))
    shape = Shape(finite=True, tokens="tok")
    resumed, _ = resume(position, [leaf], shape, other)
    assert resumed.shape.tokens == "tok"
    rest = plan_window(resumed, [leaf], shape, other)
    seen += [
        row
        for s in range(rest.num_steps)
        for row, again in zip(
            rest.micro_batch(s, 0).row.tolist(), rest.micro_batch(s, 0).repeated, strict=True
        )
        if not again
    ]
    assert sorted(seen) == list(range(300))
    assert running_link(source_of(resumed, [leaf])).dealt.items.tokens is not None
