from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.formats.nemo_shards import pair_shards


def pairs(manifests: list[str], tars: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(p.manifest, p.tars) for p in pair_shards(tuple(manifests), tuple(tars), "leaf")]


def test_one_of_each_is_a_pair_whatever_the_names():
    assert pairs(["x.json"], ["y.tar"]) == [("x.json", ("y.tar",))]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), unique=True, min_size=2))
def test_shards_pair_by_number_and_occurrence(shards: list[tuple[int, int]]):
    """Folders are declared in the same order on both sides, numbers in any order."""
    shards = sorted(shards)
    folders = sorted({folder for folder, _ in shards})
    ordered = [
        s for f in folders for s in random.Random(f).sample(shards, len(shards)) if s[0] == f
    ]
    manifests = [f"b{folder}/manifest_{number}.json" for folder, number in ordered]
    tars = [f"b{folder}/audio_{number}.tar" for folder, number in shards]
    assert pairs(manifests, tars) == [
        (f"b{folder}/manifest_{number}.json", (f"b{folder}/audio_{number}.tar",))
        for folder, number in ordered
    ]


def test_the_last_number_of_the_name_counts():
    assert pairs(
        ["m/sharded_manifest_v2_00.json", "m/sharded_manifest_v2_01.json"],
        ["a/tarred_audio_8k_1.tar", "a/tarred_audio_8k_0.tar"],
    ) == [
        ("m/sharded_manifest_v2_00.json", ("a/tarred_audio_8k_0.tar",)),
        ("m/sharded_manifest_v2_01.json", ("a/tarred_audio_8k_1.tar",)),
    ]


def test_one_manifest_serves_many_tars():
    (pair,) = pair_shards(("all.json",), ("audio_5.tar", "audio_2.tar"), "leaf")
    assert pair.tars == ("audio_5.tar", "audio_2.tar")
    assert pair.numbers == (5, 2)


def test_bucket_manifests_take_the_next_run_of_tars():
    tars = ["b1/audio_0.tar", "b1/audio_1.tar", "b2/audio_0.tar"]
    first, second = pair_shards(("b1/all.json", "b2/all.json"), tuple(tars), "leaf")
    assert (first.tars, first.numbers) == (tuple(tars[:2]), (0, 1))
    assert (second.tars, second.numbers) == (tuple(tars[2:]), (0,))


@pytest.mark.parametrize(
    ("manifests", "tars", "says"),
    [
        (["manifest_0.json", "manifest_1.json"], ["audio_0.tar", "audio_2.tar"], "manifest_1.json"),
        (["manifest_0.json", "manifest_1.json"], ["audio_0.tar", "audio_2.tar"], "audio_2.tar"),
        (["manifest_0.json", "manifest_1.json"], ["audio_0.tar"], "1 of 2 manifests and 1 tars"),
        (["manifest_0.json", "manifest_0.json"], ["audio_0.tar", "audio_1.tar"], "audio_1.tar"),
        (["manifest_0.json", "x.json"], ["audio_0.tar", "audio_1.tar"], "no shard number .*x.json"),
        (["manifest_0.json", "manifest_1.json"], ["a_0.tar", "a_1.tar"], "no shard number .*a_0"),
        (["a.json", "b.json"], ["audio_0.tar", "audio_1.tar"], "2 manifests without shard numbers"),
        (["a.json"], ["audio_0.tar", "other.tar"], "other.tar"),
    ],
)
def test_what_does_not_pair_is_named(manifests: list[str], tars: list[str], says: str):
    with pytest.raises(ConfigError, match=says):
        pairs(manifests, tars)
