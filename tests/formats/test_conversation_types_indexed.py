"""Conversations from files on disk through a pack to samples."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ManifestError
from playhead.formats import audio_turns
from support.conversation_leaves import audio_of, read_talk, said, talk_leaf, write_rows
from support.corpus import tone, wav_bytes, write_tar
from support.text_leaves import indexed

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.formats import Example

TALK, SHARE, WEB = "multimodal_conversation", "share_gpt", "share_gpt_webdataset"


def spoken(value: str, **more: Any) -> dict[str, Any]:
    return {"from": "User", "type": "audio", "value": value, **more}


def row(id_: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = {"from": "Assistant", "type": "text", "value": f"of {id_}"}
    return {"id": id_, "conversations": [*turns, answer], **more}


def share(id_: str, value: str, **more: Any) -> dict[str, Any]:
    said_ = [{"from": "human", "value": value}, {"from": "gpt", "value": f"of {id_}"}]
    return {"id": id_, "conversations": said_, **more}


def samples(example: Example) -> list[np.ndarray]:
    """What is heard in each audio turn."""
    heard: list[np.ndarray] = []
    for audio in audio_of(example):
        source = io.BytesIO(audio.source) if isinstance(audio.source, bytes) else audio.source
        data, rate = sf.read(source, dtype="int16")
        start = round(audio.start * rate)
        stop = None if audio.duration is None else start + round(audio.duration * rate)
        heard.append(data[start:stop])
    return heard


def voice(seed: int, seconds: float = 0.5) -> np.ndarray:
    return tone(seconds, seed=seed)[:, 0]


def rows_of_files(folder: Path) -> list[dict[str, Any]]:
    """Rows of all kinds, and their files."""
    for number in range(4):
        path = folder / f"talk/v{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wav_bytes(0.5, seed=number))
    return [
        row("one", spoken("talk/v0.wav", duration=0.5)),
        row("none"),
        row("two", spoken("talk/v1.wav", offset=0.125, duration=0.25), spoken("talk/v2.wav")),
        row("late", spoken("talk/v3.wav", offset=0.375)),
    ]


EXPECTED_SECONDS = [[0.5], [], [0.25, 0.5], [0.125]]


def check(got: list[Example]) -> None:
    assert [example.id for example in got] == ["one", "none", "two", "late"]
    assert [said(example)[:-1] for example in got] == [
        [("user", "<v0>")],
        [],
        [("user", "<v1_0.125_0.250>"), ("user", "<v2>")],
        [("user", "<v3_0.375_0.125>")],
    ]
    for example, expected in zip(got, EXPECTED_SECONDS, strict=True):
        assert [turn.duration for turn in audio_turns(example)] == expected
    heard = [one for example in got for one in samples(example)]
    for found, (seed, start, stop) in zip(
        heard, [(0, 0, 8000), (1, 2000, 6000), (2, 0, 8000), (3, 6000, 8000)], strict=True
    ):
        np.testing.assert_array_equal(found, voice(seed)[start:stop])


def test_files_beside_the_manifest(tmp_path: Path):
    leaf = talk_leaf(TALK, manifest=write_rows(tmp_path / "m.jsonl", *rows_of_files(tmp_path)))
    pack = indexed(leaf, tmp_path)
    assert pack.duration_us.tolist() == [500_000, 0, 750_000, 125_000]
    check(read_talk(leaf, tmp_path))


def test_without_audio_lengths_are_the_same(tmp_path: Path):
    leaf = talk_leaf(TALK, manifest=write_rows(tmp_path / "m.jsonl", *rows_of_files(tmp_path)))
    got = read_talk(leaf, tmp_path, with_audio=False)
    assert [[turn.duration for turn in audio_turns(one)] for one in got] == EXPECTED_SECONDS


FORMATS = {
    "ustar": tarfile.USTAR_FORMAT,
    "gnu": tarfile.GNU_FORMAT,
    "pax": tarfile.PAX_FORMAT,
}


def make_tar(folder: Path, how: str, names: list[str]) -> Path:
    if how == "GNU tar":
        if shutil.which("tar") is None:
            pytest.skip("there is no tar")
        command = ["tar", "-C", folder, "-cf", folder / "audio.tar", *names]
        subprocess.run(command, check=True, timeout=60)
        return folder / "audio.tar"
    members = [(name, (folder / name).read_bytes()) for name in names]
    return write_tar(folder / "audio.tar", members, FORMATS[how])


@pytest.mark.parametrize("how", [*FORMATS, "GNU tar"])
@pytest.mark.parametrize("embed", [False, True])
def test_members_in_any_order(tmp_path: Path, how: str, embed: bool):
    manifest = write_rows(tmp_path / "m.jsonl", *rows_of_files(tmp_path))
    names = [f"./talk/v{n}.wav" if how == "GNU tar" else f"talk/v{n}.wav" for n in (3, 1, 0, 2)]
    leaf = talk_leaf(TALK, manifest=manifest, tar=make_tar(tmp_path, how, names))
    check(read_talk(leaf, tmp_path, embed_rows=embed))
    shutil.rmtree(tmp_path / "talk")
    check(read_talk(leaf, tmp_path, embed_rows=embed))


def test_names_of_any_length_and_alphabet(tmp_path: Path):
    names = ["ü/" + 30 * "gespräch/" + "v.wav", "二.wav", "a b.wav"]
    members = [(name, wav_bytes(0.5, seed=seed)) for seed, name in enumerate(names)]
    tar = write_tar(tmp_path / "a.tar", members, tarfile.PAX_FORMAT)
    manifest = write_rows(tmp_path / "m.jsonl", row("a", *map(spoken, reversed(names))))
    (got,) = read_talk(talk_leaf(TALK, manifest=manifest, tar=tar), tmp_path)
    for found, seed in zip(samples(got), (2, 1, 0), strict=True):
        np.testing.assert_array_equal(found, voice(seed))
    assert said(got)[:-1] == [("user", "<a b>"), ("user", "<二>"), ("user", "<v>")]


def test_archives_as_lhotse_writes_them(tmp_path: Path):
    """A JSON behind every audio is no turn's, and is counted."""
    members = [("v0.wav", wav_bytes(0.5, seed=0)), ("v0.json", b"{}")]
    manifest = write_rows(tmp_path / "m.jsonl", row("a", spoken("v0.wav")))
    leaf = talk_leaf(TALK, manifest=manifest, tar=write_tar(tmp_path / "a.tar", members))
    assert indexed(leaf, tmp_path).dropped == {"tar member without a row": 1}


@pytest.mark.parametrize(
    ("turn", "error", "says"),
    [
        (spoken("other.wav", duration=1), ManifestError, "other.wav"),
        (spoken("other.wav"), ManifestError, "other.wav"),
        (spoken("v.wav", offset=9), ManifestError, r"offset 9\.0 s is behind the end of"),
        (spoken("v.wav", duration=-1), ManifestError, r"duration is -1\.0 seconds"),
        (spoken("broken.wav"), ManifestError, "broken|its audio"),
        (spoken("v.wav") | {"type": "video"}, ManifestError, "turn 1 of the row has the type"),
    ],
)
@pytest.mark.parametrize("tarred", [False, True])
def test_a_bad_turn_is_a_bad_row(
    tmp_path: Path, turn: dict[str, Any], error: type[Exception], says: str, tarred: bool
):
    members = [("v.wav", wav_bytes(0.5)), ("broken.wav", b"no audio at all" * 9)]
    for name, data in members:
        (tmp_path / name).write_bytes(data)
    bad = row("bad", spoken("v.wav"), turn)
    if turn["type"] == "video":
        bad = row("bad", turn)
    manifest = write_rows(tmp_path / "m.jsonl", row("a", spoken("v.wav")), bad, row("b"))
    tar = {"tar": write_tar(tmp_path / "a.tar", members)} if tarred else {}
    leaf = talk_leaf(TALK, manifest=manifest, **tar)
    if not tarred and turn.get("duration") == 1:
        # A file that is not there is noticed when it is read.
        assert indexed(leaf, tmp_path).num_rows == 3
        return
    with pytest.raises(error, match=f"(?is)({says}).*m.jsonl:2.*skip-bad-rows"):
        indexed(leaf, tmp_path)
    got = read_talk(leaf, tmp_path, skip_bad_rows=True)
    assert [example.id for example in got] == ["a", "b"]


def test_shards_are_paired(tmp_path: Path):
    manifests, tars = [], []
    for shard in range(3):
        data = wav_bytes(0.5, seed=shard)
        # The same name in every shard, so that a wrong pair would be heard.
        tars.append(write_tar(tmp_path / f"audio_{shard}.tar", [("v.wav", data)]))
        path = tmp_path / f"manifest_{shard}.jsonl"
        manifests.append(write_rows(path, row(f"{shard}", spoken("v.wav"))))
    got = read_talk(talk_leaf(TALK, manifest=manifests, tar=tars[::-1]), tmp_path)
    assert [example.id for example in got] == ["0", "1", "2"]
    for shard, example in enumerate(got):
        np.testing.assert_array_equal(samples(example)[0], voice(shard))


def test_share_gpt_from_files(tmp_path: Path):
    rows_of_files(tmp_path)
    names = [f"talk/v{number}.wav" for number in range(4)]
    manifest = write_rows(
        tmp_path / "m.jsonl",
        share("a", "<sound> hi", sound=names[0]),
        share("b", "one <sound> two <speech>", speech=names[1:3]),
        share("c", "no audio", sound="not/there.wav"),
        share("d", "<sound>", _skipme=1),
    )
    leaf = talk_leaf(SHARE, manifest=manifest)
    got = read_talk(leaf, tmp_path)
    assert [said(example)[:-1] for example in got] == [
        [("user", "<v0>"), ("user", "hi")],
        [("user", "one"), ("user", "<v1>"), ("user", "two"), ("user", "<v2>")],
        [("user", "no audio")],
    ]
    assert indexed(leaf, tmp_path).dropped == {"_skipme": 1}
    assert indexed(leaf, tmp_path).duration_us.tolist() == [500_000, 1_000_000, 0]
    for found, seed in zip((one for of in got for one in samples(of)), range(3), strict=True):
        np.testing.assert_array_equal(found, voice(seed))


def test_share_gpt_below_another_root(tmp_path: Path):
    rows_of_files(tmp_path / "mirror/old/site")
    of = [
        share("a", "<sound>", sound="/gone/site/talk/v0.wav"),
        share("b", "<sound>", sound="talk/v1.wav"),
    ]
    own = {
        "audio_path_prefix_map": {"/gone": f"{tmp_path}/mirror/old"},
        "audio_root": f"{tmp_path}/mirror/old/site",
    }
    got = read_talk(
        talk_leaf(SHARE, own=own, manifest=write_rows(tmp_path / "m.jsonl", *of)), tmp_path
    )
    for seed, example in enumerate(got):
        np.testing.assert_array_equal(samples(example)[0], voice(seed))


def collection(folder: Path, of: list[dict[str, Any]], **own: Any) -> list[Example]:
    """Two manifests and three tars, each with a voice or two."""
    tars = [
        write_tar(
            folder / f"part-{tar}.tar",
            [(f"d/v{n}.wav", wav_bytes(0.5, seed=n)) for n in range(2 * tar, 2 * tar + 2)],
        )
        for tar in range(3)
    ]
    manifests = [write_rows(folder / f"m{number}.jsonl", *of[number::2]) for number in range(2)]
    own = {"tar_lookup_mode": "collection", "tar_routing_filepath": "no.sgroute", **own}
    return read_talk(talk_leaf(SHARE, own=own, manifest=manifests, tar=tars), folder)


def test_share_gpt_from_a_collection(tmp_path: Path):
    of = [share(f"{n}", "<sound>", sound=f"d/v{n}.wav") for n in (5, 0, 2, 3)]
    got = collection(tmp_path, of)
    assert [example.id for example in got] == ["5", "2", "0", "3"]
    for example in got:
        np.testing.assert_array_equal(samples(example)[0], voice(int(example.id)))


def test_a_collection_knows_files_by_their_last_name(tmp_path: Path):
    of = [share(f"{n}", "<sound>", sound=f"/old/site/v{n}.wav") for n in range(4)]
    for example in collection(tmp_path, of):
        np.testing.assert_array_equal(samples(example)[0], voice(int(example.id)))


def test_a_collection_without_the_member(tmp_path: Path):
    with pytest.raises(ManifestError, match=r"v9\.wav.*m0.jsonl:1"):
        collection(tmp_path, [share("a", "<sound>", sound="d/v9.wav")])


def test_lines_that_are_excluded(tmp_path: Path):
    of = [share(str(n), "hi") for n in range(6)]
    manifests = [
        write_rows(tmp_path / "a.jsonl", *of[:3]),
        write_rows(tmp_path / "b.jsonl", *of[3:]),
    ]
    with manifests[1].open("a") as file:
        file.write("this is no row\n")
    own = {"excluded_manifest_lines": [7, 2, 4], "approved_exclusion_audit_sha256": "0" * 64}
    leaf = talk_leaf(SHARE, own=own, manifest=manifests)
    assert [example.id for example in read_talk(leaf, tmp_path)] == ["0", "2", "4", "5"]
    assert indexed(leaf, tmp_path).dropped == {"excluded line": 3}
    other = talk_leaf(SHARE, own={**own, "excluded_manifest_lines": [7]}, manifest=manifests)
    assert len(read_talk(other, tmp_path)) == 6


def web_tar(path: Path, members: list[list[tuple[str, bytes]]]) -> Path:
    return write_tar(path, [member for sample in members for member in sample])


def web_sample(
    number: int, *, audio_first: bool, indent: int | None = None, **more: Any
) -> list[tuple[str, bytes]]:
    of = {**share(f"w{number}", "hi <sound>"), **more}
    text = json.dumps({key: value for key, value in of.items() if value is not None}, indent=indent)
    members = [(f"{number}.json", text.encode()), (f"{number}.wav", wav_bytes(0.5, seed=number))]
    return members[::-1] if audio_first else members


@pytest.mark.parametrize("audio_first", [False, True])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("embed", [False, True])
def test_webdatasets(
    tmp_path: Path, audio_first: bool, version: int, indent: int | None, embed: bool
):
    for shard in range(2):
        some = [
            web_sample(n, audio_first=audio_first, indent=indent)
            for n in range(3 * shard, 3 * shard + 3)
        ]
        web_tar(tmp_path / f"data/{shard}/part.tar", some)
    shards = [{"url": f"{shard}/part.tar"} for shard in (1, 0)]
    (tmp_path / "data/wids-meta.json").write_text(json.dumps({"shardlist": shards}))
    own = {"wds_sample_index_version": version}
    leaf = talk_leaf(WEB, own=own, data_dir=tmp_path / "data")
    got = read_talk(leaf, tmp_path, embed_rows=embed)
    assert [example.id for example in got] == ["w3", "w4", "w5", "w0", "w1", "w2"]
    for example in got:
        assert said(example)[:2] == [("user", "hi"), ("user", f"<{example.id}>")]
        np.testing.assert_array_equal(samples(example)[0], voice(int(example.id[1:])))
    pack = indexed(leaf, tmp_path, embed_rows=embed)
    assert pack.duration_us.tolist() == [500_000] * 6


@pytest.mark.parametrize("version", [1, 2])
def test_samples_of_a_webdataset_without_an_id(tmp_path: Path, version: int):
    web_tar(tmp_path / "data/part.tar", [web_sample(n, audio_first=True, id=None) for n in (4, 2)])
    leaf = talk_leaf(WEB, own={"wds_sample_index_version": version}, data_dir=tmp_path / "data")
    assert [example.id for example in read_talk(leaf, tmp_path)] == ["4", "2"]


def test_webdataset_samples_of_several_audios(tmp_path: Path):
    audios = [(f"a.{n}.wav", wav_bytes(0.5, seed=n)) for n in range(3)]
    of = share("a", "<sound> <sound>", sound=["/x/a.2.wav", "a.0.wav"])
    text = [("b.json", json.dumps(share("b", "just text")).encode())]
    late = share("c", "<sound>")
    late["conversations"][0] |= {"offset": 0.25}
    last = [
        ("c.flac", wav_bytes(0.5, seed=7, format="FLAC")),
        ("c.json", json.dumps(late).encode()),
    ]
    web_tar(
        tmp_path / "data/part.tar",
        [[audios[0], ("a.json", json.dumps(of).encode()), *audios[1:]], text, last],
    )
    leaf = talk_leaf(WEB, own={"wds_sample_index_version": 2}, data_dir=tmp_path / "data")
    got = read_talk(leaf, tmp_path)
    assert [example.id for example in got] == ["a", "b", "c"]
    first, second = samples(got[0])
    np.testing.assert_array_equal(first, voice(2))
    np.testing.assert_array_equal(second, voice(0))
    assert samples(got[1]) == []
    np.testing.assert_array_equal(samples(got[2])[0], voice(7)[4000:])
    assert said(got[2])[0] == ("user", "<c_0.250_0.250>")


def test_a_webdataset_whose_members_do_not_group(tmp_path: Path):
    web_tar(tmp_path / "data/part.tar", [web_sample(0, audio_first=False)[:1]])
    with pytest.raises(ManifestError, match=r"(?s)no pairs.*part\.tar.*wds_sample_index_version"):
        indexed(talk_leaf(WEB, data_dir=tmp_path / "data"), tmp_path)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "Expected `object`|not what it should be"),
        (b"  \n ", "JSON"),
        (b'{"id": "a"}', "no turns"),
        (json.dumps(share("a", "<sound><sound>", sound=["x", "y"])).encode(), "both the member"),
    ],
)
def test_bad_rows_of_a_webdataset(tmp_path: Path, bad: bytes, says: str):
    good = [web_sample(n, audio_first=False) for n in (0, 2)]
    broken = [("1.json", bad), ("1.wav", wav_bytes(0.5))]
    web_tar(tmp_path / "data/part.tar", [good[0], broken, good[1]])
    leaf = talk_leaf(WEB, data_dir=tmp_path / "data")
    with pytest.raises(ManifestError, match=rf"(?is)({says}).*part\.tar/1\.json"):
        indexed(leaf, tmp_path)
    got = read_talk(leaf, tmp_path, skip_bad_rows=True)
    assert [example.id for example in got] == ["w0", "w2"]


TURN = st.tuples(st.integers(0, 3), st.sampled_from([None, 0.0, 0.125]), st.booleans())


@settings(deadline=None, max_examples=25)
@given(st.lists(st.lists(TURN, max_size=3), min_size=1, max_size=5), st.booleans())
def test_any_conversation_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    conversations: list[list[tuple[int, float | None, bool]]],
    tarred: bool,
):
    folder = tmp_path_factory.mktemp("talk")
    rows_of_files(folder)
    rows = [
        row(
            str(number),
            *(
                spoken(f"talk/v{seed}.wav", offset=offset, duration=0.25 if has_length else None)
                for seed, offset, has_length in turns
            ),
        )
        for number, turns in enumerate(conversations)
    ]
    manifest = write_rows(folder / "m.jsonl", *rows)
    names = [f"talk/v{number}.wav" for number in range(4)]
    tar = {"tar": make_tar(folder, "pax", names)} if tarred else {}
    got = read_talk(talk_leaf(TALK, manifest=manifest, **tar), folder)
    assert [example.id for example in got] == [str(number) for number in range(len(rows))]
    for example, turns in zip(got, conversations, strict=True):
        expected = []
        for seed, offset, has_length in turns:
            start = round((offset or 0) * 16000)
            expected.append(voice(seed)[start : start + 4000 if has_length else None])
        found = samples(example)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        lengths = [len(one) / 16000 for one in expected]
        assert [turn.duration for turn in audio_turns(example)] == lengths
