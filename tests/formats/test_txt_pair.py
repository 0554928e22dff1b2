from __future__ import annotations

import pytest
from hypothesis import given

from playhead.errors import ConfigError
from playhead.formats import BadRowError, FieldShard, Part, SourcePair, turns_of
from playhead.formats.txt_pair import TxtPair
from support.text_leaves import PLACE, text_leaf, words

OWN = {"source_language": "en", "target_language": "de", "questions_language": "fr"}


def leaf(source: object = "/s.txt", target: object = "/t.txt", own: dict | None = None, **options):
    return text_leaf(
        "txt_pair", own=OWN if own is None else own, source=source, target=target, **options
    )


def example(source: bytes, target: bytes, **options):
    part = Part("target", target, "/t.txt", 9)
    return TxtPair().example(leaf(**options), PLACE, source, [part])


def test_files_are_paired_in_their_order():
    got = TxtPair().sources(leaf(["/s1.txt", "/s0.txt"], ["/t1.txt", "/t0.txt.gz"]))
    assert got == [
        SourcePair(manifest="/s1.txt", fields=(FieldShard("target", "/t1.txt"),)),
        SourcePair(manifest="/s0.txt", fields=(FieldShard("target", "/t0.txt.gz"),)),
    ]


def test_other_numbers_of_files_are_refused():
    with pytest.raises(
        ConfigError,
        match=r"2 source files and 1 target files \(leaf train, /a and /c\).*target_paths",
    ):
        TxtPair().sources(leaf(["/a", "/b"], "/c"))


def test_tars_and_odd_languages_are_refused():
    with pytest.raises(ConfigError, match=r"/t\.tar\)"):
        TxtPair().sources(leaf(target="/t.tar"))
    for key in OWN:
        with pytest.raises(ConfigError, match=f"has False as its `{key}`"):
            TxtPair().sources(leaf(own={key: False}))
    assert len(TxtPair().sources(leaf(own={}))) == 1


def test_pairs_without_a_source_are_counted():
    got = TxtPair().columns(leaf(), SourcePair(manifest="/s.txt"), b"one\n\r\n two \n")
    assert (got.num_rows, got.kept.tolist()) == (4, [0, 2])
    assert got.dropped == {"blank line": 2}
    assert got.ids is None


def test_two_lines_become_a_sample():
    got = example(b" one ", b"\teins\r", tags={"task": "mt", "source": "not this"})
    assert (got.kind, got.id, got.text, got.language) == ("pair", "web_3-41", "eins", "en")
    assert got.custom == {
        "task": "mt",
        "source": "one",
        "target": "eins",
        "source_language": "en",
        "target_language": "de",
        "question_language": "fr",
    }
    assert [(turn.role, turn.text) for turn in turns_of(got)] == [
        ("user", "one"),
        ("assistant", "eins"),
    ]
    assert example(b"one", b" ").text == ""


def test_the_target_may_stand_behind_the_source():
    got = TxtPair().example(leaf(), PLACE, b"one\neins", [])
    assert (got.custom["source"], got.text) == ("one", "eins")
    assert TxtPair().example(leaf(), PLACE, b"one\n", []).text == ""


def test_bad_lines_are_refused():
    with pytest.raises(BadRowError, match="line is not UTF-8"):
        TxtPair().columns(leaf(), SourcePair(manifest="/s.txt"), b"a\nb\xff\nc")
    with pytest.raises(BadRowError, match="line is not UTF-8"):
        example(b"one", b"\xffeins")
    with pytest.raises(BadRowError, match="line is not UTF-8"):
        example(b"\xe9", b"eins")
    with pytest.raises(BadRowError, match=r"no partner in the target file\. Index"):
        TxtPair().example(leaf(), PLACE, b"one", [])
    with pytest.raises(BadRowError, match="no partner"):
        TxtPair().example(leaf(), PLACE, b"one", [Part("other", b"x", "/x", 0)])


@given(words, words)
def test_texts_come_back_without_the_white_space_around_them(source: str, target: str):
    got = example(source.encode(), target.encode()) if "\n" not in source else None
    if got is not None:
        assert (got.custom["source"], got.text) == (source.strip(), target.strip())
