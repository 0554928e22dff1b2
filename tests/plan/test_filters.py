"""Filters on columns: their order, what they count, and leaves of which they leave nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from playhead.errors import PlanError, PositionError
from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.filters import leaf_facts, refused_rows
from playhead.plan.opening import default_draws
from playhead.plan.verdicts import verdicts
from support.plans import columns, speech

_S = 1_000_000
_LIMIT = Batching(batch_duration_us=60 * _S)


def _sides(**found):
    return {name: {k: np.array(v) for k, v in side.items()} for name, side in found.items()}.get


def _plan(leaf, shape, batching=_LIMIT):
    return plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)


def _up_to(last):
    """True for rows 0 … last of ten."""
    return np.arange(10) <= last


def test_a_row_is_counted_for_the_first_filter_that_refuses_it():
    """Row k is refused by filter k of NeMo's order and by all that follow, row 9 by none."""
    lengths = np.full(10, _S)
    lengths[0], lengths[8] = 1, 40 * _S
    leaf = columns(
        "a",
        lengths,
        status=(~_up_to(1)).astype(np.int16),
        statuses=("fail", "pass"),
        excluded_rows=np.arange(3),
        excluded_at=np.full(3, 5),
        side=_sides(
            f={
                "speaker": _up_to(3),
                "cer": np.where(_up_to(4), 0.9, 0.1),
                "similarity": np.where(_up_to(5), 0.1, 0.9),
            },
            t={"tokens": np.where(_up_to(6), 0, np.where(_up_to(7), 99, 80))},
        ),
    )
    shape = Shape(
        finite=True,
        min_duration_us=10,
        fields="f",
        max_cer=0.5,
        min_similarity=0.5,
        excluded_speakers=True,
        tokens="t",
        min_tps=1.0,
        max_tps=90.0,
    )
    fixed = Batching(bins_us=(30 * _S,), bucket_batch_size=(4,))
    dropped = _plan(leaf, shape, fixed).stats.dropped
    assert list(dropped.items()) == [
        ("min_duration", 1),
        ("validation_status", 1),
        ("excluded", 1),
        ("excluded_speaker_ids", 1),
        ("max_cer", 1),
        ("min_context_speaker_similarity", 1),
        ("min_tps", 1),
        ("max_tps", 1),
        ("above_last_bin", 1),
    ]
    assert refused_rows(leaf, shape, fixed) == dropped


@pytest.mark.parametrize("column", ["cer", "similarity"])
def test_rows_that_say_nothing_are_kept(column):
    leaf = columns("a", [_S] * 3, side=_sides(f={"cer": [np.nan] * 3, "similarity": [np.nan] * 3}))
    limit = {"cer": {"max_cer": 0.0}, "similarity": {"min_similarity": 1.0}}[column]
    assert _plan(leaf, Shape(finite=True, fields="f", **limit)).stats.dropped == {}


def test_a_status_that_is_not_said_is_kept_and_keep_names_another():
    status = np.array([-1, 0, 1, 0, 2], dtype=np.int16)
    leaf = columns("a", [_S] * 5, status=status, statuses=("pass", "fail", "todo"))
    assert _plan(leaf, Shape(finite=True)).stats.dropped == {"validation_status": 2}
    other = Shape(finite=True, keep="todo")
    assert _plan(leaf, other).stats.dropped == {"validation_status": 3}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"max_cer": 0.25}, [0, 1]),
        ({"min_similarity": 0.25}, [1, 2]),
        ({"min_tps": 2.5}, [1, 2]),
        ({"max_tps": 2.5}, [0, 1]),
        ({"min_duration_us": 4 * _S}, [1, 2]),
        ({"max_duration_us": 4 * _S}, [0, 1]),
    ],
)
def test_bounds_are_inclusive(options, kept):
    found = [0.0, 0.25, 0.5]
    leaf = columns(
        "a",
        [4 * _S - 1, 4 * _S, 4 * _S + 1],
        side=_sides(f={"cer": found, "similarity": found}, t={"tokens": [9, 10, 11]}),
    )
    plan = _plan(leaf, Shape(finite=True, fields="f", tokens="t", **options))
    assert sorted(plan.micro_batch(0, 0).row.tolist()) == kept


def test_tokens_are_by_seconds_of_what_is_left_of_a_row():
    """Tokens are not counted anew when a row is cut: NeMo's rates rise with truncation."""
    leaf = columns("a", [4 * _S], side=_sides(t={"tokens": [20]}))
    shape = Shape(finite=True, tokens="t", max_tps=10.0)
    assert _plan(leaf, shape).stats.dropped == {}
    with pytest.raises(PlanError, match=r"max_tps is 10 and the tokens per second of .* 20 to 20"):
        start([leaf], replace(shape, truncate_us=_S), _LIMIT, seed=1)
    padded = replace(shape, max_tps=1.0, pad_us=20 * _S)
    assert _plan(leaf, padded).stats.dropped == {}


def _all(value, count=3):
    return [value] * count


@pytest.mark.parametrize(
    ("shape", "batching", "named"),
    [
        (Shape(keep="done"), _LIMIT, "keep is 'done' and the validation_status of .* 'pass'"),
        (Shape(fields="f", max_cer=0.1), _LIMIT, "max_cer is 0.1 and .* range from 0.5 to 0.75"),
        (
            Shape(fields="f", min_similarity=0.5),
            _LIMIT,
            "min_context_speaker_similarity is 0.5 and .* range from 0.125 to 0.25",
        ),
        (Shape(fields="f", excluded_speakers=True), _LIMIT, "holds the speakers of every row"),
        (Shape(tokens="t", min_tps=7.5), _LIMIT, "min_tps is 7.5 and .* range from 5 to 7"),
        (Shape(tokens="t", max_tps=2.0), _LIMIT, "max_tps is 2 and .* range from 5 to 7"),
        (
            Shape(window_us=_S, min_duration_us=2 * _S),
            _LIMIT,
            "min_duration is 2 s and .* after speed, .* range from 1 s to 1 s",
        ),
        (
            Shape(tokens="t"),
            Batching(bins_us=(9 * _S,), bins_tokens=(3,), bucket_batch_size=(2,)),
            "no bin .* range from 2 s to 2 s, the tokens from 10 to 14",
        ),
        (
            Shape(tokens="t", min_tps=5.5, max_tps=6.5, fields="f", max_cer=0.5),
            _LIMIT,
            "max_cer refuses 1, min_tps refuses 1, max_tps refuses 1",
        ),
    ],
)
def test_a_filter_that_refuses_a_whole_leaf_is_named_with_the_range_of_the_data(
    shape, batching, named
):
    leaf = columns(
        "a",
        [2 * _S] * 3,
        status=np.zeros(3, dtype=np.int16),
        statuses=("pass",),
        side=_sides(
            f={
                "cer": [0.5, 0.75, 0.5],
                "similarity": [0.125, np.nan if shape.min_similarity is None else 0.25, 0.25],
                "speaker": _all(True),
            },
            t={"tokens": [10, 12, 14]},
        ),
    )
    with pytest.raises(PlanError, match=named):
        start([leaf], shape, batching, seed=1)


def test_a_leaf_whose_rows_are_all_excluded_is_an_error_too():
    bad = {"excluded_rows": np.arange(3), "excluded_at": np.array([4, 2, 9])}
    with pytest.raises(PlanError, match=r"every row of 'data/a.json' is excluded"):
        start([columns("a", [_S] * 3, **bad)], Shape(), _LIMIT, seed=1)
    empty = columns("a", [-1] * 3)
    with pytest.raises(PlanError, match=r"no row of 'data/a.json' has a length"):
        start([empty], Shape(), _LIMIT, seed=1)


def test_a_leaf_that_only_some_speed_brings_within_bounds_is_none():
    """Judged at its own speed alone, a third of its draws would be told to be nothing."""
    leaf = columns("a", [_S] * 200)
    shape = Shape(perturb_speed=True, min_duration_us=1_100_000, window_draws=600)
    plan = _plan(leaf, shape)
    accepted = plan.stats.num_samples
    assert 150 <= accepted <= 250
    facts = leaf_facts(leaf, shape)
    assert (facts.accepted, facts.copies) == (200, 3)
    assert refused_rows(leaf, shape, _LIMIT) == {"min_duration": 133}


@pytest.mark.parametrize(
    "shape",
    [
        Shape(tokens="t", max_tps=3.0),
        Shape(perturb_speed=True, min_duration_us=8 * _S),
        Shape(keep="other"),
    ],
)
def test_filters_widen_a_window(shape):
    """Quotas are draws: what filters refuse is drawn on top, or steps would be too few."""
    us = speech(200_000)
    rates = np.random.default_rng(0).uniform(1, 6, len(us))
    leaf = columns(
        "a",
        us,
        status=(np.arange(len(us)) % 3).astype(np.int16),
        statuses=("pass", "other", "bad"),
        side=_sides(t={"tokens": (us / 1e6 * rates).astype(np.uint32)}),
    )
    batching = Batching(batch_duration_us=660 * _S, micro_batches_per_step=2)
    plan = _plan(leaf, shape, batching)
    assert 90 <= plan.num_steps <= 115


def test_bins_that_refuse_most_widen_a_window():
    us = speech(200_000)
    leaf = columns("a", us, side=_sides(t={"tokens": np.arange(len(us)) % 400}))
    few = Batching(bins_us=(30 * _S,), bins_tokens=(99,), bucket_batch_size=(8,))
    shape = Shape(tokens="t")
    assert 3_150 <= default_draws([leaf], shape, few) <= 3_250
    plan = _plan(leaf, shape, few)
    assert 90 <= plan.num_steps <= 110


def test_verdicts_cost_nothing_where_nothing_refuses():
    leaf = columns("a", [_S] * 3, status=np.zeros(3, dtype=np.int16), statuses=("pass",))
    assert verdicts(leaf, Shape()) is None
    assert verdicts(columns("a", [_S] * 3), Shape()) is None
    one = columns("a", [_S] * 3, excluded_rows=np.array([1]), excluded_at=np.array([7]))
    assert verdicts(one, Shape(exclusions=6)) is None
    assert verdicts(one, Shape(exclusions=7)).tolist() == [0, 2, 0]
    assert verdicts(one, Shape(exclusions=7)) is verdicts(one, Shape(exclusions=7))


def test_exclusions_are_not_taken_back_inside_a_window():
    """The rows would join the running window, and every batch of it would be another."""
    bad = {"excluded_rows": np.array([3]), "excluded_at": np.array([5])}
    leaf, plain = columns("a", speech(200), **bad), columns("a", speech(200))
    shape = Shape(window_draws=100)
    position = _plan(leaf, shape).position_at(1)
    with pytest.raises(PositionError, match="not excluded any more"):
        resume(position, [plain], shape, _LIMIT)
    resumed, _ = resume(start([leaf], shape, _LIMIT, seed=1), [plain], shape, _LIMIT)
    assert resumed.shape.exclusions == 0
    more = columns("a", speech(200), excluded_rows=np.array([3, 9]), excluded_at=np.array([5, 6]))
    _, notes = resume(position, [more], shape, _LIMIT)
    assert "in effect from the next window" in notes[0]


@pytest.mark.parametrize("digest", ["tokens", "fields"])
def test_a_window_whose_side_file_is_gone_cannot_be_planned_again(digest):
    """Counted by another tokenizer, the filters would accept other rows, and all batches move."""
    found = _sides(x={"tokens": np.full(200, 9), "cer": np.zeros(200)})
    leaf = columns("a", speech(200), side=found)
    option = {"tokens": {"max_tps": 99.0}, "fields": {"max_cer": 0.5}}[digest]
    shape = Shape(window_draws=100, **{digest: "x"}, **option)
    plan = _plan(leaf, shape)
    position = plan.position_at(1)
    side = found("x")
    other = columns("a", speech(200), side={"y": side}.get)
    changed = replace(shape, **{digest: "y"})
    with pytest.raises(PositionError, match="no side file with digest x"):
        plan_window(resume(position, [other], changed, _LIMIT)[0], [other], changed, _LIMIT)
    both = columns("a", speech(200), side={"x": side, "y": side}.get)
    resumed, notes = resume(position, [both], changed, _LIMIT)
    assert getattr(resumed.shape, digest) == "x"
    assert "in effect from the next window" in notes[-1]
    after = plan_window(resumed, [both], changed, _LIMIT)
    assert getattr(after.position_at(after.num_steps).shape, digest) == "y"


def test_a_tokenizer_that_nothing_looks_at_may_change():
    leaf = columns("a", speech(200))
    shape = Shape(window_draws=100, tokens="x")
    position = _plan(leaf, shape).position_at(1)
    changed = replace(shape, tokens="y")
    resumed, _ = resume(position, [leaf], changed, _LIMIT)
    assert plan_window(resumed, [leaf], changed, _LIMIT).num_steps > 1


def test_a_side_file_for_other_rows_is_refused():
    leaf = columns("a", [_S] * 3, side=_sides(t={"tokens": [1, 2]}))
    with pytest.raises(PlanError, match="looks at tokens of rows"):
        start([leaf], Shape(tokens="t", max_tps=5.0), _LIMIT, seed=1)


def test_only_some_of_the_leaves_may_have_columns():
    leaves = [
        columns("a", [_S] * 50),
        columns("b", [_S] * 50, status=np.ones(50, dtype=np.int16), statuses=("pass", "no")),
        columns(
            "c",
            [_S] * 50,
            status=(np.arange(50) % 2).astype(np.int16),
            statuses=("pass", "no"),
        ),
    ]
    shape = Shape(finite=True)
    plan = plan_window(start(leaves, shape, _LIMIT, seed=1), leaves, shape, _LIMIT)
    assert plan.stats.dropped == {"validation_status": 75}
    assert plan.stats.num_samples == 75
