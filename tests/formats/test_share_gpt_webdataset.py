from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from playhead.errors import ConfigError
from playhead.formats import BadRowError, Part, Place, SourcePair
from playhead.formats.share_gpt_webdataset import ShareGptWebdataset
from support.conversation_leaves import said, talk_leaf
from support.text_leaves import json_lines

if TYPE_CHECKING:
    from pathlib import Path

TYPE = "share_gpt_webdataset"
TAR = "/data/0/part-3.tar"


def leaf(version: Any = 1, tags: dict[str, Any] | None = None, **own: Any):
    own["wds_sample_index_version"] = version
    return talk_leaf(TYPE, own=own, tags=tags, data_dir="/data")


def row(value: str = "<sound>", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": value}, {"from": "gpt", "value": "yes"}]
    return {"id": "web-1", "conversations": turns, **more}


def columns(*rows: Any):
    return ShareGptWebdataset().columns(leaf(), SourcePair(manifest=TAR), json_lines(*rows))


def example(of: dict[str, Any], member: str | None = None, version: int = 1, **more: Any):
    place = Place(leaf="talk", shard=TAR, row=7, byte=512, member=member)
    part = Part("audio", b"x", TAR, 1024, 500_000)
    return ShareGptWebdataset().example(
        leaf(version, **more), place, json.dumps(of).encode(), [part]
    )


def test_audio_is_named_or_beside_the_row():
    got = columns(
        row(),
        row("no audio"),
        row(sound="a/v.wav"),
        row("<sound><sound>", speech=["v.wav", "w.wav"]),
        row("<sound>a<speech>"),
        row(_skipme=1),
    )
    assert got.audios is not None
    assert [[one.member for one in turns] for turns in got.audios] == [
        [None],
        [],
        ["a/v.wav"],
        ["v.wav", "w.wav"],
        [None, None],
    ]
    assert got.kept.tolist() == [0, 1, 2, 3, 4]
    assert got.dropped == {"_skipme": 1}


@pytest.mark.parametrize(
    "bad",
    [
        row("<sound><sound><sound>", sound=["a", "b"]),
        row() | {"conversations": []},
        row() | {"conversations": [{"from": "human"}]},
        row(sound=[""]),
        row() | {"conversations": [{"from": "human", "value": "<sound>", "offset": -1}]},
        row() | {"conversations": [{"from": "human", "value": "<sound>", "duration": 1e12}]},
        {"id": "a"},
    ],
)
def test_bad_rows_are_refused(bad: dict[str, Any]):
    with pytest.raises(BadRowError):
        columns(row(), bad)


def test_a_row_becomes_turns():
    got = example(row("hi <sound>", sound="d/v.flac", lang="de"), tags={"system_prompt": "be kind"})
    assert (got.id, got.kind) == ("web-1", "conversation")
    assert said(got) == [
        ("system", "be kind"),
        ("user", "hi"),
        ("user", "<v>"),
        ("assistant", "yes"),
    ]
    assert got.custom == {"lang": "de", "sound": "d/v.flac", "system_prompt": "be kind"}
    audio = got.turns[2].audio
    assert audio is not None
    assert audio.audio is not None
    assert (audio.audio.source, audio.place.member) == (b"x", f"{TAR}/d/v.flac")
    assert got.turns[2].duration == 0.5


@pytest.mark.parametrize(
    ("member", "version", "called"),
    [
        (f"{TAR}/d.0/talk.en.json", 1, "talk.en"),
        (f"{TAR}/d.0/talk.en.json", 2, "d.0/talk"),
        (f"{TAR}/./talk.json", 2, "talk"),
        # The archive is no member.
        (TAR, 1, "part-3-000000000007"),
        (None, 2, "part-3-000000000007"),
    ],
)
def test_rows_without_an_id(member: str | None, version: int, called: str):
    of = row()
    del of["id"]
    got = example(of, member, version)
    assert got.id == called
    # Audio that nobody names is called like its conversation.
    assert said(got)[0] == ("user", f"<{called}>")


def test_the_version_decides_what_a_sample_is():
    names = ["a.json", "a.1.wav", "a.2.wav"]
    assert len(list(ShareGptWebdataset().samples(leaf(2), names))) == 1
    with pytest.raises(BadRowError, match="no pairs"):
        list(ShareGptWebdataset().samples(leaf(1), names))
    assert ShareGptWebdataset().bind(leaf(2), ["a.2.wav"], names[1:]) == [1]


@pytest.mark.parametrize("version", [0, 3, "2", None, True, 1.5])
def test_versions_that_do_not_exist(version: Any):
    with pytest.raises(ConfigError, match="wds_sample_index_version is"):
        ShareGptWebdataset().sources(leaf(version))


def test_every_shard_is_a_source(tmp_path: Path):
    (tmp_path / "d").mkdir()
    for name in ("b.tar", "d/a.tar"):
        (tmp_path / name).touch()
    of = talk_leaf(TYPE, data_dir=[tmp_path, tmp_path / "d"])
    assert [pair.files for pair in ShareGptWebdataset().sources(of)] == [
        (f"{tmp_path}/b.tar",),
        (f"{tmp_path}/d/a.tar",),
        (f"{tmp_path}/d/a.tar",),
    ]
