from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from playhead.errors import ConfigError, ManifestError
from playhead.index.build_pace import Pace
from playhead.index.build_pack import PackSettings, plan_pack, write_plan
from playhead.index.build_scan import scan
from playhead.index.build_target import Target, leaf_sources
from playhead.index.member_offsets import demand_member_offsets
from playhead.index.pack import LeafPack, Pack, open_pack
from playhead.paths import expand
from support.corpus import tarred_corpus, write_jsonl
from support.leaves import make_leaf

PATHS_ONLY = PackSettings(has_offsets=False)


def build(leaf, path: Path, settings: PackSettings = PATHS_ONLY, old: Pack | None = None):
    sources = leaf_sources(leaf)
    plan = plan_pack(Target(path=path, members=[sources]), old, settings)
    write_plan(plan, map(scan, plan.tasks), Pace(None, ""))
    return open_pack(path).leaf(leaf.key)


def tarred(folder: Path):
    manifest, tar = tarred_corpus(folder, [1.0, 2.0, 3.0], 2)
    return make_leaf("nemo_tarred", manifest=expand(manifest), tar=expand(tar))


def talk(folder: Path, **turn):
    said = {"from": "user", "type": "audio", "value": "a.wav", **turn}
    write_jsonl(folder / "m.jsonl", [{"id": "a", "conversations": [said]}])
    (folder / "a.tar").write_bytes(b"nobody looks into it")
    manifest, tar = [folder / "m.jsonl"], [folder / "a.tar"]
    return make_leaf("multimodal_conversation", manifest=manifest, tar=tar)


@pytest.fixture
def paths_only(tmp_path: Path) -> LeafPack:
    return build(tarred(tmp_path), tmp_path / "a.idxpack")


def test_without_offsets_no_archive_is_opened_and_all_else_is_the_same(tmp_path: Path):
    leaf = tarred(tmp_path)
    whole = build(leaf, tmp_path / "whole.idxpack", PackSettings())
    for path in leaf.paths["tar"]:
        Path(path).write_bytes(bytes(Path(path).stat().st_size))
    bare = build(leaf, tmp_path / "bare.idxpack")
    assert not bare.entry.has_offsets
    assert whole.entry.has_offsets
    assert bare.audio_offset.tolist() == bare.audio_size.tolist() == [0, 0, 0]
    for name, column in whole.columns().items():
        if not name.startswith("audio_"):
            assert column.tolist() == bare.columns()[name].tolist()
    assert bare.shards.sizes.tolist() == whole.shards.sizes.tolist()


def test_turns_name_their_archive_alone(tmp_path: Path):
    leaf = build(talk(tmp_path, duration=2.5), tmp_path / "a.idxpack")
    parts = leaf.parts(np.array([0]))
    assert (parts.file.tolist(), parts.offset.tolist(), parts.size.tolist()) == ([1], [0], [0])
    assert leaf.duration_us.tolist() == [2_500_000]


def test_a_turn_that_does_not_say_how_long_it_is_needs_its_archive(tmp_path: Path):
    with pytest.raises(ManifestError, match=r"how long it is: 'a.wav'.*native-tar-paths-only"):
        build(talk(tmp_path), tmp_path / "a.idxpack")


def test_a_leaf_without_archives_has_all_the_offsets_there_are(tmp_path: Path):
    manifest = write_jsonl(tmp_path / "m.json", [{"audio_filepath": "/a.wav", "duration": 1.0}])
    assert build(make_leaf("nemo", manifest=[manifest]), tmp_path / "a.idxpack").entry.has_offsets


@pytest.mark.parametrize("first", [True, False])
def test_a_pack_of_the_other_kind_is_not_taken_over(tmp_path: Path, first: bool):
    leaf, path = tarred(tmp_path), tmp_path / "a.idxpack"
    build(leaf, path, replace(PATHS_ONLY, has_offsets=first))
    again = build(leaf, path, replace(PATHS_ONLY, has_offsets=not first), open_pack(path))
    assert again.entry.has_offsets is not first
    assert bool(again.audio_size.any()) is not first


def test_reading_by_offsets_is_refused_where_there_are_none(paths_only: LeafPack, monkeypatch):
    monkeypatch.delenv("USE_AIS_GET_BATCH", raising=False)
    with pytest.raises(ConfigError, match=r"no member offsets.*USE_AIS_GET_BATCH=true.*playhead p"):
        demand_member_offsets([paths_only])


def test_people_are_told_once_of_a_pack_that_needs_batch_requests(
    paths_only: LeafPack, monkeypatch
):
    monkeypatch.setenv("USE_AIS_GET_BATCH", "True")
    (note,) = demand_member_offsets([paths_only, paths_only])
    assert "no member offsets" in note
