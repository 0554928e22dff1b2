"""Dealing: what shares a step is alike, whatever the true cost of a batch turns out to be."""

from __future__ import annotations

import numpy as np
import pytest

from playhead.plan.steps import deal_in_order, deal_keyed


def _batches(steps, per_step, seed=0):
    """Batches as a cut makes them: about the limit, of every length."""
    rng = np.random.default_rng(seed)
    effort = rng.uniform(1, 60, steps * per_step)
    size = np.maximum(1, np.floor(660 / effort))
    return (effort * 1e6).astype(np.int64), size.astype(np.int64)


@pytest.mark.parametrize("steps", [1, 2, 49, 50, 120])
def test_every_batch_has_one_place(steps):
    effort, size = _batches(steps, 6)
    for dealt in (
        deal_keyed(effort, effort * size, 6, 1, 2),
        deal_in_order(effort, effort * size, 6, np.arange(len(effort))[::-1].copy()),
    ):
        assert np.array_equal(np.sort(dealt), np.arange(len(effort)))


def test_ranks_are_even_under_other_cost_models_too():
    """Dealt by cost alone, a step mixes 2-s and 25-s batches: even only if the model is right."""
    effort, size = _batches(120, 64)
    dealt = deal_keyed(effort, effort * size, 64, 1, 2).reshape(-1, 64)
    longest = effort[dealt]
    assert (longest.max(axis=1) / longest.min(axis=1)).mean() < 1.2
    for cost in (effort * size, effort * size + effort * effort * size / 8e6):
        per_slot = cost[dealt]
        assert (per_slot.max(axis=1) / per_slot.mean(axis=1)).mean() < 1.08


def test_costs_are_evened_out_inside_blocks_when_there_are_many_steps():
    """By length alone, batches of whole samples next to each other differ more in cost."""
    effort, size = _batches(120, 64)
    cost = effort * size
    dealt = cost[deal_keyed(effort, cost, 64, 1, 2)].reshape(-1, 64)
    by_length = cost[np.argsort(-effort, kind="stable")].reshape(-1, 64)
    blocks = (dealt.max(axis=1) / dealt.mean(axis=1)).mean()
    alone = (by_length.max(axis=1) / by_length.mean(axis=1)).mean()
    assert blocks < alone


def test_no_slot_always_gets_the_dearest():
    """Unpermuted, slot 0 would hold the dearest batch of every step: one rank would always lag."""
    effort, size = _batches(200, 8)
    cost = effort * size
    dealt = cost[deal_keyed(effort, cost, 8, 1, 2)].reshape(-1, 8)
    dearest = np.bincount(dealt.argmax(axis=1), minlength=8)
    assert dearest.max() < 50
    assert dearest.min() > 5


def test_steps_do_not_go_from_long_to_short():
    effort, size = _batches(200, 8)
    dealt = effort[deal_keyed(effort, effort * size, 8, 1, 2)].reshape(-1, 8).max(axis=1)
    assert abs(np.corrcoef(np.arange(200), dealt)[0, 1]) < 0.25


def test_keys_decide_the_order_and_nothing_else():
    effort, size = _batches(60, 4)
    cost = effort * size
    first = deal_keyed(effort, cost, 4, 1, 2)
    other = deal_keyed(effort, cost, 4, 3, 4)
    assert not np.array_equal(first, other)
    as_sets = [{frozenset(step) for step in d.reshape(-1, 4).tolist()} for d in (first, other)]
    assert as_sets[0] == as_sets[1]


def test_in_order_steps_follow_the_earliest_sample():
    effort, size = _batches(30, 4)
    earliest = np.random.default_rng(1).permutation(120)
    dealt = earliest[deal_in_order(effort, effort * size, 4, earliest)].reshape(-1, 4)
    assert (np.diff(dealt, axis=1) > 0).all()
    assert (np.diff(dealt[:, 0]) > 0).all()
