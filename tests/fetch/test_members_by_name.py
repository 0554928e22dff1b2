"""Members of archives on AIStore come by name, the same bytes as by their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhead.errors import ConfigError, StaleIndexError
from playhead.fetch.access_mode import AccessMode, access_mode
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.index.build_pace import Pace
from playhead.index.build_pack import PackSettings, plan_pack, write_plan
from playhead.index.build_scan import scan
from playhead.index.build_target import Target, leaf_sources
from playhead.index.pack import open_pack
from playhead.paths import expand
from support.conversation_leaves import audio_of, talk_leaf
from support.corpus import tarred_corpus, wav_bytes, write_jsonl, write_tar
from support.fetching import leaf_of, micro_batch

pytest.importorskip("aistore")

DURATIONS = [0.1 + 0.01 * number for number in range(9)]
BOTH = [AccessMode.BATCH, AccessMode.INDIVIDUAL]


def pack_of(leaf, path: Path, *, has_offsets: bool):
    plan = plan_pack(
        Target(path=path, members=[leaf_sources(leaf)]), None, PackSettings(has_offsets=has_offsets)
    )
    write_plan(plan, map(scan, plan.tasks), Pace(None, ""))
    return open_pack(path).leaf(leaf.key)


def read(leaves, packs, access, rows, of=0):
    reader = Reader(leaves, [pack.ref for pack in packs], Timings(), access_mode=access)
    return reader.read(micro_batch(rows, of), with_audio=True)


@pytest.fixture(autouse=True)
def _batches(ais, monkeypatch):
    monkeypatch.setenv("USE_AIS_GET_BATCH", "true")


def nemo(folder: Path, bucket: str | None, **facts):
    manifest, tar = tarred_corpus(folder, DURATIONS, 3)
    tars = expand(tar)
    if bucket is not None:
        tars = [f"ais://{bucket}/{Path(path).name}" for path in tars]
    return leaf_of("nemo_tarred", manifest=expand(manifest), tar=tars, **facts)


def talk(folder: Path, bucket: str | None, type_: str):
    """Three conversations, some turns of which are stretches of one member."""
    write_tar(folder / "talk.tar", [(f"d/{i}.wav", wav_bytes(0.3, seed=i)) for i in range(4)])
    said = [(0, 0.0), (1, 0.0), (1, 0.1)], [(3, 0.0)], [(2, 0.1), (0, 0.0)]
    if type_ == "share_gpt":
        rows = [
            {
                "id": f"talk{number}",
                "sound": [f"d/{member}.wav" for member, _ in turns],
                "conversations": [
                    {"from": "human", "value": "<sound>", "duration": 0.15, "offset": start}
                    for _, start in turns
                ],
            }
            for number, turns in enumerate(said)
        ]
    else:
        rows = [
            {
                "id": f"talk{number}",
                "conversations": [
                    {"from": "user", "type": "text", "value": "what is that?"},
                    *(
                        {"from": "user", "type": "audio", "value": f"d/{member}.wav"}
                        | {"duration": 0.15, "offset": start}
                        for member, start in turns
                    ),
                ],
            }
            for number, turns in enumerate(said)
        ]
    manifest = write_jsonl(folder / "talk.jsonl", rows)
    tar = f"ais://{bucket}/talk.tar" if bucket else str(folder / "talk.tar")
    return talk_leaf(type_, manifest=[manifest], tar=[tar])


@pytest.mark.parametrize("access", BOTH)
@pytest.mark.parametrize("has_offsets", [True, False])
def test_samples_are_the_same_as_from_files(ais, tmp_path, access, has_offsets):
    near = nemo(tmp_path, None)
    ais.load("nemo", tmp_path)
    far = nemo(tmp_path, "nemo")
    packs = [
        pack_of(near, tmp_path / "near.idxpack", has_offsets=True),
        pack_of(far, tmp_path / "far.idxpack", has_offsets=has_offsets),
    ]
    rows = [4, 0, 8, 4, 2]
    ais.heal()
    expected = read([near, far], packs, access, rows, of=0)
    assert ais.counts() == {}
    found = read([near, far], packs, access, rows, of=1)
    assert [one.audio.source for one in found] == [one.audio.source for one in expected]
    assert [one.id for one in found] == [one.id for one in expected]
    assert [one.place.member.rpartition("/")[2] for one in found] == [one.id for one in expected]
    if access is AccessMode.BATCH:
        assert ais.counts() == {"proxy batch": 1, "batch": 1, "batch entries": 4}
    else:
        assert set(ais.counts()) == {"get"}


@pytest.mark.parametrize("access", BOTH)
@pytest.mark.parametrize("has_offsets", [True, False])
@pytest.mark.parametrize("type_", ["multimodal_conversation", "share_gpt"])
def test_turns_are_the_same_as_from_files(ais, tmp_path, access, has_offsets, type_):
    near = talk(tmp_path, None, type_)
    ais.load("talk", tmp_path)
    far = talk(tmp_path, "talk", type_)
    packs = [
        pack_of(near, tmp_path / "near.idxpack", has_offsets=True),
        pack_of(far, tmp_path / "far.idxpack", has_offsets=has_offsets),
    ]
    ais.heal()
    expected = read([near, far], packs, access, [2, 0, 1], of=0)
    found = read([near, far], packs, access, [2, 0, 1], of=1)
    for one, other in zip(found, expected, strict=True):
        assert audio_of(one) == audio_of(other)
        assert one.id == other.id
    if access is AccessMode.BATCH:
        # Stretches of one member are one request.
        assert ais.counts()["batch entries"] == 4


def test_leaves_of_disks_and_of_aistore_share_a_batch(ais, tmp_path):
    near = nemo(tmp_path, None)
    ais.load("mixed", tmp_path)
    far, spoken = nemo(tmp_path, "mixed"), talk(tmp_path, "mixed", "multimodal_conversation")
    ais.load("mixed", tmp_path)
    leaves = [near, far, spoken]
    packs = [
        pack_of(leaf, tmp_path / f"{number}.idxpack", has_offsets=number == 0)
        for number, leaf in enumerate(leaves)
    ]
    ais.heal()
    found = read(leaves, packs, AccessMode.BATCH, [0, 0, 0, 5, 1], of=[1, 0, 2, 1, 2])
    assert found[0].audio.source == found[1].audio.source
    assert ais.counts()["batch"] == 1


def test_by_places_nothing_is_asked_for_by_name(ais, tmp_path, monkeypatch):
    leaf = nemo(tmp_path, None)
    pack = pack_of(leaf, tmp_path / "a.idxpack", has_offsets=True)
    read([leaf], [pack], AccessMode.RANGES, [0, 1])
    assert ais.counts() == {}
    monkeypatch.delenv("USE_AIS_GET_BATCH")
    bare = pack_of(leaf, tmp_path / "b.idxpack", has_offsets=False)
    with pytest.raises(ConfigError, match=r"no member offsets.*USE_AIS_GET_BATCH=true"):
        read([leaf], [bare], AccessMode.RANGES, [0])


def test_a_member_of_another_size_is_not_the_one_that_was_indexed(ais, tmp_path):
    leaf = nemo(tmp_path, None)
    ais.load("stale", tmp_path)
    leaf = nemo(tmp_path, "stale")
    pack = pack_of(leaf, tmp_path / "a.idxpack", has_offsets=True)
    write_tar(tmp_path / "audio_0.tar", [("utt00000.wav", b"other")])
    ais.load("stale", tmp_path)
    with pytest.raises(StaleIndexError, match=r"has 5 bytes and had \d+ .*utt00000.wav"):
        read([leaf], [pack], AccessMode.BATCH, [0])


def test_a_member_that_is_nowhere_is_named(ais, tmp_path):
    leaf = nemo(tmp_path, None)
    ais.load("gone", tmp_path)
    leaf = nemo(tmp_path, "gone")
    pack = pack_of(leaf, tmp_path / "a.idxpack", has_offsets=False)
    write_tar(tmp_path / "audio_0.tar", [("else.wav", b"other")])
    ais.load("gone", tmp_path)
    found = read([leaf], [pack], AccessMode.BATCH, [0, 1, 3])
    assert [str(one.missing).rpartition("/")[2][:12] for one in found[:2]] == [
        "utt00000.wav",
        "utt00003.wav",
    ]
    assert found[2].missing is None


def test_a_row_that_changed_is_noticed_before_its_member_is_asked_for(ais, tmp_path):
    leaf = nemo(tmp_path, None)
    ais.load("rows", tmp_path)
    leaf = nemo(tmp_path, "rows")
    pack = pack_of(leaf, tmp_path / "a.idxpack", has_offsets=False)
    manifest = Path(leaf.paths["manifest"][0])
    manifest.write_bytes(manifest.read_bytes().replace(b"utt00000.wav", b"utt00009.wav"))
    ais.heal()
    with pytest.raises(StaleIndexError, match="row is not the one"):
        read([leaf], [pack], AccessMode.BATCH, [0])
    assert ais.counts().get("batch", 0) == 0


@pytest.mark.parametrize(
    ("batch", "single", "mode"),
    [
        (None, None, AccessMode.RANGES),
        (None, "true", AccessMode.RANGES),
        ("True", None, AccessMode.BATCH),
        ("TRUE", "true", AccessMode.INDIVIDUAL),
        ("1", None, AccessMode.RANGES),
    ],
)
def test_two_variables_say_how(monkeypatch, batch, single, mode):
    for name, value in (("USE_AIS_GET_BATCH", batch), ("USE_AIS_INDIVIDUAL_GETS", single)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert access_mode() is mode
