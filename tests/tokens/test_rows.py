"""Reading rows of a leaf one after another, and noticing those that are others by now."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from playhead.errors import DataError, SourceNotFoundError, StaleIndexError
from playhead.storage import local
from playhead.tokens import rows as rows_module
from playhead.tokens.rows import examples, place_of, read_rows
from support.leaves import make_leaf, read_bytes
from support.token_rows import nemo_leaf, nemo_row, open_pack_of, write_rows


def whole(leaf, pack):
    return read_rows(leaf, pack, 0, pack.num_rows).rows


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("spare", [0, 1 << 20])
def test_rows_of_several_manifests_with_gaps(tmp_path, monkeypatch, embed, spare):
    monkeypatch.setattr(rows_module, "_SPARE", spare)
    paths = []
    for shard, count in enumerate([5, 1, 7]):
        rows = [nemo_row(i, text=f"{shard} {i}", _skipme=i % 3 == 1) for i in range(count)]
        paths.append(write_rows(tmp_path / f"m{shard}.json", rows))
    paths[1].write_bytes(b"\xef\xbb\xbf" + paths[1].read_bytes().replace(b"\n", b"\r\n"))
    leaf = make_leaf("nemo", manifest=paths)
    pack = open_pack_of(leaf, tmp_path, embed=embed)
    expected = [read_bytes(pack, i)[0] for i in range(pack.num_rows)]
    assert whole(leaf, pack) == expected
    assert [json.loads(row)["text"] for row in expected[:4]] == ["0 0", "0 2", "0 3", "1 0"]
    for start in range(pack.num_rows):
        for stop in range(start + 1, pack.num_rows + 1):
            assert read_rows(leaf, pack, start, stop).rows == expected[start:stop]


def test_rows_of_compressed_manifests_are_in_the_pack(tmp_path):
    path = tmp_path / "m.json.gz"
    path.write_bytes(gzip.compress(json.dumps(nemo_row(text="we")).encode() + b"\n"))
    leaf = make_leaf("nemo", manifest=[path])
    pack = open_pack_of(leaf, tmp_path)
    assert json.loads(whole(leaf, pack)[0])["text"] == "we"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n"])
def test_rows_that_lie_as_lines_are_not_joined_again(tmp_path, end):
    leaf = nemo_leaf(tmp_path, [nemo_row(i) for i in range(5)])
    path = tmp_path / "m.json"
    path.write_bytes(path.read_bytes().replace(b"\n", end))
    pack = open_pack_of(leaf, tmp_path)
    block = read_rows(leaf, pack, 1, 4)
    assert block.lines() == b"\n".join(block.rows)
    assert (block.joined is not None) == (end == b"\n")


def test_what_lies_between_rows_is_not_trusted(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(i) for i in range(3)])
    pack = open_pack_of(leaf, tmp_path)
    expected = whole(leaf, pack)
    path = tmp_path / "m.json"
    first, *others = path.read_bytes().splitlines()
    path.write_bytes(first + b" " + b"\n".join(others) + b"\n")
    assert whole(leaf, pack) == expected
    assert read_rows(leaf, pack, 0, 3).joined is None


def test_a_row_that_is_another_by_now_is_named(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(i, text=f"word {i}") for i in range(5)])
    pack = open_pack_of(leaf, tmp_path)
    path = tmp_path / "m.json"
    path.write_bytes(path.read_bytes().replace(b"word 3", b"ward 3"))
    byte = int(pack.row_offset[3])
    with pytest.raises(StaleIndexError, match=rf"m\.json, byte {byte}, row 3 counted from 0"):
        whole(leaf, pack)
    assert len(read_rows(leaf, pack, 0, 3).rows) == 3


def test_files_that_are_shorter_or_gone_are_named(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(i) for i in range(5)])
    pack = open_pack_of(leaf, tmp_path)
    path = tmp_path / "m.json"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"ends early.*m\.json"):
        whole(leaf, pack)
    path.unlink()
    local._descriptors.forget(str(path))
    with pytest.raises(SourceNotFoundError, match=r"m\.json"):
        whole(leaf, pack)


def test_no_audio_is_looked_for(tmp_path, monkeypatch):
    leaf = nemo_leaf(tmp_path, [{**nemo_row(i), "audio_filepath": f"a/{i}.wav"} for i in range(3)])
    pack = open_pack_of(leaf, tmp_path)
    rows = read_rows(leaf, pack, 0, pack.num_rows)
    monkeypatch.setattr(os.path, "exists", lambda path: pytest.fail(f"looks for {path}"))
    found = list(examples(leaf, pack, 0, rows))
    assert [one.id for one in found] == ["a/0.wav", "a/1.wav", "a/2.wav"]
    assert [one.place.row for one in found] == [0, 1, 2]


def test_places_are_said_as_elsewhere(tmp_path):
    leaf = nemo_leaf(tmp_path, [nemo_row(i) for i in range(3)])
    pack = open_pack_of(leaf, tmp_path)
    place = place_of(leaf, pack, 2)
    assert (place.leaf, place.row, place.byte) == ("leaf", 2, int(pack.row_offset[2]))
    assert place.shard == str(tmp_path / "m.json")
