from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.formats import BadRowError, Place, SourcePair
from playhead.formats.txt import Txt
from support.text_leaves import PLACE, text_leaf

PAIR = SourcePair(manifest="/data/a.txt")


def leaf(language: object = "en", paths: object = "/data/a.txt", **options):
    return text_leaf("txt", own={"language": language}, text=paths, **options)


def columns(block: bytes):
    return Txt().columns(leaf(), PAIR, block)


def example(line: bytes, **options):
    return Txt().example(leaf(**options), PLACE, line, [])


def test_one_source_a_file():
    assert Txt().sources(leaf(paths=["/b.txt", "/a.txt.gz"])) == [
        SourcePair(manifest="/b.txt"),
        SourcePair(manifest="/a.txt.gz"),
    ]


@pytest.mark.parametrize(
    ("language", "says"),
    [
        (None, r"entry has no `language` \(leaf train, type txt\)"),
        (False, r"has False as its `language`"),
        ("", r"has '' as its `language`"),
        (["en"], r"has \['en'\] as its `language`"),
    ],
)
def test_the_language_has_to_be_said(language: object, says: str):
    with pytest.raises(ConfigError, match=says + r".*language: \"en\", in quotes"):
        Txt().sources(leaf(language))


def test_a_tar_is_no_text():
    with pytest.raises(ConfigError, match=r"this is a tar \(leaf train, /data/a\.tar\)"):
        Txt().sources(leaf(paths=["/data/a.txt", "/data/a.tar"]))


def test_blank_lines_are_counted_and_the_others_keep_their_place():
    got = columns(b"\none\n \t\r\n two \n\n")
    assert got.num_rows == 6
    assert got.kept.tolist() == [1, 3]
    assert got.dropped == {"blank line": 4}
    assert got.duration_us.tolist() == [0, 0]
    assert got.tar.tolist() == [-1, -1]
    assert got.audios is None


def test_blocks_are_lines_with_newlines_between_them():
    for block, rows, kept in ((b"", 1, 0), (b"one", 1, 1), (b"one\r\ntwo", 2, 2), (b"\n", 2, 0)):
        got = columns(block)
        assert (got.num_rows, len(got.kept)) == (rows, kept)
    assert columns(b"one").dropped == {}


def test_bytes_that_are_no_text_are_refused():
    for line in (b"\xff", b"caf\xe9 au lait", b"\xed\xa0\x80", b"\xc0\xaf", b"a\xe2\x82"):
        with pytest.raises(BadRowError, match=r"line is not UTF-8: .* at its byte \d+\. Write"):
            columns(b"one\n" + line + b"\ntwo")
        with pytest.raises(BadRowError, match="line is not UTF-8"):
            example(line)
    assert columns("één\n二".encode()).num_rows == 2


def test_a_line_becomes_a_sample():
    got = example(" één 二 ".encode(), tags={"task": "lm"})
    assert got.kind == "text"
    assert got.text == " één 二 \n"
    assert (got.id, got.language, got.audio, got.turns) == ("web_3-41", "en", None, ())
    assert got.custom == {"task": "lm"}
    assert got.place == PLACE


def test_ids_tell_rows_apart():
    places = [
        Place(leaf="x", shard=shard, row=row, byte=0)
        for row, shard in enumerate(["/a/part.txt", "/b/part.txt", "/b/part.txt.gz", "part"])
    ]
    got = [Txt().example(leaf(), place, b"x", []).id for place in places]
    assert got == ["part-0", "part-1", "part-2", "part-3"]


lines = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")))


@given(lines)
def test_every_line_comes_back(texts: list[str]):
    encoded = [text.encode() for text in texts]
    if not encoded:
        return
    got = columns(b"\n".join(encoded))
    kept = got.kept.tolist()
    assert got.num_rows == len(texts)
    assert got.dropped.get("blank line", 0) == len(texts) - len(kept)
    for place, (text, line) in enumerate(zip(texts, encoded, strict=True)):
        is_blank = not line.strip()
        assert (place in kept) is not is_blank
        assert example(line).text == text + "\n"
