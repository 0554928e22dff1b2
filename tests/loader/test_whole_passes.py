"""Passes of an evaluation over made-up columns: all the same, each sample once over all ranks."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import PositionError
from playhead.fetch.info import BatchInfo
from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.loader.whole_passes import WholePasses
from playhead.plan import Batching, Shape
from support.column_loader import leaf


def evaluation(
    *counts, rank=0, world_size=1, step=None, shuffle=False, window_draws=None, seed=3, **batching
):
    return Loader(
        planning=Planning(
            leaves=[
                leaf(f"l{number}", rows, seed=number) for number, rows in enumerate(counts or [40])
            ],
            shape=Shape(finite=True, shuffle=shuffle, window_draws=window_draws),
            batching=Batching(
                micro_batches_per_step=step or world_size,
                **{"bucketing": False, **(batching or {"batch_size": 7})},
            ),
        ),
        fetch=BatchInfo.of,
        topology=Topology(rank=rank, world_size=world_size),
        workers=Workers(persistent=False),
        seed=seed,
        course=WholePasses,
    )


def fresh(batches):
    return [info.declared[row] for info in batches for row in info.fresh]


batchings = st.one_of(
    st.builds(dict, batch_size=st.integers(1, 9)),
    st.builds(dict, batch_duration_us=st.integers(1_000_000, 60_000_000)),
    st.builds(
        dict,
        batch_duration_us=st.integers(12_000_000, 60_000_000),
        bucketing=st.just(True),
        num_classes=st.integers(1, 5),
    ),
    st.builds(
        dict,
        bucketing=st.just(True),
        bins_us=st.just((4_000_000, 12_000_000)),
        bucket_batch_size=st.tuples(st.integers(3, 6), st.integers(1, 3)),
    ),
)


@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    ranks=st.integers(1, 8),
    accumulated=st.integers(1, 3),
    drawn=st.fixed_dictionaries(
        {"shuffle": st.booleans(), "window_draws": st.none() | st.integers(5, 50)}
    ),
    batching=batchings,
)
def test_ranks_evaluate_each_sample_once_in_as_many_batches_as_they_say(
    counts, ranks, accumulated, drawn, batching
):
    options = {"world_size": ranks, "step": ranks * accumulated, **drawn, **batching}
    loaders = [evaluation(*counts, rank=rank, **options) for rank in range(ranks)]
    lengths = [len(loader) for loader in loaders]
    passes = [list(loader) for loader in loaders]
    assert [len(batches) for batches in passes] == lengths == [lengths[0]] * ranks
    assert all(info.repeated for batches in passes for info in batches)
    everything = [(n, row, 0) for n, rows in enumerate(counts) for row in range(rows)]
    assert sorted(place for batches in passes for place in fresh(batches)) == everything
    # A rank never has to leave out some samples of a batch: it counts whole, or not at all.
    assert {len(set(info.repeated)) for batches in passes for info in batches} == {1}
    if not drawn["shuffle"] and not batching.get("bucketing"):
        turns = [info for together in zip(*passes, strict=True) for info in together]
        turns.sort(key=lambda info: (info.step, info.slot))
        assert fresh(turns) == everything


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pass_is_the_same_whatever_became_of_the_last(shuffle):
    loader = evaluation(40, shuffle=shuffle)
    whole = list(loader)
    assert list(loader) == whole
    list(islice(loader, 2))
    assert len(loader) == len(whole)
    assert list(loader) == whole


def test_a_pass_that_is_chosen_stays_chosen():
    loader = evaluation(40, shuffle=True)
    first = fresh(loader)
    loader.set_epoch(3)
    third = fresh(loader)
    assert fresh(loader) == third != first
    loader.set_epoch(0)
    assert fresh(loader) == first


def test_a_state_is_the_start_of_a_pass_whenever_it_is_taken():
    loader = evaluation(40, shuffle=True)
    before = loader.state_dict()
    whole = list(loader)
    after = loader.state_dict()
    batches = iter(loader)
    next(batches)
    inside = loader.state_dict()
    assert before == after == inside
    resumed = evaluation(40, shuffle=True)
    resumed.load_state_dict(json.loads(json.dumps(inside)))
    assert len(resumed) == len(whole)
    assert list(resumed) == list(resumed) == whole


def test_the_state_of_another_pass_chooses_it():
    loader = evaluation(40, shuffle=True)
    loader.set_epoch(2)
    second = fresh(loader)
    resumed = evaluation(40, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    assert fresh(resumed) == second


@pytest.mark.parametrize("chosen", [0, 3])
def test_a_state_does_not_mind_other_data_and_other_ranks(chosen):
    saved = evaluation(40, world_size=4)
    saved.set_epoch(chosen)
    state = saved.state_dict()
    more = evaluation(43, world_size=3)
    more.load_state_dict(state)
    assert len(more) == 3


def test_a_position_inside_a_pass_goes_on_there_once_if_somebody_loads_it():
    loader = evaluation(40)
    whole = list(loader)
    list(islice(loader, 2))
    there = loader.position_after(2).to_json()
    resumed = evaluation(40)
    resumed.load_state_dict(json.loads(json.dumps(there)))
    assert len(resumed) == len(whole) - 2
    assert fresh(resumed) == fresh(whole[2:])
    assert len(resumed) == len(whole)
    assert list(resumed) == whole
    fewer = evaluation(30)
    with pytest.raises(PositionError, match="had 40 rows and has 30"):
        fewer.load_state_dict(there)


@pytest.mark.parametrize("chosen", [0, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_position_at_the_end_of_a_pass_begins_the_same_one_whole(chosen, shuffle):
    loader = evaluation(40, shuffle=shuffle)
    loader.set_epoch(chosen)
    whole = list(loader)
    resumed = evaluation(40, shuffle=shuffle)
    resumed.load_state_dict(loader.position_after(len(whole)).to_json())
    assert list(resumed) == list(resumed) == whole
