"""Where data lie decides how new runs order them, never how a run that has begun goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.blend.leaf import Leaf
from playhead.errors import ConfigError
from playhead.loader.fusion import FusedPlanning
from playhead.loader.fusion_turns import RoundRobin
from playhead.loader.loader import Loader
from playhead.loader.locality import cache_notes, locality_of
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, Shape
from support.plans import columns, speech
from support.stores import MemoryStore, plugged_in

LOCALITIES = st.sampled_from(["rows", "shards"])


def planning(locality, *, asked=False, finite=False, name="a", cache_bytes=8_000_000):
    shards = np.repeat(np.arange(12, dtype=np.int32), 25)
    leaf = columns(name, speech(300), shard=shards, shard_bytes=np.full(12, 1_000_000))
    plain = columns(f"{name}-plain", speech(40, 1))
    return Planning(
        leaves=(leaf, plain),
        # Windows of shards are shorter than those of rows here: both have a say in what comes.
        shape=Shape(finite=finite, locality=locality, cache_bytes=cache_bytes),
        batching=Batching(batch_duration_us=60_000_000, micro_batches_per_step=2),
        keeps_locality=not asked,
    )


def seen(micro_batch):
    return (
        micro_batch.step,
        micro_batch.key,
        micro_batch.leaf.tolist(),
        micro_batch.row.tolist(),
        micro_batch.sample_keys.tolist(),
    )


def loader_of(plan):
    return Loader(
        planning=plan,
        fetch=seen,
        topology=Topology(rank=0, world_size=1),
        workers=Workers(),
        seed=4,
        fixed_step=True,
    )


@settings(max_examples=25, deadline=None)
@given(LOCALITIES, st.booleans(), st.booleans(), st.lists(LOCALITIES, max_size=6), st.data())
def test_data_that_move_between_disks_and_stores_give_the_same_batches(
    begun, finite, several, moves, data
):
    def moved_to(locality):
        if several:
            names = {n: planning(locality, finite=finite, name=n) for n in "ab"}
            return loader_of(FusedPlanning(parts=names, rule=RoundRobin()))
        return loader_of(planning(locality, finite=finite))

    expected = list(islice(moved_to(begun), 60))
    loader, found = moved_to(begun), []
    for locality in moves:
        count = 2 * data.draw(st.integers(0, 8))
        # Whoever takes all of a pass has come to its end.
        found += list(islice(loader, min(count, len(expected) - 1 - len(found) & ~1)))
        state = json.loads(json.dumps(loader.state_dict()))
        loader = moved_to(locality)
        loader.load_state_dict(state)
    found += list(islice(loader, 60 - len(found)))
    assert found[: len(expected)] == expected


@pytest.mark.parametrize("later", ["rows", "shards"])
def test_another_locality_that_is_asked_for_takes_effect_at_the_next_window(later):
    first = loader_of(planning("shards" if later == "rows" else "rows"))
    list(islice(first, 10))
    second = loader_of(planning(later, asked=True))
    with pytest.warns(UserWarning, match="in effect from the next window"):
        second.load_state_dict(first.state_dict())
    kept = loader_of(planning(later))
    kept.load_state_dict(first.state_dict())
    found, as_before = list(islice(second, 400)), list(islice(kept, 400))
    assert found[:4] == as_before[:4]
    assert found != as_before
    assert second.state_dict()["shape"].get("locality", "rows") == later


def leaf_of(**paths):
    return Leaf(key="k", name="talk", type="nemo_tarred", weight=1, paths=paths)


class _Table(NamedTuple):
    uris: list[str]
    sizes: np.ndarray


def pack_of(uris, sizes, *, groups=None, ends=None):
    tar = np.arange(len(uris), dtype=np.int32)
    return SimpleNamespace(
        shards=_Table(list(uris), np.array(sizes, np.int64)),
        tar=tar,
        audio_offset=np.zeros(len(uris), np.int64),
        audio_size=np.array(ends or [0] * len(uris), np.int64),
        groups=groups,
    )


@pytest.mark.parametrize(
    ("uris", "batches", "expected"),
    [
        (["/data/a.tar"], False, "rows"),
        (["s3://b/a.tar"], False, "shards"),
        (["/data/a.tar", "gs://b/a.tar"], False, "shards"),
        (["http://host/a.tar"], False, "shards"),
        (["pipe:cat a.tar"], False, "shards"),
        (["/data/a.tar.gz"], False, "shards"),
        (["/data/a.tgz"], False, "shards"),
        (["/data/cuts.jsonl.gz"], False, "rows"),
        (["ais://b/a.tar"], False, "rows"),
        (["ais://b/a.tar"], True, "rows"),
        (["s3://b/a.tar"], True, "rows"),
        (["http://host/a.tar"], True, "shards"),
    ],
)
def test_objects_of_plain_stores_and_what_has_no_middle_go_by_shards(
    monkeypatch, uris, batches, expected
):
    monkeypatch.setenv("AIS_ENDPOINT", "http://aistore:51080")
    monkeypatch.setenv("USE_AIS_GET_BATCH", str(batches))
    leaves = [leaf_of(manifest=("/data/m.json",), tar=tuple(uris))]
    assert locality_of(leaves, [pack_of([], [])]) == expected


def test_rows_of_tables_go_by_stretches_wherever_they_lie():
    leaves = [leaf_of(table=("/data/a.parquet",))]
    assert locality_of(leaves, [pack_of([], [], groups=object())]) == "shards"


def test_a_shard_larger_than_all_that_may_be_kept_is_an_error_with_both_sizes():
    leaf, uris = leaf_of(), ["s3://b/0.tar", "s3://b/1.tar"]
    with pytest.raises(ConfigError, match=r"999 bytes in all.*talk alone has 1,000.*s3://b/1"):
        cache_notes([leaf], [pack_of(uris, [10, 1000])], "shards", 999)
    assert cache_notes([leaf], [pack_of(uris, [10, 1000])], "shards", 1000) == []
    with plugged_in(MemoryStore()) as store:
        assert cache_notes([leaf], [pack_of(uris, [10, 1000])], "rows", 9) == []
        # Of a server that gives no parts whole copies are kept, whatever the order.
        store.without_ranges.update(uris)
        with pytest.raises(ConfigError, match=r"9 bytes in all"):
            cache_notes([leaf], [pack_of(uris, [10, 1000])], "rows", 9)
    assert cache_notes([leaf], [pack_of(["/data/0.tar"], [10])], "shards", 9) == []


def test_of_what_is_compressed_the_decompressed_size_counts():
    with pytest.raises(ConfigError, match=r"900 bytes in all.*1,000 bytes"):
        cache_notes([leaf_of()], [pack_of(["/d/0.tgz"], [10], ends=[1000])], "rows", 900)
    with pytest.raises(ConfigError, match=r"900 bytes in all.*1,000 bytes"):
        cache_notes([leaf_of()], [pack_of(["pipe:cat 0.tar"], [0], ends=[1000])], "rows", 900)


def test_shards_in_use_at_a_time_that_are_more_than_may_be_kept_are_told():
    packs = [pack_of([f"s3://b/{n}.tar", f"s3://b/{n}b.tar"], [400, 600]) for n in range(3)]
    (note,) = cache_notes([leaf_of()] * 3, packs, "shards", 1700)
    assert "1,800 bytes" in note
    assert "1,700 bytes" in note
    assert cache_notes([leaf_of()] * 3, packs, "shards", 1800) == []


@pytest.mark.parametrize("asked", [False, True])
def test_what_a_machine_may_keep_changes_nothing_on_resume(asked):
    first = loader_of(planning("shards", asked=asked))
    through = iter(first)
    for _ in range(6):
        next(through)
    state = first.state_dict()
    expected = [next(through) for _ in range(60)]
    again = loader_of(planning("shards", asked=asked, cache_bytes=4_000_000))
    fresh = iter(again)
    assert [next(fresh) for _ in range(60)] != expected
    again.load_state_dict(state)
    resumed = iter(again)
    assert [next(resumed) for _ in range(60)] == expected


def test_a_planning_of_its_own_locality_stays_as_it_is():
    plan = planning("rows", asked=True)
    position = planning("shards").start(seed=1, pass_=0, step=0)
    assert plan.as_saved(position) is plan
    kept = replace(plan, keeps_locality=True).as_saved(position)
    assert kept.shape.locality == "shards"
