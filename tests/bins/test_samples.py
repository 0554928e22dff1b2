"""What samples weigh is how often training meets them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from playhead.bins.samples import Tally, accepted_samples
from playhead.plan import Batching, Shape, plan_window, start
from support.plans import columns, samples_of


def test_weights_are_shares_of_what_is_drawn():
    # Half of the rows of the first leaf are refused; its draws are not made up for.
    lengths = np.tile([1_000_001, 9_000_001], 300)
    leaves = [
        columns("a", lengths, weight=3),
        columns("b", np.full(50, 2_000_002), weight=1),
        columns("c", np.full(70, 3_000_003), weight=4),
    ]
    shape = Shape(max_duration_us=5_000_000, window_draws=8000)
    batching = Batching(batch_size=10)
    position = start(leaves, shape, batching, seed=1)
    plan = plan_window(position, leaves, shape, batching)
    met = Counter(
        key
        for step in range(plan.num_steps)
        for key, _, _ in samples_of(leaves, plan.micro_batch(step, 0))
    )
    # Each leaf has a length of its own, by which its samples are known.
    names = {1_000_001: "a", 2_000_002: "b", 3_000_003: "c"}
    weights = Counter()
    for items, weight in accepted_samples(leaves, shape, Tally()):
        weights[names[int(items.length[0])]] += weight * len(items)
    total, all_met = sum(weights.values()), sum(met.values())
    for leaf in leaves:
        assert weights[leaf.key] / total == pytest.approx(met[leaf.key] / all_met, rel=0.01)
    assert weights["a"] / weights["b"] == pytest.approx(1.5)


def test_a_few_rows_are_spread_evenly_over_all_draws():
    leaves = [
        columns("a", np.full(1000, 1_000_001), weight=3),
        columns("b", np.full(1000, 2_000_002), weight=1),
        columns("c", np.full(5, 3_000_003), weight=4),
    ]
    tally, chosen, unchosen = Tally(), {}, 0
    for items, weight in accepted_samples(leaves, Shape(), tally, num_examples=80):
        if not weight:
            unchosen += len(items)
        elif len(items):
            chosen[int(items.length[0])] = items.row, weight * len(items)
    rows = {length: len(row) for length, (row, _) in chosen.items()}
    # Of the last leaf each row is drawn several times: it is looked at once, and weighs as much.
    assert rows == {1_000_001: 30, 2_000_002: 10, 3_000_003: 5}
    shares = {length: share for length, (_, share) in chosen.items()}
    assert shares == pytest.approx({1_000_001: 3 / 8, 2_000_002: 1 / 8, 3_000_003: 4 / 8})
    assert np.diff(chosen[1_000_001][0]).max() <= 34
    assert unchosen == 2005 - 45
    assert tally.weighed == 45
    assert tally.accepted == 2005
