"""The audio turns of rows: where they lie, how long they are, and what rebuilds take over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import AudioError, IndexFileError, SourceNotFoundError
from playhead.formats import BadRowError, RowAudio, audio_turns, headers
from playhead.index import build_scan
from playhead.index.build_audios import TurnPlaces, Turns, find_turns
from playhead.index.columns import PART_COLUMNS
from playhead.index.pack import open_pack
from support.conversation_leaves import talk_leaf, write_rows
from support.corpus import wav_bytes, write_tar
from support.text_leaves import indexed, read_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack


def plain(audios: Sequence[RowAudio]) -> TurnPlaces:
    """Places of turns none of which lies in an archive."""
    nothing = np.zeros(len(audios), np.int64)
    return TurnPlaces(np.full(len(audios), -1, np.int32), nothing, nothing)


def of_files(rows: Sequence[Sequence[RowAudio]]) -> Turns:
    return find_turns(rows, 3, plain, str)


turn_lists = st.lists(st.lists(st.integers(0, 10**9), max_size=4), max_size=9)


@given(turn_lists)
def test_a_row_is_as_long_as_its_turns_together(lengths: list[list[int]]):
    rows = [[RowAudio(path="a.wav", duration_us=one) for one in row] for row in lengths]
    found = of_files(rows)
    assert found.duration_us.tolist() == [sum(row) for row in lengths]
    assert found.parts.num_parts.tolist() == [len(row) for row in lengths]
    assert found.parts.duration_us.tolist() == [one for row in lengths for one in row]
    assert set(found.parts.field.tolist()) <= {3}
    assert set(found.parts.file.tolist()) <= {-1}


def test_what_no_row_says_is_measured(tmp_path: Path):
    path = str(tmp_path / "a.wav")
    (tmp_path / "a.wav").write_bytes(wav_bytes(0.5, 8000))
    rows = [
        [RowAudio(path=path), RowAudio(path="nowhere.wav", duration_us=7)],
        [],
        [RowAudio(path=path, start=0.125), RowAudio(path=path, start=0.5)],
    ]
    found = of_files(rows)
    assert found.parts.duration_us.tolist() == [500_000, 7, 375_000, 0]
    assert found.duration_us.tolist() == [500_007, 0, 375_000]


def test_rows_without_turns_have_no_parts():
    found = of_files([[], []])
    assert found.duration_us.tolist() == [0, 0]
    assert [len(column) for column in found.parts[1:]] == [0] * 5
    assert of_files([]).duration_us.tolist() == []


def test_a_member_is_measured_in_its_archive(tmp_path: Path):
    data = wav_bytes(0.25)
    (tmp_path / "x.tar").write_bytes(b"#" * 100 + data + b"#" * 100)

    def find(audios: Sequence[RowAudio]) -> TurnPlaces:
        assert [audio.member for audio in audios] == ["m", None]
        return TurnPlaces(np.array([4, -1], np.int32), np.array([100, 0]), np.array([len(data), 0]))

    (tmp_path / "a.wav").write_bytes(wav_bytes(0.5))
    turns = [[RowAudio(member="m"), RowAudio(path=str(tmp_path / "a.wav"))]]
    found = find_turns(turns, 0, find, {4: str(tmp_path / "x.tar")}.__getitem__)
    assert found.parts.duration_us.tolist() == [250_000, 500_000]
    assert found.parts.file.tolist() == [4, -1]


@pytest.mark.parametrize(
    ("audio", "says"),
    [
        (RowAudio(path="late.wav", start=0.51), r"offset 0\.51 s is behind the end of .*late\.wav"),
        (RowAudio(path="gone.wav"), r"gone\.wav"),
        (RowAudio(path="bad.wav"), r"bad\.wav"),
    ],
)
def test_what_cannot_be_measured_is_a_bad_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audio: RowAudio, says: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "late.wav").write_bytes(wav_bytes(0.5))
    (tmp_path / "bad.wav").write_bytes(b"no audio at all")
    with pytest.raises((BadRowError, AudioError, SourceNotFoundError), match=says):
        of_files([[RowAudio(path="late.wav"), audio]])


# Through a pack ------------------------------------------------------------------------------


def row(name: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = {"from": "Assistant", "type": "text", "value": f"of {name}"}
    return {"id": name, "conversations": [*turns, answer], **more}


def spoken(value: str, **more: Any) -> dict[str, Any]:
    return {"from": "User", "type": "audio", "value": value, **more}


def shard(folder: Path, number: int, num_rows: int, *, tarred: bool) -> dict[str, Path]:
    """Rows of none, one, two … turns, the second of each without a length."""
    members, rows = [], []
    for at in range(num_rows):
        turns = []
        for turn in range(at % 4):
            name = f"s{number}/r{at}t{turn}.wav"
            seconds = 0.125 * (1 + turn)
            members.append((name, wav_bytes(seconds, 8000, seed=len(members) + 50 * number)))
            turns.append(spoken(name, **({} if turn == 1 else {"duration": seconds})))
        rows.append(row(f"{number}-{at}", *turns))
    rows.append(row(f"{number}-out", _skipme=True))
    paths = {"manifest": write_rows(folder / f"m_{number}.jsonl", *rows)}
    if tarred:
        paths["tar"] = write_tar(folder / f"a_{number}.tar", members)
        return paths
    for name, data in members:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return paths


def leaf_of_shards(folder: Path, sizes: Sequence[int], *, tarred: bool) -> Leaf:
    made = [shard(folder, number, size, tarred=tarred) for number, size in enumerate(sizes)]
    tars = {"tar": [paths["tar"] for paths in made]} if tarred else {}
    return talk_leaf(
        "multimodal_conversation", manifest=[paths["manifest"] for paths in made], **tars
    )


def _sound(source: str | bytes) -> int:
    return hash(source if isinstance(source, bytes) else Path(source).read_bytes())


def facts(leaf: Leaf, pack: LeafPack) -> list[tuple[str, list[tuple[float | None, int]]]]:
    """Of each sample its id, and of each of its turns the length and how it sounds."""
    return [
        (
            example.id,
            [(turn.duration, _sound(turn.audio.audio.source)) for turn in audio_turns(example)],
        )
        for example in read_all(leaf, pack)
    ]


def parts_of(pack: LeafPack) -> dict[str, list[Any]]:
    parts = pack.parts(np.arange(pack.num_rows))
    return {name: getattr(parts, name).tolist() for name in ("num_parts", *PART_COLUMNS)}


@pytest.mark.parametrize("tarred", [False, True])
@pytest.mark.parametrize("embed", [False, True])
def test_shards_that_are_as_they_were_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tarred: bool, embed: bool
):
    """With all their turns: where they lie, and what was measured."""
    options = {"embed_rows": embed}
    leaf = leaf_of_shards(tmp_path, [5, 3, 6], tarred=tarred)
    before = facts(leaf, indexed(leaf, tmp_path, **options))
    read: list[str] = []
    read_lines = build_scan.read_lines

    def noted(path: str) -> Any:
        read.append(path)
        return read_lines(path)

    monkeypatch.setattr(build_scan, "read_lines", noted)
    # The one in the middle grows: what comes behind it moves.
    shard(tmp_path, 1, 9, tarred=tarred)
    pack = indexed(leaf, tmp_path, **options)
    assert read == [str(tmp_path / "m_1.jsonl")]
    fresh = facts(leaf, indexed(leaf, tmp_path / "fresh", **options))
    assert facts(leaf, pack) == fresh
    assert fresh[:5] + fresh[-6:] == before[:5] + before[-6:]
    assert parts_of(pack) == parts_of(indexed(leaf, tmp_path / "fresh", **options))
    assert pack.dropped == {"_skipme": 3}
    assert pack.duration_us.tolist() == [
        round(sum(seconds or 0 for seconds, _ in turns) * 1e6) for _, turns in fresh
    ]


def test_shards_behind_a_new_one_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder may get an archive in front of the others, which have other places then."""
    read: list[str] = []
    scan_members = build_scan.scan_members

    def noted(task: Any, reader: Any) -> Any:
        read.append(Path(task.pair.manifest).name)
        return scan_members(task, reader)

    monkeypatch.setattr(build_scan, "scan_members", noted)

    def write(name: str, num: int) -> None:
        members = []
        for at in range(num):
            said = [{"from": "human", "value": "<sound>"}, {"from": "gpt", "value": "yes"}]
            data = json.dumps({"id": f"{name}{at}", "conversations": said}).encode()
            members += [
                (f"{at}.json", data),
                (f"{at}.wav", wav_bytes(0.1 * (at + 1), 1000, seed=num)),
            ]
        write_tar(tmp_path / f"web/{name}.tar", members)

    write("b", 3)
    write("c", 2)
    leaf = talk_leaf("share_gpt_webdataset", data_dir=tmp_path / "web")
    known = facts(leaf, indexed(leaf, tmp_path))
    read.clear()
    write("a", 4)
    pack = indexed(leaf, tmp_path)
    assert read == ["a.tar"]
    assert facts(leaf, pack)[4:] == known
    fresh = indexed(leaf, tmp_path / "fresh")
    assert facts(leaf, pack) == facts(leaf, fresh)
    assert parts_of(pack) == parts_of(fresh)
    assert pack.duration_us.tolist() == fresh.duration_us.tolist()


def test_other_shards_in_another_order_are_another_source(tmp_path: Path):
    leaf = leaf_of_shards(tmp_path, [3, 4], tarred=True)
    before = facts(leaf, indexed(leaf, tmp_path))
    turned = talk_leaf(
        leaf.type, **{role: list(reversed(paths)) for role, paths in leaf.paths.items()}
    )
    found = facts(turned, indexed(turned, tmp_path))
    assert found == before[3:] + before[:3]


def test_parts_stay_inside_the_leaf(tmp_path: Path):
    """Every turn of an archive lies inside a file of the shard table; plain files have none."""
    leaf = leaf_of_shards(tmp_path, [7, 7], tarred=True)
    pack = indexed(leaf, tmp_path)
    parts = pack.parts(np.arange(pack.num_rows))
    assert {pack.shards.uris[file] for file in parts.file.tolist()} == set(leaf.paths["tar"])
    sizes = pack.shards.sizes[parts.file]
    assert ((parts.offset >= 512) & (parts.offset + parts.size <= sizes)).all()
    owner = np.repeat(pack.shard, parts.num_parts)
    # An archive follows its manifest.
    assert (parts.file == owner + 1).all()
    plain_leaf = leaf_of_shards(tmp_path / "plain", [7], tarred=False)
    parts = (pack := indexed(plain_leaf, tmp_path / "plain")).parts(np.arange(pack.num_rows))
    assert set(parts.file.tolist()) == {-1}
    assert parts.size.sum() == 0


def test_measured_in_threads_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(headers, "_THREADS", 3)
    rows = []
    for number in range(20):
        (tmp_path / f"{number}.wav").write_bytes(wav_bytes(0.01 * (number + 1), 1000))
        rows.append([RowAudio(path=str(tmp_path / f"{number}.wav"))])
    assert of_files(rows).duration_us.tolist() == [10_000 * (n + 1) for n in range(20)]


@settings(max_examples=25)
@given(
    st.lists(
        st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.booleans()), max_size=3),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_lengths_in_a_pack_are_those_of_what_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[tuple[bool, int, bool]]],
    tarred: bool,
):
    """Declared or measured, from the beginning or later: the index and the sample agree."""
    folder = tmp_path_factory.mktemp("lengths")
    members, written, expected = [], [], []
    for at, turns in enumerate(rows):
        said, lengths = [], []
        for declares, start, long in turns:
            name = f"v{len(members)}.wav"
            seconds = 0.75 if long else 0.5
            members.append((name, wav_bytes(seconds, 1000, seed=len(members))))
            more = {"offset": start / 8} if start else {}
            if declares:
                more["duration"] = 0.125
            lengths.append(0.125 if declares else seconds - start / 8)
            said.append(spoken(name, **more))
        written.append(row(f"{at}", *said))
        expected.append(lengths)
    for name, data in members:
        (folder / name).write_bytes(data)
    tar = {"tar": write_tar(folder / "a.tar", members)} if tarred else {}
    manifest = write_rows(folder / "m.jsonl", *written)
    leaf = talk_leaf("multimodal_conversation", manifest=manifest, **tar)
    pack = indexed(leaf, folder)
    assert pack.duration_us.tolist() == [round(sum(one) * 1e6) for one in expected]
    found = read_all(leaf, pack)
    assert [[turn.duration for turn in audio_turns(one)] for one in found] == expected
    shutil.rmtree(folder)


def test_a_member_that_no_row_wants_is_counted_once(tmp_path: Path):
    members = [(name, wav_bytes(0.1)) for name in ("a.wav", "b.wav", "c.wav")]
    rows = [row("1", spoken("a.wav")), row("2", spoken("a.wav"), spoken("c.wav"))]
    leaf = talk_leaf(
        "multimodal_conversation",
        manifest=write_rows(tmp_path / "m.jsonl", *rows),
        tar=write_tar(tmp_path / "a.tar", members),
    )
    assert indexed(leaf, tmp_path).dropped == {"tar member without a row": 1}
    assert json.loads((tmp_path / "m.jsonl").read_text().splitlines()[0])["id"] == "1"


def test_a_pack_whose_turns_are_not_as_long_as_their_rows_is_damaged(tmp_path: Path):
    path = tmp_path / "v.wav"
    path.write_bytes(wav_bytes(0.5))
    turn = {"from": "User", "type": "audio", "value": "v.wav", "duration": 0.123457}
    row = {"id": "a", "conversations": [turn, {"from": "Assistant", "type": "text", "value": "x"}]}
    leaf = talk_leaf("multimodal_conversation", manifest=[write_rows(tmp_path / "m.jsonl", row)])
    pack = Path(indexed(leaf, tmp_path / "packs").path)
    data = pack.read_bytes()
    length = (123_457).to_bytes(8, "little")
    assert data.count(length) == 2
    place = data.rindex(length)
    pack.write_bytes(data[:place] + (123_456).to_bytes(8, "little") + data[place + 8 :])
    damaged = open_pack(pack)
    with pytest.raises(IndexFileError, match="not as long as their audio"):
        damaged.parts(np.arange(1))
