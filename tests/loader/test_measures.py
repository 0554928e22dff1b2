"""What a loader says of itself in figures, against a count over everything that it handed out."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from playhead.errors import PlanError
from playhead.fetch.bad import chosen
from playhead.inspect.inspecting import inspect_checkpoint
from playhead.loader.fusion import FusedPlanning
from playhead.loader.fusion_turns import RoundRobin, Zip
from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape
from playhead.plan.padding import Padding
from playhead.plan.passes import WindowPasses
from support.multimodal import (
    leaves_in_tokens,
    samples_in_tokens,
    shapes_in_tokens,
    token_batchings,
)
from support.small_blends import G, SmallCorpus, configs, loader_of, quiet, several, trained_by


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


class Whole:
    """Everything that some ranks of a loader hand out, sample by sample, out of the manifests."""

    def __init__(self, corpus, config, names):
        self.corpus, self.config, self.names = corpus, config, names
        self.batches = []

    def add(self, batches):
        for batch in batches:
            leaves = np.unique(batch.leaf).tolist()
            samples = [self._of_leaf(batch, leaf) for leaf in leaves]
            self.batches.append((batch, [one for some in samples for one in some]))

    def _of_leaf(self, batch, leaf):
        blend, _, name = self.names[leaf].rpartition("/")
        config = self.config[blend] if blend else self.config
        of_leaf = chosen(batch, np.flatnonzero(batch.leaf == leaf))
        return trained_by(self.corpus, config, of_leaf, {leaf: name})

    def agrees_with(self, measures):
        found = [one for _, batch in self.batches for one in batch]
        assert measures.samples == len(found)
        assert measures.repeated_samples == sum(one.repeated for one in found)
        assert measures.audio_us == sum(max(one.length_us, 0) for one in found)
        padded = [
            len(batch) * max(0, *(one.length_us for one in batch), 0) for _, batch in self.batches
        ]
        assert measures.padding_us.real == measures.audio_us
        assert measures.padding_us.padded == sum(padded)
        counted = np.zeros(len(self.names), dtype=np.int64)
        for batch, _ in self.batches:
            np.add.at(counted, batch.leaf[~batch.repeated], 1)
        assert measures.leaves.samples.tolist() == counted.tolist()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYHEAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield SmallCorpus.write(tmp_path_factory.mktemp("corpus"))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_figures_are_those_of_what_was_handed_out(corpus, data):
    config = data.draw(st.one_of(configs(corpus), several(corpus)))
    planning = loader_of(config).planning
    (loader,) = loaders_of(planning)
    whole = Whole(corpus, config, [leaf.name for leaf in planning.leaves])
    earlier = loader.measures()
    for _ in range(data.draw(st.integers(1, 4))):
        steps = data.draw(st.integers(1, 9))
        took = taken([loader], steps)
        whole.add(took)
        whole.agrees_with(loader.measures())
        if data.draw(st.booleans()):
            now = loader.measures()
            recent = Whole(corpus, config, whole.names)
            recent.add(took)
            recent.agrees_with(now.since(earlier))
        earlier = loader.measures()
        match data.draw(st.sampled_from(["go on", "load", "another loader's state"])):
            case "load":
                loader.load_state_dict(loader.state_dict())
            case "another loader's state":
                (other,) = loaders_of(planning)
                taken([other], 3)
                loader.load_state_dict(other.state_dict())
            case _:
                pass
    assert earlier.step >= 0


@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(leaves_in_tokens(), shapes_in_tokens(), token_batchings(), st.integers(1, 6))
def test_figures_of_batches_in_tokens_are_those_of_what_was_handed_out(
    leaves, shape, batching, steps
):
    planning = Planning(leaves=tuple(leaves), shape=shape, batching=batching)
    (loader,) = loaders_of(planning)
    try:
        batches = taken([loader], steps)
    except PlanError:
        # Nothing is accepted.
        assume(False)
    tokens = audio_us = padded = count = 0
    for batch in batches:
        found = [
            next(
                sample
                for sample in samples_in_tokens(leaves[leaf], pass_, row, shape, 3)
                if sample.part == part
            )
            for leaf, pass_, row, part in zip(
                batch.leaf.tolist(), batch.pass_.tolist(), batch.row.tolist(), batch.part.tolist(),
                strict=True,
            )
        ]  # fmt: skip
        sizes = [one.size for one in found]
        count += len(found)
        tokens += sum(sizes)
        audio_us += sum(one.length for one in found)
        padded += sum(sizes) if batching.packed else max(sizes) * len(sizes)
    measures = loader.measures()
    assert (measures.samples, measures.tokens) == (count, tokens)
    assert measures.audio_us == audio_us
    assert measures.padding_tokens == Padding(float(tokens), float(padded))
    assert measures.padding_us == Padding()


@pytest.mark.parametrize("finite", [False, True])
def test_drift_is_that_of_a_look_at_the_checkpoint(corpus, tmp_path, finite):
    options = {
        "batch_duration": 40.0, "min_duration": 3.0, "window_draws": 77, "force_finite": finite,
    }  # fmt: skip
    config = corpus.blend(["plain", "other", "tarred"], [0.2, 0.5, 1.0], options)
    loader = loader_of(config)
    list(islice(iter(loader), 7 * G))
    state = tmp_path / "state.json"
    state.write_text(json.dumps(loader.state_dict()))
    looked = tmp_path / "config.json"
    looked.write_text(json.dumps(config))
    rows = quiet(lambda: inspect_checkpoint(state, looked)).rows
    leaves = loader.measures().leaves
    assert leaves.names == tuple(row.dataset for row in rows)
    assert leaves.target.tolist() == pytest.approx([row.desired_weight for row in rows])
    assert leaves.observed.tolist() == pytest.approx([row.observed_weight for row in rows])
    assert leaves.drift.tolist() == pytest.approx([row.drift_abs for row in rows])


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_passes_go_on_wherever_a_run_was_stopped(data):
    """Nothing is refused here: passes are samples by rows, of all runs together."""
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    leaves = [
        columns(f"{at}", [1_000_000] * size, weight=data.draw(st.integers(1, 4)))
        for at, size in enumerate(sizes)
    ]
    draws = data.draw(st.integers(5, 60))
    planning = planning_of(leaves, draws=draws, batch_size=3)
    counts, state = np.zeros(len(sizes)), None
    for _ in range(data.draw(st.integers(1, 3))):
        (loader,) = loaders_of(planning)
        if state is not None:
            loader.load_state_dict(state)
        assert loader.measures().leaves.passes is None
        for batch in taken([loader], data.draw(st.integers(1, 15))):
            np.add.at(counts, batch.leaf, 1)
        passes = loader.measures().leaves.passes
        assert passes == pytest.approx(counts / sizes)
        state = loader.state_dict()


def test_rows_that_filters_refuse_count_in_passes():
    leaf = columns("a", [100_000, 1_000_000] * 10)
    planning = planning_of([leaf], low=500_000, draws=20, batch_size=5)
    (loader,) = loaders_of(planning)
    passes = []
    for _ in range(4):
        taken([loader], 1)
        passes.append(float(loader.measures().leaves.passes[0]))
    # Ten of the twenty rows are two batches of five: one step.
    assert passes == [1.0, 2.0, 3.0, 4.0]


def test_a_pass_that_ends_is_gone_through_as_often_as_it_was_begun():
    planning = planning_of(LEAVES, finite=True, low=200_000, batch_size=4)
    (loader,) = loaders_of(planning)
    list(loader)
    assert loader.measures().leaves.passes.tolist() == [1.0, 1.0, 1.0]
    assert loader.measures().leaves.drift.tolist() == pytest.approx([0.0, 0.0, 0.0])
    iterator = iter(loader)
    next(iterator), next(iterator)
    passes = loader.measures().leaves.passes
    assert all(1.0 <= one < 2.0 for one in passes)
    assert max(passes) > 1.0


def test_what_is_fetched_ahead_is_counted_when_it_is_trained_on():
    (loader,) = loaders_of(planning_of(LEAVES, batch_size=3))
    loader.follow_training()
    batches = list(islice(iter(loader), 7))
    assert (loader.measures().steps, loader.measures().step) == (0, 0)
    loader.mark_trained(3)
    measures = loader.measures()
    Counted(LEAVES, batches[:2]).agrees_with(measures)
    assert (measures.steps, measures.step) == (1, 1)
    assert measures.rank.batches == 7
    # What was fetched ahead comes again, and counts once.
    loader.mark_trained(1)
    again = list(islice(iter(loader), 4))
    loader.mark_trained(4)
    Counted(LEAVES, [*batches[:4], *again]).agrees_with(loader.measures())
    assert loader.measures().step == 4


def test_the_last_batches_of_a_pass_may_be_trained_on_after_the_next_began():
    (loader,) = loaders_of(planning_of(LEAVES, finite=True, batch_size=3))
    loader.follow_training()
    batches = list(loader)
    loader.mark_trained(len(batches) - 1)
    batches.append(next(iter(loader)))
    loader.mark_trained(1)
    Counted(LEAVES, batches[:-1]).agrees_with(loader.measures())


def test_a_loader_that_was_restored_says_where_it_stands():
    (first,) = loaders_of(planning_of(LEAVES, batch_size=3))
    taken([first], 4)
    (second,) = loaders_of(planning_of(LEAVES, batch_size=3))
    second.load_state_dict(first.state_dict())
    measures = second.measures()
    assert (measures.step, measures.steps, measures.samples) == (4, 0, 0)
    assert measures.seconds == 0.0
    taken([second], 2)
    assert (second.measures().step, second.measures().steps) == (6, 2)


def test_a_window_that_is_entered_again_drops_nothing_twice():
    (loader,) = loaders_of(planning_of(LEAVES, low=200_000, batch_size=3))
    taken([loader], 1)
    start = loader.state_dict()
    taken([loader], 3)
    dropped = loader.measures().dropped["min_duration"]
    assert dropped > 0
    loader.load_state_dict(start)
    taken([loader], 3)
    assert loader.measures().dropped["min_duration"] == dropped
    assert loader.measures().since(loader.measures()).dropped == {}


def test_samples_that_fill_the_last_step_count_once_for_their_leaf():
    planning = planning_of(
        [columns("a", [1_000_000] * 5)], finite=True, batch_size=1, micro_batches_per_step=4
    )
    (loader,) = loaders_of(planning)
    batches = list(loader)
    measures = loader.measures()
    Counted(planning.leaves, batches).agrees_with(measures)
    assert (measures.samples, measures.repeated_samples) == (8, 3)
    assert measures.leaves.samples.tolist() == [5]
    assert measures.leaves.passes.tolist() == [1.0]


def test_passes_go_on_inside_a_window_and_after_other_batches():
    leaves = [columns("a", [1_000_000] * 20), columns("b", [1_000_000] * 30)]
    (first,) = loaders_of(planning_of(leaves, draws=40, batch_size=3))
    before = Counted(leaves, taken([first], 2)).samples
    (second,) = loaders_of(planning_of(leaves, draws=40, batch_size=2))
    with pytest.warns(UserWarning, match="batching changed"):
        second.load_state_dict(first.state_dict())
    assert second.state_dict()["chain"][0][2] == 2
    counts = before + Counted(leaves, taken([second], 3)).samples
    assert second.measures().leaves.passes == pytest.approx(counts / [20, 30])


def test_rows_that_were_appended_make_later_passes_longer():
    passes = WindowPasses(
        pass_=np.array([2]),
        done=np.array([6]),
        rows=np.array([10]),
        next_rows=np.array([20]),
        draws=np.array([9]),
        samples=np.array([9]),
    )
    assert passes.after(np.array([0])).tolist() == pytest.approx([2.6])
    assert passes.after(np.array([4])).tolist() == pytest.approx([3.0])
    assert passes.after(np.array([9])).tolist() == pytest.approx([3.25])
