"""What belongs to rows and lies elsewhere: what is asked for, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from playhead.errors import StaleIndexError
from playhead.fetch.parts import PartRequest, gathered, part_requests
from playhead.fetch.reader import Reader
from playhead.fetch.timings import Timings
from playhead.formats import audio_turns
from support.conversation_leaves import talk_leaf, write_rows
from support.corpus import nemo_corpus, wav_bytes, write_tar
from support.fetching import leaf_of, micro_batch
from support.text_leaves import indexed, text_leaf


def row(name: str, *values: str) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [
        {"from": "User", "type": "audio", "value": value, "duration": 0.25} for value in values
    ]
    answer = {"from": "Assistant", "type": "text", "value": "yes"}
    return {"id": name, "conversations": [*turns, answer]}


ROWS = [row("one", "0.wav"), row("none"), row("two", "2.wav", "1.wav")]


def members() -> list[tuple[str, bytes]]:
    return [(f"{n}.wav", wav_bytes(0.25, seed=n)) for n in range(3)]


def opened(tmp_path: Path, *, tarred: bool) -> tuple[Any, Any]:
    manifest = write_rows(tmp_path / "m.jsonl", *ROWS)
    if tarred:
        tar = write_tar(tmp_path / "a.tar", members())
        leaf = talk_leaf("multimodal_conversation", manifest=manifest, tar=tar)
    else:
        for name, data in members():
            (tmp_path / name).write_bytes(data)
        leaf = talk_leaf("multimodal_conversation", manifest=manifest)
    return leaf, indexed(leaf, tmp_path)


def asked(leaf: Any, pack: Any, rows: list[int], *, with_audio: bool = True) -> list[PartRequest]:
    at = np.arange(len(rows)) * 10
    return part_requests(leaf, pack, np.array(rows, np.int64), at, with_audio=with_audio)


def test_turns_of_archives_come_with_their_headers(tmp_path: Path):
    leaf, pack = opened(tmp_path, tarred=True)
    wanted = asked(leaf, pack, [2, 1, 0, 2])
    assert [one.place for one in wanted] == [0, 0, 20, 30, 30]
    assert {one.field for one in wanted} == {"audio"}
    assert {one.path for one in wanted} == {str(tmp_path / "a.tar")}
    data = (tmp_path / "a.tar").read_bytes()
    read = [data[one.first_byte : one.first_byte + one.num_bytes] for one in wanted]
    found = gathered(wanted, read)
    assert {place: [part.data for part in parts] for place, parts in found.items()} == {
        0: [wav_bytes(0.25, seed=2), wav_bytes(0.25, seed=1)],
        20: [wav_bytes(0.25, seed=0)],
        30: [wav_bytes(0.25, seed=2), wav_bytes(0.25, seed=1)],
    }
    assert [part.duration_us for parts in found.values() for part in parts] == [250_000] * 5
    assert all(
        data[part.offset : part.offset + len(part.data)] == part.data
        for parts in found.values()
        for part in parts
    )


@pytest.mark.parametrize(("tarred", "with_audio"), [(True, False), (False, True), (False, False)])
def test_turns_without_bytes_have_lengths(tmp_path: Path, tarred: bool, with_audio: bool):
    """Plain files are opened by who decodes; of archives nothing is read where nobody listens."""
    leaf, pack = opened(tmp_path, tarred=tarred)
    wanted = asked(leaf, pack, [0, 1, 2], with_audio=with_audio)
    assert {one.file for one in wanted} == {-1}
    found = gathered(wanted, [None] * len(wanted))
    assert {place: len(parts) for place, parts in found.items()} == {0: 1, 20: 2}
    parts = [part for parts in found.values() for part in parts]
    assert {part.duration_us for part in parts} == {250_000}
    assert {part.data for part in parts} == {b""}


def test_lines_of_text_are_read_whether_or_not_audio_is(tmp_path: Path):
    for name, data in (("s.txt", b"one\ntwo\n"), ("t.txt", b"ein\nzwei\n")):
        (tmp_path / name).write_bytes(data)
    leaf = text_leaf("txt_pair", source=tmp_path / "s.txt", target=tmp_path / "t.txt")
    pack = indexed(leaf, tmp_path)
    for with_audio in (False, True):
        (one, other) = asked(leaf, pack, [1, 0], with_audio=with_audio)
        assert (one.offset, one.size, other.offset, other.size) == (4, 4, 0, 3)
        assert (one.first_byte, one.num_bytes, one.has_header) == (4, 4, False)
        assert one.path == str(tmp_path / "t.txt")


def test_rows_without_parts_ask_for_nothing(tmp_path: Path):
    leaf = leaf_of("nemo", manifest=nemo_corpus(tmp_path, [0.1] * 3))
    assert asked(leaf, indexed(leaf, tmp_path), [0, 1, 2]) == []


@pytest.mark.parametrize("how", ["another size", "no header", "zeros"])
def test_a_member_that_is_another_is_noticed(tmp_path: Path, how: str):
    leaf, pack = opened(tmp_path, tarred=True)
    (wanted,) = asked(leaf, pack, [0])
    data = (tmp_path / "a.tar").read_bytes()[wanted.first_byte :][: wanted.num_bytes]
    changed = {
        "another size": wanted._replace(size=wanted.size + 1),
        "no header": wanted,
        "zeros": wanted,
    }[how]
    read = {"no header": b"x" * 512 + data[512:], "zeros": bytes(len(data))}.get(how, data)
    with pytest.raises(StaleIndexError, match=r"a\.tar, byte 0.*playhead index"):
        gathered([changed], [read])


def test_an_archive_that_was_replaced_is_noticed(tmp_path: Path):
    """By its size when it is opened first; of the same size, by the sizes of its members."""
    leaf, pack = opened(tmp_path, tarred=True)
    reader = Reader((leaf,), (pack.ref,), Timings())
    before = (tmp_path / "a.tar").read_bytes()
    longer = [(name, data + bytes(2)) for name, data in members()]
    write_tar(tmp_path / "a.tar", longer)
    assert len(before) == (tmp_path / "a.tar").stat().st_size
    with pytest.raises(StaleIndexError, match=r"a\.tar, byte"):
        reader.read(micro_batch([0, 2]), with_audio=True)
    # Who needs no audio is not troubled.
    (example,) = reader.read(micro_batch([2]), with_audio=False)
    assert [turn.duration for turn in audio_turns(example)] == [0.25, 0.25]
    assert {turn.audio.audio for turn in audio_turns(example) if turn.audio} == {None}
    write_tar(tmp_path / "a.tar", members() * 2)
    with pytest.raises(StaleIndexError, match=r"has \d+ bytes and had"):
        Reader((leaf,), (pack.ref,), Timings()).read(micro_batch([0]), with_audio=True)


def test_rows_of_several_leaves_in_one_batch(tmp_path: Path):
    """Parts of each go to their own rows."""
    (tmp_path / "s.txt").write_bytes(b"one\ntwo\n")
    (tmp_path / "t.txt").write_bytes(b"ein\nzwei\n")
    pairs = text_leaf("txt_pair", source=tmp_path / "s.txt", target=tmp_path / "t.txt")
    leaves, packs = zip(
        opened(tmp_path / "x", tarred=True),
        (pairs, indexed(pairs, tmp_path)),
        opened(tmp_path / "y", tarred=False),
        strict=True,
    )
    reader = Reader(leaves, tuple(pack.ref for pack in packs), Timings())
    batch = micro_batch([2, 0, 0, 1, 2, 1], leaf=[0, 1, 2, 0, 2, 1])
    found = reader.read(batch, with_audio=True)
    assert [one.id for one in found] == ["two", "s-0", "one", "none", "two", "s-1"]
    assert [one.text for one in found if one.kind == "pair"] == ["ein", "zwei"]
    sounds = [[turn.audio.audio.source for turn in audio_turns(one) if turn.audio] for one in found]
    heard = [
        [one if isinstance(one, bytes) else Path(one).read_bytes() for one in each]
        for each in sounds
    ]
    two = [wav_bytes(0.25, seed=2), wav_bytes(0.25, seed=1)]
    assert heard == [two, [], [wav_bytes(0.25, seed=0)], [], two, []]
