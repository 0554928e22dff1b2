"""What a loader says of itself in figures, against a count over everything that it handed out."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.loader.fusion import FusedPlanning
from playhead.loader.fusion_turns import RoundRobin, Zip
from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape


def columns(key, durations, weight=1):
    return LeafColumns(
        key=key,
        name=f"leaf {key}",
        weight=weight,
        duration_us=np.asarray(durations, np.int64),
        fingerprint=lambda n: f"{n:016x}",
    )


def as_is(micro_batch):
    return micro_batch


def loaders_of(planning, world_size=1):
    return [
        Loader(
            planning=planning,
            fetch=as_is,
            topology=Topology(rank=rank, world_size=world_size),
            workers=Workers(),
            seed=3,
            fixed_step=True,
        )
        for rank in range(world_size)
    ]


def planning_of(leaves, *, finite=False, low=None, draws=40, **batching):
    batching.setdefault("micro_batches_per_step", 2)
    return Planning(
        leaves=tuple(leaves),
        shape=Shape(finite=finite, shuffle=True, min_duration_us=low, window_draws=draws),
        batching=Batching(**batching),
    )


def fused_of(rule, **parts):
    return FusedPlanning(parts=parts, rule=rule)


class Counted:
    """Everything that some micro-batches hold, counted one by one."""

    def __init__(self, leaves, micro_batches):
        self.samples = np.zeros(len(leaves), dtype=np.int64)
        self.repeated = self.total = self.us = self.padded_us = 0
        for batch in micro_batches:
            lengths = [
                int(leaves[leaf].duration_us[row])
                for leaf, row in zip(batch.leaf.tolist(), batch.row.tolist(), strict=True)
            ]
            self.total += len(lengths)
            self.us += sum(lengths)
            self.padded_us += max(lengths) * len(lengths)
            self.repeated += int(batch.repeated.sum())
            for leaf in batch.leaf[~batch.repeated].tolist():
                self.samples[leaf] += 1

    def agrees_with(self, measures):
        assert measures.samples == self.total
        assert measures.repeated_samples == self.repeated
        assert measures.audio_us == self.us
        assert measures.padding_us.real == self.us
        assert measures.padding_us.padded == self.padded_us
        assert measures.leaves.samples.tolist() == self.samples.tolist()


LEAVES = [
    columns("a", [1_000_000 + 70_000 * n for n in range(30)], 3),
    columns("b", [100_000, 2_000_000, 333_333] * 9),
    columns("c", [5_000_000] * 4, 2),
]


def taken(loaders, steps):
    """What all ranks are given in some steps, in order."""
    iterators = [iter(loader) for loader in loaders]
    per_step = loaders[0].batches_per_step
    return [batch for one in iterators for batch in islice(one, steps * per_step)]


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("finite", [False, True])
def test_every_rank_knows_what_all_were_given(world_size, finite):
    planning = planning_of(
        LEAVES, finite=finite, low=200_000, batch_size=3, micro_batches_per_step=4
    )
    loaders = loaders_of(planning, world_size)
    batches = taken(loaders, 5)
    counted = Counted(LEAVES, batches)
    for loader in loaders:
        measures = loader.measures()
        counted.agrees_with(measures)
        assert (measures.steps, measures.step) == (5, 5)
        assert measures.rank.batches == 5 * 4 // world_size
    assert sum(loader.measures().rank.samples for loader in loaders) == counted.total


@pytest.mark.parametrize("rule", [RoundRobin(), Zip(2)])
def test_several_blends(rule):
    parts = {
        "x": planning_of(LEAVES[:2], batch_size=3),
        "y": planning_of(LEAVES[2:], batch_size=2),
    }
    (loader,) = loaders_of(fused_of(rule, **parts))
    batches = taken([loader], 7)
    measures = loader.measures()
    Counted(LEAVES, batches).agrees_with(measures)
    assert measures.leaves.target.tolist() == [0.75, 0.25, 1.0]
    assert set(measures.windows) == {"x", "y"}


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_figures_are_those_of_what_was_handed_out(data):
    number = st.integers(1, 3_000_000)
    leaves = [
        columns(f"{at}", lengths, weight)
        for at, (lengths, weight) in enumerate(
            data.draw(
                st.lists(
                    st.tuples(st.lists(number, min_size=1, max_size=40), st.integers(1, 5)),
                    min_size=1,
                    max_size=4,
                )
            )
        )
    ]
    finite = data.draw(st.booleans())
    planning = planning_of(
        leaves,
        finite=finite,
        draws=data.draw(st.integers(5, 60)),
        batch_duration_us=data.draw(st.sampled_from([None, 6_000_000])),
        batch_size=data.draw(st.integers(1, 5)),
    )
    (loader,) = loaders_of(planning)
    seen = []
    earlier, before = loader.measures(), 0
    for _ in range(data.draw(st.integers(1, 3))):
        took = taken([loader], data.draw(st.integers(1, 12)))
        seen += took
        Counted(leaves, seen).agrees_with(loader.measures())
        if data.draw(st.booleans()):
            now = loader.measures()
            Counted(leaves, seen[before:]).agrees_with(now.since(earlier))
            earlier, before = now, len(seen)
        if data.draw(st.booleans()):
            loader.load_state_dict(loader.state_dict())
