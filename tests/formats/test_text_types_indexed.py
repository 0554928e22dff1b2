"""Rows without audio from files on disk through a pack to samples."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import DataError, ManifestError
from playhead.index import build_scan
from playhead.index.source import read_lines
from support.corpus import write_tar
from support.text_leaves import indexed, json_lines, read_all, text_leaf

if TYPE_CHECKING:
    from pathlib import Path

BOM = b"\xef\xbb\xbf"
TEXT = {"language": "en"}
SFT = {"conversations": [{"from": "User", "value": "a"}, {"from": "Assistant", "value": "b"}]}
TALK = {"conversation": [{"sender": "user", "fragments": ["a"]}]}
MESSAGES = {"messages": [{"role": "assistant", "content": "a"}]}

JSON_TYPES = {
    "txt_jsonl": ({"text": "one"}, TEXT),
    "nemo_sft_jsonl": (SFT, {}),
    "nemotron_text_converation": (TALK, {}),
    "materialized_sft_messages": (MESSAGES, {}),
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few rows reach over several blocks."""
    monkeypatch.setattr(build_scan, "read_lines", lambda path: read_lines(path, 16))


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines_of_text(tmp_path: Path, small_blocks: None, name: str):
    one = write(tmp_path / name, BOM + "\n one \r\n \r\nzwölf und 二\n\n\nlast".encode())
    two = write(tmp_path / "b.txt", b"x\r\n")
    three = write(tmp_path / "c.txt", b"")
    leaf = text_leaf("txt", own=TEXT, text=[one, two, three])
    pack = indexed(leaf, tmp_path)
    assert pack.num_rows == 4
    assert pack.dropped == {"blank line": 4, "manifest without rows": 1}
    assert pack.duration_us.tolist() == [0] * 4
    got = read_all(leaf, pack)
    assert [example.text for example in got] == [" one \n", "zwölf und 二\n", "last\n", "x\n"]
    assert [example.id for example in got] == ["a-0", "a-1", "a-2", "b-3"]
    assert {example.kind for example in got} == {"text"}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("final", ["", "\r\n"])
def test_pairs_of_lines(tmp_path: Path, small_blocks: None, suffix: str, final: str):
    source = ["one", "", "two", "three words here", "", "four"]
    target = [" eins", "nichts", "", "drei Wörter hier", "", "vier"]
    sources = write(tmp_path / f"s.txt{suffix}", BOM + ("\r\n".join(source) + final).encode())
    targets = write(tmp_path / "t.txt", BOM + ("\n".join(target) + final).encode())
    leaf = text_leaf("txt_pair", source=[sources], target=[targets])
    pack = indexed(leaf, tmp_path)
    assert pack.dropped == {"blank line": 2}
    got = read_all(leaf, pack)
    assert [(example.custom["source"], example.text) for example in got] == [
        ("one", "eins"),
        ("two", ""),
        ("three words here", "drei Wörter hier"),
        ("four", "vier"),
    ]


def test_a_compressed_target(tmp_path: Path):
    sources = write(tmp_path / "s.txt", b"one\ntwo\n")
    targets = write(tmp_path / "t.txt.gz", b"eins\nzwei\n")
    leaf = text_leaf("txt_pair", source=[sources], target=[targets])
    got = read_all(leaf, indexed(leaf, tmp_path))
    assert [example.text for example in got] == ["eins", "zwei"]


@pytest.mark.parametrize(("source", "target"), [(3, 2), (2, 3), (1, 0), (0, 1)])
def test_pairs_need_as_many_lines(tmp_path: Path, source: int, target: int):
    sources = write(tmp_path / "s.txt", b"one\n" * source)
    targets = write(tmp_path / "t.txt", b"eins\n" * target)
    with pytest.raises(DataError, match=r"(?s)s\.txt.*t\.txt"):
        indexed(text_leaf("txt_pair", source=sources, target=targets), tmp_path)


@pytest.mark.parametrize("type_", JSON_TYPES)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_rows_of_json(tmp_path: Path, small_blocks: None, type_: str, name: str):
    row, own = JSON_TYPES[type_]
    line = json.dumps(row, ensure_ascii=False).encode()
    skipped = json.dumps({**row, "_skipme": "x"}).encode()
    path = write(tmp_path / name, BOM + b"\r\n".join([b"", line, b" \t", skipped, line, b"", line]))
    leaf = text_leaf(type_, own=own, text=path)
    pack = indexed(leaf, tmp_path)
    assert pack.num_rows == 3
    assert pack.dropped == {"blank line": 3, "_skipme": 1}
    assert pack.duration_us.tolist() == [0] * 3
    got = read_all(leaf, pack)
    said = [one.text for one in got[0].turns] or [got[0].text]
    assert len({example.id for example in got}) == 3
    assert said == {"txt_jsonl": ["one"], "nemo_sft_jsonl": ["a", "b"]}.get(type_, ["a"])
    assert {example.kind for example in got} == {leaf.kind}


BAD_LINES = {
    "txt": [b"a\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5abc", b"\x80"],
    "txt_jsonl": [b'{"text": 1', b'{"text": []}', b"text", b'{"text": "a"} {}', b'["text"]'],
    "nemo_sft_jsonl": [
        b'{"conversations": []}',
        b'{"conversations": [{"from": "Bob", "value": "a"}]}',
        b'{"conversations": [{"from": "User"}]}',
        b'{"conversations": [{"from": "User", "value": 1}]}',
        b"null",
    ],
    "nemotron_text_converation": [
        b'{"conversation": []}',
        b'{"conversation": [{"sender": "Bob", "fragments": ["a"]}]}',
        b'{"conversation": [{"sender": "user", "fragments": [{"t": "image", "value": "a"}]}]}',
        b'{"conversation": [{"sender": "user", "fragments": "a"}]}',
        b'{"conversation": "\xff"}',
    ],
    "materialized_sft_messages": [
        b'{"messages": []}',
        b'{"messages": [{"role": "bob", "content": "a"}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "id": "x"}',
        b'{"messages": [{"role": "user", "content": null}]}',
        b'{"messages": [{"role": "user", "content": "a", "x": 1}]}',
    ],
}
CASES = [(type_, bad) for type_, lines in BAD_LINES.items() for bad in lines]


@pytest.mark.parametrize(("type_", "bad"), CASES)
def test_a_bad_row_is_named_or_left_out(tmp_path: Path, type_: str, bad: bytes):
    row, own = JSON_TYPES.get(type_, (None, TEXT))
    good = b"one\n" if row is None else json_lines(row)
    path = write(tmp_path / "a.x", good * 2 + b"\n" + bad + b"\n" + good)
    leaf = text_leaf(type_, own=own, text=path)
    byte = 2 * len(good) + 1
    says = rf"\(leaf train, {path}:4, byte {byte}\)\. .+ --skip-bad-rows"
    with pytest.raises(ManifestError, match=says):
        indexed(leaf, tmp_path)
    pack = indexed(leaf, tmp_path, skip_bad_rows=True)
    assert pack.num_rows == 3
    assert pack.dropped == {"bad row": 1, "blank line": 1}
    assert len(read_all(leaf, pack)) == 3


def test_a_target_that_is_no_text_is_named_with_its_file(tmp_path: Path):
    sources = write(tmp_path / "s.txt", b"one\ntwo\n")
    targets = write(tmp_path / "t.txt", b"eins\nzw\xffei\n")
    leaf = text_leaf("txt_pair", source=sources, target=targets)
    with pytest.raises(ManifestError, match=r"not UTF-8.*byte 5 of .*/t\.txt \(leaf"):
        read_all(leaf, indexed(leaf, tmp_path))


def test_another_text_field_is_another_index(tmp_path: Path):
    path = write(tmp_path / "a.jsonl", json_lines({"text": "a", "body": "b"}, {"text": "c"}))
    for field, texts in (("text", ["a", "c"]), ("body", ["b"]), ("text", ["a", "c"])):
        leaf = text_leaf("txt_jsonl", own=TEXT, options={"text_field": field}, text=path)
        assert [one.text for one in read_all(leaf, indexed(leaf, tmp_path))] == texts


def talk(text: str, **more: Any) -> dict[str, Any]:
    return {"conversation": [{"sender": "user", "fragments": [text]}], **more}


def test_conversations_in_tars_and_folders(tmp_path: Path):
    rows = [talk("one"), talk("two", id="own"), talk("no", _skipme=1), talk("thr\nee")]
    members = [
        (f"talks/{n}.v1.json", json.dumps(row, indent=n or None).encode())
        for n, row in enumerate(rows)
    ]
    write_tar(tmp_path / "in/b/x.tar", [members[0], ("README", b"hm"), members[1]])
    write_tar(tmp_path / "in/a.tar", members[2:])
    lines = write(tmp_path / "y.jsonl", json_lines(talk("four")))
    leaf = text_leaf("nemotron_text_converation", text=[tmp_path / "in", lines])
    pack = indexed(leaf, tmp_path)
    got = read_all(leaf, pack)
    assert [example.turns[0].text for example in got] == ["thr\nee", "one", "two", "four"]
    assert pack.dropped["_skipme"] == 1
    assert got[2].id == "own"
    assert len({example.id for example in got}) == 4
    again = read_all(leaf, indexed(leaf, tmp_path, embed_rows=True))
    assert [example.turns for example in again] == [example.turns for example in got]


@pytest.mark.parametrize("bad", [b"", b"  ", b"{", b"[]", b'{"conversation": []}', b"{} {}"])
def test_a_bad_member_is_named_or_left_out(tmp_path: Path, bad: bytes):
    good = json.dumps(talk("one")).encode()
    tar = write_tar(tmp_path / "a.tar", [("0.json", good), ("x/1.json", bad), ("2.json", good)])
    leaf = text_leaf("nemotron_text_converation", text=tar)
    with pytest.raises(ManifestError, match=r"a\.tar/x/1\.json, byte \d+\)"):
        indexed(leaf, tmp_path)
    pack = indexed(leaf, tmp_path, skip_bad_rows=True)
    assert (pack.num_rows, pack.dropped["bad row"]) == (2, 1)


# What is between newlines, with what Python would take for the end of a line inside.
line_texts = st.text(st.sampled_from("ab \t\r\x0b\x0c\x85\u2028ü二"), max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(line_texts, max_size=12),
    newline=st.sampled_from(["\n", "\r\n"]),
    final=st.booleans(),
    bom=st.booleans(),
    block=st.integers(1, 40),
)
def test_every_line_is_read_as_it_was_written(  # noqa: PLR0917 - what Hypothesis draws
    tmp_path_factory: pytest.TempPathFactory, texts, newline, final, bom, block
):
    folder = tmp_path_factory.mktemp("lines")
    data = (newline.join(texts) + (newline if final and texts else "")).encode()
    path = write(folder / "a.txt", (BOM if bom else b"") + data)
    leaf = text_leaf("txt", own=TEXT, text=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_scan, "read_lines", lambda name: read_lines(name, block))
        pack = indexed(leaf, folder)
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    expected = [line.decode() + "\n" for line in lines if line.strip()]
    assert [example.text for example in read_all(leaf, pack)] == expected
