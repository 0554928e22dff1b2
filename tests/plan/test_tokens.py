"""Lengths in tokens: what counts, what filters look at, and windows of texts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from playhead.audio_tokens import AudioTokens
from playhead.errors import PlanError, PositionError
from playhead.plan import Batching, Position, Shape, plan_window, resume, start
from playhead.plan.columns import KindCode
from playhead.plan.effort import Effort
from playhead.plan.filters import leaf_facts, refused_rows
from playhead.plan.items import Items
from playhead.plan.opening import default_draws
from playhead.plan.refusals import accepted, bins_of
from playhead.plan.reshape import measured
from support.multimodal import leaf_in_tokens, of_cuts, side_of
from support.plans import columns, speech, through_json

_S = 1_000_000
_AUDIO = AudioTokens.of_duration(80_000).text
_SHAPE = Shape(multimodal=True, tokens="t", audio_tokens=_AUDIO, finite=True)
_LIMIT = Batching(in_tokens=True, batch_tokens=1_000)
_NAMES = ("tokens", "input", "output", "context", "answer")


def _leaf(kind, rows, *, us=None, name="a", weight=1, **more):
    """A leaf of rows of (tokens, input, output, context, answer)."""
    side = dict(zip(_NAMES, np.array(rows, dtype=np.uint32).T, strict=True))
    lengths = np.zeros(len(rows)) if us is None else us
    return columns(name, lengths, weight, kind=kind, side={"t": side}.get, **more)


def _plan(leaves, shape, batching=_LIMIT):
    return plan_window(start(leaves, shape, batching, seed=1), leaves, shape, batching)


def _batches(plan):
    per_step = plan._position.micro_batches_per_step
    return [plan.micro_batch(s, slot) for s in range(plan.num_steps) for slot in range(per_step)]


def _kept(leaves, shape, batching=_LIMIT):
    """(leaf, row, part) of everything that a finite pass gives."""
    found = [
        sample
        for batch in _batches(_plan(leaves, shape, batching))
        for sample in zip(batch.leaf.tolist(), batch.row.tolist(), batch.part.tolist(), strict=True)
    ]
    return sorted(found)


def _items(kind, us, **tokens):
    def one(value):
        return np.array([value], dtype=np.int64)

    return Items(
        leaf=np.zeros(1, np.int32),
        pass_=one(0),
        row=one(0),
        length=one(us),
        kind=np.array([kind], np.int8),
        **{name: one(value) for name, value in tokens.items()},
    )


# NeMo 3.0.0's MultimodalSamplingConstraint, at 0.08 s a token: a cut of so many µs with so many
# tokens of text, total and input length; a conversation with audio turns, the same.
_MEASURED = [
    ((2_950_000, 55), (92, 37), ([], 36, 16), (52, 36)),
    ((15_340_000, 32), (224, 192), ([3_310_000], 90, 29), (160, 131)),
    ((14_940_000, 58), (245, 187), ([4_720_000, 8_220_000, 1_950_000], 40, 76), (300, 224)),
    ((13_400_000, 24), (192, 168), ([1_050_000, 6_070_000], 17, 21), (126, 105)),
    ((660_000, 13), (22, 9), ([7_360_000, 5_200_000], 21, 44), (220, 176)),
    ((1_040_000, 13), (26, 13), ([1_160_000, 5_290_000], 59, 76), (215, 139)),
]


@pytest.mark.parametrize(("cut", "of_cut", "talk", "of_talk"), _MEASURED)
def test_lengths_are_those_of_nemo(cut, of_cut, talk, of_talk):
    (us, tokens), (turns, context, answer) = cut, talk
    audio = AudioTokens.parse(_AUDIO)
    # The tag of each turn is a token that its audio takes the place of.
    extra = sum(audio.count_one(turn) - 1 for turn in turns)
    total = {"tokens": context + answer + extra, "input": context + extra, "output": answer}
    for whole, place in ((True, 0), (False, 1)):
        shape = replace(_SHAPE, total_length=whole)
        heard = measured(_items(KindCode.CUT, us, tokens=tokens, input=0, output=tokens), shape)
        assert heard.size.tolist() == [of_cut[place]]
        assert (heard.input.tolist(), heard.output.tolist()) == ([of_cut[1]], [tokens])
        said = measured(_items(KindCode.CONVERSATION, sum(turns), **total), shape)
        assert said.size.tolist() == [of_talk[place]]


# Whether NeMo 3.0.0 finds so many of a length above a limit: limit, quadratic factor, length,
# samples.
@pytest.mark.parametrize(
    ("limit", "quadratic", "length", "samples", "above"),
    [
        (37, 174, 17, 2, True),
        (137, 289, 40, 3, False),
        (53, 197, 10, 5, False),
        (189, None, 27, 7, False),
        (67, None, 17, 4, True),
        (152, None, 38, 4, False),
    ],
)
def test_limits_are_those_of_nemo(limit, quadratic, length, samples, above):
    effort = Effort.of(
        Batching(in_tokens=True, batch_tokens=limit, quadratic_tokens=quadratic, batch_size=99)
    )
    assert (samples * effort.one(length) > effort.limit) is above


# The bin that NeMo 3.0.0's MultimodalFixedBucketBatchSizeConstraint2D finds among (10, 5),
# (10, 10), (20, 12) and (20, 18).
@pytest.mark.parametrize(
    ("strict", "ratios", "before", "answer", "bin_"),
    [
        (True, (1.39, 2.27, 7.4, 4.79), 12, 4, 2),
        (True, (0.73, 1.47, 7.92, 4.37), 17, 23, None),
        (True, None, 6, 15, None),
        (False, None, 8, 11, 2),
        (False, None, 19, 23, None),
        (False, (6.01, 5.92, 7.3, 8.04), 19, 21, None),
        (False, None, 11, 18, 3),
        (True, None, 14, 10, 2),
        (False, (5.24, 4.08, 2.63, 2.12), 12, 4, 2),
        (True, (7.41, 7.6, 5.32, 6.49), 2, 9, 1),
        (True, (7.41, 4.4, 5.32, 6.49), 2, 9, None),
        (False, (7.41, 4.4, 5.32, 6.49), 2, 9, 1),
        (True, None, 9, 5, 0),
        (True, (2.58, 3.45, 5.46, 4.05), 7, 4, 0),
    ],
)
def test_bins_of_two_lengths_are_those_of_nemo(strict, ratios, before, answer, bin_):
    batching = Batching(
        in_tokens=True,
        bins_length=(10, 10, 20, 20),
        bins_tokens=(5, 10, 12, 18),
        bucket_batch_size=(4, 3, 2, 1),
        strict_2d=strict,
        max_tpt_per_bin=ratios,
    )
    items = _items(KindCode.TEXT, 0, size=before + answer, input=before, output=answer)
    assert bins_of(items, batching).tolist() == [-1 if bin_ is None else bin_]


@pytest.mark.parametrize(
    ("context", "answer", "kept"),
    [(20, 9, False), (20, 10, True), (20, 40, True), (20, 41, False), (0, 0, False), (0, 1, False)],
)
def test_tokens_per_token_are_of_the_answer_by_what_is_before_it(context, answer, kept):
    shape = replace(_SHAPE, min_tpt=0.5, max_tpt=2.0)
    items = _items(KindCode.TEXT, 0, tokens=9, size=9, context=context, answer=answer)
    assert accepted(items, shape).tolist() == [kept]
    cut = _items(KindCode.CUT, 0, tokens=9, size=9, context=context, answer=answer)
    assert accepted(cut, shape).all()


def test_a_row_is_counted_for_the_first_filter_that_refuses_it():
    rows = [(40, 20, 20, 20, 20)] * 8
    rows[2], rows[3] = (9, 5, 4, 5, 4), (90, 45, 45, 45, 45)
    rows[5], rows[6] = (40, 35, 5, 35, 5), (40, 5, 35, 5, 35)
    us = np.full(8, 5 * _S)
    us[:2] = 1, 30 * _S
    status = np.zeros(8, dtype=np.int16)
    status[:5] = 1
    leaf = _leaf("conversation", rows, us=us, status=status, statuses=("pass", "bad"))
    shape = replace(
        _SHAPE,
        min_duration_us=_S,
        max_duration_us=20 * _S,
        min_tokens=10,
        max_tokens=80,
        min_tpt=0.5,
        max_tpt=2.0,
    )
    plan = _plan([leaf], shape)
    assert list(plan.stats.dropped.items()) == [
        ("min_duration", 1),
        ("max_duration", 1),
        ("min_tokens", 1),
        ("max_tokens", 1),
        ("validation_status", 1),
        ("min_tpt", 1),
        ("max_tpt", 1),
    ]
    assert refused_rows(leaf, shape, _LIMIT) == plan.stats.dropped
    assert _kept([leaf], shape) == [(0, 7, 0)]


def test_each_filter_asks_what_it_is_for():
    """Durations are of audio, tokens of what is no cut, tokens by second of cuts."""
    row = (50, 25, 25, 25, 25)
    cut = _leaf("cut", [(50, 0, 50, 0, 50)] * 3, us=[_S, 10 * _S, 30 * _S], name="cut")
    text = _leaf("text", [row], name="text")
    talk = _leaf("conversation", [row] * 4, us=[0, _S, 10 * _S, 30 * _S], name="talk")
    leaves = [cut, text, talk]
    everything = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]
    for options, gone in (
        ({"min_duration_us": 2 * _S}, [(0, 0), (2, 1)]),
        ({"max_duration_us": 20 * _S}, [(0, 2), (2, 3)]),
        ({"max_tokens": 49}, [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]),
        ({"min_tps": 4.0}, [(0, 2)]),
        ({"max_tps": 20.0}, [(0, 0)]),
        ({"max_tpt": 0.9}, [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]),
    ):
        kept = _kept(leaves, replace(_SHAPE, **options))
        assert [(leaf, row) for leaf, row, _ in kept] == [s for s in everything if s not in gone]


@pytest.mark.parametrize("batching", [Batching(batch_size=2), _LIMIT])
def test_texts_have_no_duration_to_be_filtered_by(batching):
    """A text of 0 s is not too short; audio of unknown length still is none."""
    text = _leaf("text", [(5, 1, 4, 1, 4)] * 2, us=[0, -1], name="text")
    talk = _leaf("conversation", [(5, 1, 4, 1, 4)] * 2, us=[0, -1], name="talk")
    shape = replace(_SHAPE, min_duration_us=_S)
    if not batching.in_tokens:
        shape = Shape(finite=True, min_duration_us=_S)
    plan = _plan([text, talk], shape, batching)
    assert plan.stats.dropped == {"no_length": 1}


def test_audio_is_counted_as_long_as_it_is_in_the_end():
    """Its text is not counted again when a cut is truncated, padded, slowed down or windowed."""
    leaf = _leaf("cut", [(10, 0, 10, 0, 10)], us=[10 * _S])
    for options, sizes in (
        ({}, [135]),
        ({"truncate_us": 4 * _S}, [60]),
        ({"pad_us": 20 * _S}, [260]),
        ({"window_us": 4 * _S}, [60, 60, 35]),
        ({"total_length": False, "window_us": 4 * _S}, [50, 50, 25]),
    ):
        shape = replace(_SHAPE, **options)
        facts = leaf_facts(leaf, shape, in_tokens=True)
        assert (facts.accepted, facts.total) == (len(sizes), sum(sizes))
        assert facts.longest == max(sizes)
    speeds = leaf_facts(leaf, replace(_SHAPE, perturb_speed=True), in_tokens=True)
    assert (speeds.copies, speeds.total) == (3, 135 + (10 + 139) + (10 + 114))


def test_what_is_for_audio_leaves_the_others_as_they_are():
    rows = [(50, 25, 25, 25, 25)] * 2
    leaves = [
        _leaf("cut", [(5, 0, 5, 0, 5)], us=[10 * _S], name="cut"),
        _leaf("text", rows, name="text"),
        _leaf("conversation", rows, us=[9 * _S, 0], name="talk"),
    ]
    shape = replace(_SHAPE, perturb_speed=True, window_us=2 * _S, truncate_us=5 * _S, pad_us=_S)
    plan = _plan(leaves, shape)
    for batch in _batches(plan):
        others = batch.leaf > 0
        for array, usual in ((batch.speed, 1000), (batch.start_us, 0), (batch.span_us, -1)):
            assert array is None or (array[others] == usual).all()
    lengths = plan._running.dealt.items
    assert sorted(lengths.length[lengths.leaf == 1].tolist()) == [0, 9 * _S]
    assert _kept(leaves, shape) == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
        (1, 0, 0),
        (1, 1, 0),
        (2, 0, 0),
        (2, 1, 0),
    ]


def test_long_texts_are_cut_into_windows():
    """5 tokens of the prompt are around every window; the last may be shorter."""
    rows = [(total, 5, total - 5, 5, total - 5) for total in (5, 6, 25, 26, 45, 46, 105)]
    long = _leaf("text", rows, name="long", windows=True)
    pair = _leaf("text", rows, name="pair")
    shape = replace(_SHAPE, text_window=20, text_overhead=5)
    items = _plan([long, pair], shape)._running.dealt.items
    sizes: dict[int, list[int]] = {}
    first = items.leaf == 0
    found = (items.row[first], items.part[first], items.size[first])
    for row, part, size in sorted(zip(*map(np.ndarray.tolist, found), strict=True)):
        sizes.setdefault(row, []).append(size)
        assert part == len(sizes[row]) - 1
    assert sizes == {0: [5], 1: [6], 2: [25], 3: [25, 6], 4: [25, 25], 5: [25, 25, 6], 6: [25] * 5}
    assert sorted(items.size[~first].tolist()) == [5, 6, 25, 26, 45, 46, 105]


def test_windows_of_texts_leave_out_of_the_answer_first():
    leaf = _leaf("text", [(50, 30, 20, 30, 20)], windows=True)
    shape = replace(_SHAPE, text_window=20, total_length=False)
    (first, *_), *_ = [_plan([leaf], shape)._running.dealt.items.size.tolist()]
    # 20 of 50 tokens: what is left out are the 20 of the answer and 10 before it.
    assert first == 20
    bins = Batching(
        in_tokens=True,
        bins_length=(20, 20, 40),
        bins_tokens=(5, 40, 40),
        bucket_batch_size=(9, 9, 9),
    )
    items = _plan([leaf], _SHAPE, bins)._running.dealt.items
    assert (items.input.tolist(), items.output.tolist()) == ([30], [20])
    items = _plan([leaf], shape, bins)._running.dealt.items
    assert sorted(items.input.tolist()) == [10, 20, 20]
    assert items.output.tolist() == [0, 0, 0]


def test_draws_that_fill_up_a_step_give_whole_steps_of_windows():
    """Of rows of three windows, four make three steps of four; two would leave two to repeat."""
    leaf = _leaf("text", [(60, 0, 60, 0, 60)] * 40, windows=True)
    shape = replace(_SHAPE, finite=False, text_window=20, window_draws=1)
    batching = Batching(in_tokens=True, batch_size=1, micro_batches_per_step=4)
    plan = _plan([leaf], shape, batching)
    assert plan.num_steps == 3
    assert plan.stats.repeated == 0


def test_filters_ask_windows_one_by_one():
    leaf = _leaf("text", [(45, 0, 45, 5, 40)], windows=True)
    shape = replace(_SHAPE, text_window=20, min_tokens=10)
    assert _kept([leaf], shape) == [(0, 0, 0), (0, 0, 1)]
    assert refused_rows(leaf, shape, _LIMIT) == {"min_tokens": 1}
    # 20 of 45 leave 15 of the answer, 5 before it.
    assert _kept([leaf], replace(shape, max_tpt=3.0)) == [(0, 0, 0), (0, 0, 1)]
    assert _kept([leaf], replace(_SHAPE, text_window=20, max_tpt=2.9)) == [(0, 0, 2)]


@pytest.mark.parametrize("bucketing", [True, False])
@pytest.mark.parametrize("quadratic", [None, 200])
def test_the_limit_is_a_hard_bound_in_tokens(bucketing, quadratic):
    rng = np.random.default_rng(0)
    text = np.clip(rng.lognormal(4.0, 0.8, 3_000), 1, 600).astype(int)
    us = speech(2_000)
    leaves = [
        _leaf("text", [(n, n // 2, n - n // 2, n // 2, n - n // 2) for n in text], name="text"),
        columns("cut", us, side={"t": of_cuts(us // 300_000)}.get),
    ]
    batching = replace(
        _LIMIT, batch_tokens=4_000, quadratic_tokens=quadratic, bucketing=bucketing, oversize="drop"
    )
    plan = _plan(leaves, replace(_SHAPE, window_draws=5_000), batching)
    count = 0
    for batch in _batches(plan):
        sizes = [
            int(leaves[leaf].side("t")["tokens"][row]) + (0 if leaf == 0 else -(-us[row] // 80_000))
            for leaf, row in zip(batch.leaf.tolist(), batch.row.tolist(), strict=True)
        ]
        longest = max(sizes)
        effort = longest + (longest * longest / quadratic if quadratic else 0)
        assert len(sizes) * effort <= 4_000
        count += len(sizes)
    assert count + plan.stats.dropped.get("oversize", 0) == 5_000
    if bucketing:
        assert plan.stats.padding < 0.03
        assert plan.stats.small_batches < 0.02
    assert plan.stats.packing_efficiency is None


def test_a_batch_may_fill_its_limit_exactly_whatever_the_fractions():
    """Three samples of 1 + 1/3 are 4; rounded up each, only two would fit."""
    leaf = _leaf("text", [(1, 1, 0, 1, 0)] * 9)
    plan = _plan([leaf], _SHAPE, replace(_LIMIT, batch_tokens=4, quadratic_tokens=3))
    assert [len(batch.row) for batch in _batches(plan)] == [3, 3, 3]


def test_a_sample_without_tokens_counts_as_one():
    leaf = _leaf("text", [(0, 0, 0, 0, 0)] * 10)
    plan = _plan([leaf], _SHAPE, replace(_LIMIT, batch_tokens=5))
    assert [len(batch.row) for batch in _batches(plan)] == [5, 5]


def test_bins_in_tokens_take_the_place_of_those_in_seconds():
    leaf = _leaf("text", [(n, n, 0, n, 0) for n in range(1, 61)])
    batching = Batching(
        in_tokens=True,
        bins_us=(1,),
        bins_length=(20, 50),
        bucket_batch_size=(8, 3),
        batch_duration_us=1,
    )
    plan = _plan([leaf], _SHAPE, batching)
    assert plan.stats.dropped == {"above_last_bin": 10}
    sizes = Counter()
    for batch in _batches(plan):
        top = batch.row.max() + 1
        assert len(batch.row) <= (8 if top <= 20 else 3)
        sizes[len(batch.row)] += 1
    assert sizes[8] == 2
    limited = _plan([leaf], _SHAPE, replace(batching, batch_tokens=100))
    assert {len(batch.row) for batch in _batches(limited)} == {5, 2}


def test_samples_above_the_limit_are_reported_in_tokens():
    leaf = _leaf("text", [(10, 5, 5, 5, 5), (50, 5, 45, 5, 45), (60, 5, 55, 5, 55)])
    batching = replace(_LIMIT, batch_tokens=40)
    stats = _plan([leaf], _SHAPE, batching).stats
    longest = stats.longest_oversize
    assert (stats.oversize, longest.row, longest.tokens, longest.duration_us) == (2, 2, 60, 0)
    with pytest.raises(PlanError, match=r"60 tokens, is above.*40 tokens \(row 2\).*batch_tokens"):
        start([leaf], _SHAPE, replace(batching, oversize="error"), seed=1)


def test_a_window_makes_about_a_hundred_steps():
    leaf = leaf_in_tokens("a", 50_000, 0, kind="conversation")
    leaf = replace(leaf, side={"t": leaf.side("tok")}.get, status=None, excluded_rows=None)
    for batching in (
        replace(_LIMIT, micro_batches_per_step=8),
        replace(_LIMIT, micro_batches_per_step=8, packed=True),
        replace(_LIMIT, micro_batches_per_step=8, quadratic_tokens=100),
        Batching(
            in_tokens=True,
            micro_batches_per_step=8,
            bins_length=(50, 100, 150),
            bucket_batch_size=(20, 12, 12),
        ),
    ):
        shape = replace(_SHAPE, finite=False)
        assert default_draws([leaf], shape, batching) > 1_000
        assert 75 <= _plan([leaf], shape, batching).num_steps <= 130


def test_a_window_of_which_nothing_is_kept_is_passed_over():
    rows = [(500, 1, 499, 1, 499)] * 60 + [(5, 1, 4, 1, 4)]
    leaf = _leaf("text", rows)
    shape = replace(_SHAPE, max_tokens=10, window_draws=1, shuffle=False)
    plan = _plan([leaf], shape, replace(_LIMIT, packed=True))
    assert [batch.row.tolist() for batch in _batches(plan)] == [[60]]
    assert plan.stats.dropped == {"max_tokens": 60}


_TEXT = _leaf("text", [(50, 25, 25, 20, 30)] * 3, name="said")
_CUT = _leaf("cut", [(5, 0, 5, 0, 5)] * 3, us=[5 * _S] * 3, name="heard")


@pytest.mark.parametrize(
    ("leaf", "shape", "batching", "named"),
    [
        (
            _TEXT,
            Shape(),
            Batching(batch_duration_us=_S),
            "'data/said.json' has samples without audio.*tokens",
        ),
        (_TEXT, Shape(), Batching(bins_us=(_S,), bucket_batch_size=(1,)), "without audio"),
        (_TEXT, Shape(tokens="t"), _LIMIT, "not measured in tokens.*use_multimodal_sampling"),
        (_TEXT, replace(_SHAPE, tokens=None), _LIMIT, "'data/said.json' has texts.*tokenizer"),
        (
            _CUT,
            replace(_SHAPE, audio_tokens=None),
            _LIMIT,
            "'data/heard.json' has audio.*audio_token_estim",
        ),
        (
            _TEXT,
            replace(_SHAPE, tokens="u"),
            _LIMIT,
            "looks at tokens of rows, and leaf 'data/said.json'",
        ),
        (_TEXT, replace(_SHAPE, min_tokens=60), _LIMIT, "min_tokens is 60.*from 50 to 50 tokens"),
        (_TEXT, replace(_SHAPE, max_tokens=40), _LIMIT, "max_tokens is 40.*from 50 to 50 tokens"),
        (_TEXT, replace(_SHAPE, min_tpt=2.0), _LIMIT, r"min_tpt is 2 and.*from 1\.5 to 1\.5"),
        (_TEXT, replace(_SHAPE, max_tpt=1.0), _LIMIT, r"max_tpt is 1 and.*from 1\.5 to 1\.5"),
        (
            _TEXT,
            _SHAPE,
            Batching(in_tokens=True, bins_length=(40,), bucket_batch_size=(2,)),
            "last of the bins is 40 tokens and the lengths of .* range from 50 to 50 tokens",
        ),
        (
            _TEXT,
            _SHAPE,
            Batching(in_tokens=True, bins_length=(40,), bins_tokens=(20,), bucket_batch_size=(2,)),
            "before the answer range from 25 to 25, those of the answer from 25 to 25",
        ),
        (
            _TEXT,
            _SHAPE,
            replace(_LIMIT, batch_tokens=40, oversize="drop"),
            "batch limit is 40 tokens and the lengths of .* range from 50 to 50 tokens",
        ),
        (
            _leaf("text", [(5, 2, 3, 2, 3), (50, 20, 30, 20, 30)], name="both"),
            replace(_SHAPE, min_tokens=20, max_tokens=30),
            _LIMIT,
            "min_tokens refuses 1, max_tokens refuses 1; the lengths of .* range from 5 to 50",
        ),
    ],
)
def test_what_gives_nothing_is_named_at_the_start(leaf, shape, batching, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        start([leaf], replace(shape, finite=False), batching, seed=1)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"multimodal": False}, "audio_tokens measures samples in tokens, and multimodal is false"),
        ({"audio_tokens": "80 ms"}, "does not say how many tokens"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens 9 is above max_tokens 8"),
        ({"min_tpt": 0.9, "max_tpt": 0.8}, "min_tpt 0.9 is above max_tpt 0.8"),
        ({"tokens": None, "max_tpt": 0.8}, "max_tpt looks at the tokens of rows"),
        ({"tokens": None, "text_window": 8}, "text_window looks at the tokens of rows"),
        ({"text_window": 0}, "text_window is 0"),
        ({"text_overhead": -1}, "text_overhead is -1"),
        ({"text_window": 3 * 10**9}, "text_window is 3000000000"),
        ({"text_overhead": 10**30}, "text_overhead is 1000"),
        ({"total_length": 1}, "total_length is 1"),
        ({"max_tokens": 8.5}, r"max_tokens is 8\.5"),
    ],
)
def test_shapes_that_mean_nothing_are_refused(options, named):
    with pytest.raises(ValueError, match=f"(?i){named}"):
        replace(_SHAPE, **options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"batch_tokens": None}, "nothing limits a batch.*batch_tokens"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"batch_tokens": 10**11}, "batch_tokens is 1"),
        ({"quadratic_tokens": 10**9}, "quadratic_tokens is 1"),
        ({"in_tokens": 1}, "in_tokens is 1"),
        ({"bins_length": (9, 9)}, "not positive and strictly ascending"),
        ({"bins_length": (9,), "bucket_batch_size": (1, 1)}, "2 sizes for 1 "),
        (
            {"bins_length": (9,), "bucket_batch_size": (1,), "max_tpt_per_bin": (1.0, 2.0)},
            "max_tpt has 2 ratios for 1 bins",
        ),
        (
            {"bins_length": (9,), "bucket_batch_size": (1,), "max_tpt_per_bin": (0.0,)},
            "of max_tpt are not positive numbers.*per token",
        ),
    ],
)
def test_batchings_that_mean_nothing_are_refused(options, named):
    with pytest.raises(PlanError, match=f"(?i){named}"):
        replace(_LIMIT, **options)


@pytest.mark.parametrize(
    "bins", [{"bins_tokens": (9, 9)}, {"max_tpt_per_bin": (1.0, 2.0)}], ids=["2d", "ratios"]
)
def test_bins_of_tokens_that_nobody_counts_are_refused(bins):
    batching = replace(_LIMIT, bins_length=(5, 9), bucket_batch_size=(2, 1), **bins)
    with pytest.raises(PlanError, match="none are counted"):
        start([replace(_CUT, side=None)], replace(_SHAPE, tokens=None), batching, seed=1)


def test_a_position_says_how_it_measures():
    shape = replace(_SHAPE, text_window=30, text_overhead=4, max_tokens=700, total_length=False)
    batching = replace(
        _LIMIT, packed=True, quadratic_tokens=900, bins_length=(9, 1_000), bucket_batch_size=(2, 1)
    )
    position = start([_TEXT, _CUT], shape, batching, seed=1)
    assert through_json(position) == position
    state = position.to_json()
    assert state["shape"]["audio_tokens"] == _AUDIO
    state["shape"]["audio_tokens"] = "us=0"
    with pytest.raises(PositionError, match="damaged position"):
        Position.from_json(state)


def test_states_of_before_there_were_tokens_still_load():
    """Their options have the names that they had, and mean what they meant."""
    golden = Path(__file__).parent / "golden"
    for file in sorted(golden.glob("*.json")):
        state = json.loads(file.read_text())["position"]
        position = Position.from_json(state)
        assert position.to_json() == state
        assert not position.shape.multimodal
        assert not position.chain[-1].batching.in_tokens


def test_tokens_that_were_counted_for_seconds_do_not_measure_the_running_window():
    """They are those of a row alone: which of them are the answer, nobody knows."""
    leaf = _leaf("cut", [(5, 0, 5, 0, 5)] * 40, us=[5 * _S] * 40)
    by_time = Batching(batch_duration_us=20 * _S)
    drawn = Shape(tokens="t", max_tps=9.0)
    position = _plan([leaf], drawn, by_time).position_at(2)
    with pytest.raises(PositionError, match=r"drawn by durations.*until the next window"):
        resume(position, [leaf], replace(_SHAPE, finite=False), _LIMIT)
    plain = _plan([leaf], Shape(), by_time).position_at(2)
    now = replace(_SHAPE, finite=False, total_length=False, max_duration_us=9 * _S)
    resumed, _ = resume(plain, [leaf], now, _LIMIT)
    assert resumed.shape == replace(now, max_duration_us=None)


def test_measuring_in_tokens_does_not_change_what_is_drawn():
    """A blend of cuts by tokens is the blend of cuts by seconds, cut otherwise."""
    leaf = leaf_in_tokens("a", 400, 3)
    leaf = replace(leaf, side={"t": leaf.side("tok")}.get)
    plain = _plan([leaf], Shape(window_draws=100), Batching(batch_size=4))
    tokens = _plan([leaf], replace(_SHAPE, finite=False, window_draws=100))
    rows = [sorted(r for b in _batches(p) for r in b.row.tolist()) for p in (plain, tokens)]
    assert rows[0] == rows[1]


def test_sides_may_have_an_answer_of_their_own():
    """Helpers of these tests: what is before the answer and the answer are all of a row."""
    side = side_of(np.array([7, 0, 30]), np.random.default_rng(0), audio=np.array([2, 0, 9]))
    assert (side["input"] + side["output"] == side["tokens"]).all()
    assert (side["context"] <= side["input"]).all()
