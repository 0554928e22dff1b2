"""Rows that are members of archives: which are found, what of them, and how they are called."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ArchiveError, ManifestError, StaleIndexError
from playhead.formats import BadRowError
from playhead.index import build_members
from support.conversation_leaves import said, talk_leaf
from support.corpus import wav_bytes, write_tar
from support.text_leaves import indexed, read_all, text_leaf

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.blend.leaf import Leaf

FORMATS = {
    "ustar": tarfile.USTAR_FORMAT,
    "gnu": tarfile.GNU_FORMAT,
    "pax": tarfile.PAX_FORMAT,
}


def row(text: str = "hi", **more: Any) -> dict[str, Any]:
    said_ = [
        {"sender": "user", "fragments": [text]},
        {"sender": "assistant", "fragments": [{"t": "text", "value": f"of {text}"}]},
    ]
    return {"conversation": said_, **more}


def json_of(text: str = "hi", **more: Any) -> bytes:
    return json.dumps(row(text, **more)).encode()


def texts_leaf(folder: Path, *archives: list[tuple[str, bytes]], how: str = "ustar") -> Leaf:
    """Written conversations in archives that are called 0.tar, 1.tar and so on."""
    paths = [
        write_tar(folder / f"{number}.tar", members, FORMATS[how])
        for number, members in enumerate(archives)
    ]
    return text_leaf("nemotron_text_converation", text=paths)


def asked(leaf: Leaf, folder: Path, **options: Any) -> dict[str, str | None]:
    """What is said first in each sample, by its id."""
    found = read_all(leaf, indexed(leaf, folder, **options))
    result = {example.id: said(example)[0][1] for example in found}
    assert len(result) == len(found)
    return result


PRETTY = {
    "one line": json_of("a\nb"),
    "indented": json.dumps(row("a\nb"), indent=2).encode(),
    "indented by tabs": json.dumps(row("a\nb"), indent="\t").encode(),
    "CRLF": json.dumps(row("a\nb"), indent=2).replace("\n", "\r\n").encode(),
    "old Mac": json.dumps(row("a\nb"), indent=2).replace("\n", "\r").encode(),
    "blank lines around": b"\n\n" + json_of("a\nb") + b"\n \r\n",
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(row("a\nb"), indent=1).encode(),
    "not a number": json.dumps(row("a\nb", score=float("nan")), indent=2).encode(),
}


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("how", PRETTY)
def test_objects_on_any_number_of_lines(tmp_path: Path, how: str, embed: bool):
    members = [("x.json", json_of("before")), ("y.json", PRETTY[how]), ("z.json", json_of("after"))]
    leaf = texts_leaf(tmp_path, members)
    options = {"embed_rows": True} if embed else {}
    found = asked(leaf, tmp_path, **options)
    assert found == {"x": "before", "y": "a\nb", "z": "after"}


NO_OBJECTS = {
    "nothing": b"",
    "blanks": b" \n ",
    "two on two lines": json_of() + b"\n" + json_of(),
    "two on one line": json_of() + json_of(),
    "half": json_of()[:-3],
    "half on two lines": json_of()[:-3] + b"\n",
    "a list": b"[]",
    "a line break inside a text": json_of("h-i").replace(b"h-i", b"h\ni"),
    "a return inside a text": json_of("h-i").replace(b"h-i", b"h\ri"),
    "no UTF-8": json_of("h-i").replace(b"h-i", b"\xff\n"),
}


@pytest.mark.parametrize("how", NO_OBJECTS)
def test_what_is_not_one_object_is_named_or_left_out(tmp_path: Path, how: str):
    """Whatever the index takes can be read later: line breaks that only look harmless are not."""
    members = [("a.json", json_of("a")), ("b.json", NO_OBJECTS[how]), ("c.json", json_of("c"))]
    leaf = texts_leaf(tmp_path, members)
    with pytest.raises(ManifestError, match=r"0\.tar/b\.json, byte 1536\).*skip-bad-rows"):
        indexed(leaf, tmp_path)
    assert asked(leaf, tmp_path, skip_bad_rows=True) == {"a": "a", "c": "c"}
    assert indexed(leaf, tmp_path).dropped == {"bad row": 1}


def test_members_that_are_no_rows_are_counted(tmp_path: Path):
    members = [("README.md", b"read"), ("a.json", json_of()), ("a.txt", b""), ("b.JSON", b"{}")]
    pack = indexed(texts_leaf(tmp_path, members, [("c.json", json_of())]), tmp_path)
    assert (pack.num_rows, pack.dropped) == (2, {"tar member that is no row": 3})


def test_rows_that_ask_to_be_left_out_are_no_such_members(tmp_path: Path):
    members = [("a.json", json_of(_skipme=True)), ("b.json", json_of()), ("x", b"")]
    pack = indexed(texts_leaf(tmp_path, members), tmp_path)
    assert pack.dropped == {"_skipme": 1, "tar member that is no row": 1}


def test_an_archive_without_members_has_no_rows(tmp_path: Path):
    leaf = texts_leaf(tmp_path, [], [("a.json", json_of("one"))], [("README", b"x")])
    assert asked(leaf, tmp_path) == {"a": "one"}
    pack = indexed(leaf, tmp_path)
    assert pack.shard.tolist() == [1]


def test_an_archive_that_is_cut_short_is_named(tmp_path: Path):
    leaf = texts_leaf(tmp_path, [("a.json", json_of()), ("b.json", json_of("x" * 999))])
    path = tmp_path / "0.tar"
    for size in (0, 100, 512 + 30, 1024 + 512 + 600):
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(ArchiveError, match=r"0\.tar"):
            indexed(leaf, tmp_path)
        texts_leaf(tmp_path, [("a.json", json_of()), ("b.json", json_of("x" * 999))])


def test_rows_are_read_in_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build_members, "_SAMPLES", 3)
    members = [(f"{n}.json", json_of(f"text {n}")) for n in range(10)]
    leaf = texts_leaf(tmp_path, members)
    assert asked(leaf, tmp_path) == {f"{n}": f"text {n}" for n in range(10)}


names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1
).filter(lambda name: not name.startswith(".") and not name.endswith(".json"))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(names, st.integers(1, 90)), max_size=6, unique_by=lambda it: it[0] * it[1]),
    st.sampled_from(["gnu", "pax"]),
    st.integers(0, 2000),
)
def test_rows_are_called_as_their_members_are(
    tmp_path_factory: pytest.TempPathFactory,
    stems: list[tuple[str, int]],
    how: str,
    size: int,
):
    """Names of any length and alphabet stand in extension headers, which no index keeps."""
    folder = tmp_path_factory.mktemp("names")
    # What lies before an extension header is another row's.
    members = [
        (f"folder/{(stem * times)[:250]}.json", json_of(f"{n}" + "x" * (size * n % 1999)))
        for n, (stem, times) in enumerate(stems)
    ]
    if len({name for name, _ in members}) < len(members):
        return
    leaf = texts_leaf(folder, members, how=how)
    found = read_all(leaf, indexed(leaf, folder))
    assert [example.place.member for example in found] == [
        f"{folder}/0.tar/{name}" for name, _ in members
    ]
    assert [example.id for example in found] == [(stem * n)[:250] for stem, n in stems]


def test_an_archive_that_changed_is_noticed(tmp_path: Path):
    leaf = texts_leaf(tmp_path, [("a.json", json_of("one"))])
    pack = indexed(leaf, tmp_path)
    path = tmp_path / "0.tar"
    old = path.read_bytes()
    path.write_bytes(old.replace(b'"one"', b'"two"'))
    with pytest.raises(StaleIndexError, match=r"row is not the one that was indexed.*0\.tar"):
        read_all(leaf, pack)
    # Of another size, it is another archive.
    path.write_bytes(old + bytes(10240))
    with pytest.raises(StaleIndexError, match=r"file has \d+ bytes and had \d+"):
        read_all(leaf, pack)


def test_archives_that_are_as_they_were_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []
    scan_members = build_members.scan_members

    def noted(task: Any, reader: Any) -> Any:
        read.append(task.pair.manifest)
        return scan_members(task, reader)

    monkeypatch.setattr("playhead.index.build_scan.scan_members", noted)
    archives = [[(f"{n}{m}.json", json_of(f"{n} {m}")) for m in range(n + 1)] for n in range(4)]
    archives[1].append(("README", b""))
    leaf = texts_leaf(tmp_path, *archives)
    before = asked(leaf, tmp_path)
    read.clear()
    write_tar(tmp_path / "2.tar", [("new.json", json_of("new" * 300))])
    leaf = text_leaf(leaf.type, text=[tmp_path / f"{n}.tar" for n in range(4)])
    found = asked(leaf, tmp_path)
    assert read == [str(tmp_path / "2.tar")]
    expected = {id_: text for id_, text in before.items() if not id_.startswith("2")}
    assert found == {**expected, "new": "new" * 300}
    assert indexed(leaf, tmp_path).dropped == {"tar member that is no row": 1}


def web(folder: Path, *archives: list[tuple[str, bytes]], version: int = 1) -> Leaf:
    for number, members in enumerate(archives):
        write_tar(folder / f"web/{number}.tar", members)
    own = {"wds_sample_index_version": version}
    return talk_leaf("share_gpt_webdataset", data_dir=folder / "web", own=own)


def heard(name: str, **more: Any) -> bytes:
    said_ = [{"from": "human", "value": f"<sound> {name}"}, {"from": "gpt", "value": "yes"}]
    return json.dumps({"conversations": said_, **more}, indent=2).encode()


@pytest.mark.parametrize("embed", [False, True])
def test_audio_beside_a_row_is_its_turn(tmp_path: Path, embed: bool):
    seconds = [0.25, 0.5, 0.125]
    members = []
    for number, length in enumerate(seconds):
        pair = [(f"{number}.json", heard(f"n{number}")), (f"{number}.wav", wav_bytes(length))]
        members += pair[::-1] if number == 1 else pair
    leaf = web(tmp_path, members)
    pack = indexed(leaf, tmp_path, embed_rows=embed)
    assert pack.duration_us.tolist() == [250_000, 500_000, 125_000]
    found = read_all(leaf, pack)
    assert [turn.duration for example in found for turn in example.turns if turn.audio] == seconds
    assert [example.turns[0].audio.audio.source for example in found] == [
        wav_bytes(length) for length in seconds
    ]


def test_members_that_do_not_group_are_named_with_their_archive(tmp_path: Path):
    leaf = web(tmp_path, [("a.json", heard("a")), ("b.json", heard("b"))])
    with pytest.raises(ManifestError, match=r"leaf train, .*web/0\.tar\)"):
        indexed(leaf, tmp_path)


def test_audio_that_cannot_be_measured_makes_a_bad_row(tmp_path: Path):
    good = [("a.json", heard("a")), ("a.wav", wav_bytes(0.5))]
    leaf = web(tmp_path, [*good, ("b.json", heard("b")), ("b.wav", b"no audio" * 9)])
    with pytest.raises(ManifestError, match=r"0\.tar/b\.json, byte"):
        indexed(leaf, tmp_path)
    pack = indexed(leaf, tmp_path, skip_bad_rows=True)
    assert (pack.num_rows, pack.dropped) == (1, {"bad row": 1})
    # Behind a bad row the places of others are theirs.
    leaf = web(tmp_path / "x", [("b.json", heard("b")), ("b.wav", b"no audio" * 9), *good])
    found = read_all(leaf, indexed(leaf, tmp_path / "x", skip_bad_rows=True))
    assert [example.turns[0].audio.audio.source for example in found] == [wav_bytes(0.5)]


def test_a_bind_that_cannot_tell_is_a_bad_row(tmp_path: Path):
    two = {"sound": ["a.wav", "c.wav"]}
    members = [("a.json", heard("a", **two)), ("a.wav", wav_bytes(0.5)), ("a.flac", b"")]
    leaf = web(tmp_path, members, version=2)
    with pytest.raises(ManifestError, match=r"0\.tar/a\.json"):
        indexed(leaf, tmp_path)


def test_on_one_line_nothing_but_blanks_between_values_changes():
    value = {"a": ["x\ny", 1.5, None, "ü\t"], "b": {"c": "  two  blanks "}}
    for text in (json.dumps(value), json.dumps(value, indent=3), json.dumps(value, indent="\t")):
        line = build_members._on_one_line(text.encode())
        assert b"\n" not in line
        assert json.loads(line) == value
    with pytest.raises(BadRowError):
        build_members._on_one_line(b'{"a": "x\ny"}')
