"""How windows begin: their size, who takes part, and what they remember."""

from __future__ import annotations

from dataclasses import replace

import pytest

from playhead.plan import Batching, Shape, plan_window, resume, start
from playhead.plan.opening import default_draws
from support.plans import columns, speech

_BATCHING = Batching(
    micro_batches_per_step=8, batch_duration_us=660_000_000, quadratic_duration_us=30_000_000
)


def test_a_window_makes_about_a_hundred_steps():
    leaves = [columns("a", speech(60_000))]
    plan = plan_window(start(leaves, Shape(), _BATCHING, seed=1), leaves, Shape(), _BATCHING)
    assert 95 <= plan.num_steps <= 110


def test_filters_widen_a_window():
    """Quotas are draws: what filters refuse must be drawn on top, or steps would be too few."""
    leaves = [columns("a", speech(120_000))]
    shape = Shape(min_duration_us=7_000_000)
    plan = plan_window(start(leaves, shape, _BATCHING, seed=1), leaves, shape, _BATCHING)
    assert 90 <= plan.num_steps <= 115


def test_a_window_is_capped():
    """A hundred steps of 1,024 ranks would be six million samples: seconds and much memory."""
    leaves = [columns("a", speech(1_250_000))]
    many = replace(_BATCHING, micro_batches_per_step=1024)
    assert default_draws(leaves, Shape(), many) == 1_200_000
    rare = Shape(min_duration_us=29_999_999)
    assert default_draws(leaves, rare, many) == 4_800_000


def test_a_window_of_few_rows_is_one_pass_but_ten_steps_at_least():
    few = [columns("a", speech(2000)), columns("b", speech(3000, 1))]
    assert default_draws(few, Shape(), replace(_BATCHING, micro_batches_per_step=1)) == 5000
    plan = plan_window(start(few, Shape(), _BATCHING, seed=1), few, Shape(), _BATCHING)
    assert 9 <= plan.num_steps <= 12


def test_given_draws_are_used_as_they_are():
    leaves = [columns("a", speech(2000))]
    shape = Shape(window_draws=77)
    assert start(leaves, shape, _BATCHING, seed=1).window_draws == 77


def test_a_running_window_keeps_its_draws():
    """Worked out anew for other GPUs, W would move the border of the window that runs."""
    leaves = [columns("a", speech(2000))]
    plan = plan_window(start(leaves, Shape(), _BATCHING, seed=1), leaves, Shape(), _BATCHING)
    other = replace(_BATCHING, micro_batches_per_step=4)
    fresh = start(leaves, Shape(), other, seed=1).window_draws
    inside, _ = resume(plan.position_at(5), leaves, Shape(), other)
    assert inside.window_draws == plan.position_at(5).window_draws != fresh
    while not inside.is_window_start or inside.window == 0:
        plan = plan_window(inside, leaves, Shape(), other)
        inside = plan.position_at(plan.num_steps)
    assert inside.window_draws == fresh


def test_an_estimate_is_the_same_in_any_order_of_leaves():
    leaves = [columns(f"k{n}", speech(50 + 13 * n, n), 3**n) for n in range(12)]
    shape = Shape(min_duration_us=2_000_000)
    drawn = {default_draws(leaves[n:] + leaves[:n], shape, _BATCHING) for n in range(12)}
    assert len(drawn) == 1


@pytest.mark.parametrize("pass_", [0, 3])
def test_a_finite_pass_begins_where_it_is_told(pass_):
    leaves = [columns("a", speech(30)), columns("b", speech(5), 0)]
    position = start(leaves, Shape(finite=True), _BATCHING, seed=1, pass_=pass_)
    assert position.pass_ == pass_
    assert position.weights == (1, 1)
