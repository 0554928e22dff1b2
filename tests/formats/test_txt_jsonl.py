from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from playhead.formats import BadRowError, SourcePair
from playhead.formats.txt_jsonl import TxtJsonl
from support.text_leaves import PLACE, json_lines, text_leaf, words

PAIR = SourcePair(manifest="/data/web_3.jsonl")


def leaf(language: object = "en", paths: object = "/data/a.jsonl", field: str = "text", **more):
    options = {"text_field": field}
    return text_leaf("txt_jsonl", own={"language": language}, options=options, text=paths, **more)


def columns(*rows: Any, **options: Any):
    return TxtJsonl().columns(leaf(**options), PAIR, json_lines(*rows))


def example(row: Any, **options: Any):
    return TxtJsonl().example(leaf(**options), PLACE, json.dumps(row).encode(), [])


def test_sources_and_what_they_need():
    assert TxtJsonl().sources(leaf(paths=["/b.jsonl", "/a.jsonl"])) == [
        SourcePair(manifest="/b.jsonl"),
        SourcePair(manifest="/a.jsonl"),
    ]
    with pytest.raises(ConfigError, match=r"entry has no `language` \(leaf train, type txt_jsonl"):
        TxtJsonl().sources(leaf(None))
    with pytest.raises(ConfigError, match="this is a tar"):
        TxtJsonl().sources(leaf(paths="/a.tar"))
    for field in ("id", "custom", "_skipme"):
        with pytest.raises(ConfigError, match=f"`text_field` is '{field}'"):
            TxtJsonl().sources(leaf(field=field))


def test_what_is_left_out_is_counted_by_its_reason():
    got = columns(
        {"text": "one"},
        {"txet": "two"},
        {"text": None},
        {"text": " \n"},
        {"text": ""},
        {"text": "no", "_skipme": "noise"},
        {"_skipme": 1},
        {"text": "", "custom": {"_skipme": True}},
        {"text": 5, "custom": {"_skipme": False}, "_skipme": 0},
        {"text": 2.5},
    )
    assert got.num_rows == 10
    assert got.kept.tolist() == [0, 8, 9]
    assert got.dropped == {"_skipme": 3, "no field 'text'": 2, "blank text": 2}
    assert got.duration_us.tolist() == [0, 0, 0]


def test_another_field_may_hold_the_text():
    got = columns({"text": "one"}, {"body": "two"}, field="body")
    assert got.kept.tolist() == [1]
    assert got.dropped == {"no field 'body'": 1}
    row = {"text": "one", "body": "two"}
    assert example(row, field="body").text == "two"
    assert example(row, field="body").custom == {"text": "one"}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"text": ["one"]}, "'text' has the wrong type"),
        ({"text": {"en": "one"}}, "'text' has the wrong type"),
        ({"text": True}, "'text' has the wrong type"),
        ({"text": "one", "id": ["x"]}, "'id' has the wrong type"),
        ({"text": float("nan")}, "'text' is nan, which is not a text"),
        ({"text": float("-inf")}, "'text' is -inf, which is not a text"),
        ({"text": "\ud83d"}, "text of the row is not Unicode"),
        (["text"], "not what it should be"),
        ("text", "not what it should be"),
    ],
)
def test_bad_rows_are_refused(bad: Any, says: str):
    good = {"text": "one"}
    with pytest.raises(BadRowError, match=says):
        columns(good, bad, good)
    assert columns(good, good).num_rows == 2


@pytest.mark.parametrize(
    "line",
    [b'{"text": "one"', b'{"text": "\xff"}', b"text", b'{"text": "a\nb"}', b'{"text": 1e999}'],
)
def test_bad_lines_are_refused(line: bytes):
    with pytest.raises(BadRowError):
        TxtJsonl().columns(leaf(), PAIR, b'{"text": "one"}\n' + line + b"\n")


def test_rows_that_only_python_can_read_are_read():
    got = columns({"text": "one", "score": float("nan")}, {"text": 10**400, "id": 10**30})
    assert got.kept.tolist() == [0, 1]
    assert example({"text": 10**400}).text == "1" + 400 * "0"
    # Skipped rows need not be any better than that.
    assert columns({"text": float("nan"), "_skipme": 1}).dropped == {"_skipme": 1}


def test_a_row_becomes_a_sample():
    row = {
        "text": " one\n",
        "lang": "de",
        "url": "x",
        "id": "a",
        "_skipme": "",
        "custom": {"score": 2, "_skipme": False},
    }
    got = example(row, tags={"url": "tag"})
    assert (got.kind, got.id, got.text, got.language) == ("text", "a", " one\n", "en")
    assert got.custom == {"lang": "de", "url": "tag", "score": 2}
    assert example({"text": "x"}).id == example({"text": "x", "id": ""}).id == "web_3-41"
    assert example({"text": "x", "id": 12}).id == "12"
    assert example({"text": 5, "custom": "y"}).custom == {"custom": "y"}
    assert example({"text": 5}).text == "5"


def test_a_row_that_is_not_one_any_more_is_refused():
    for row in ({"txet": "x"}, {"text": None}, {"text": []}):
        with pytest.raises(ManifestError, match="text"):
            example(row)


@given(st.lists(words, min_size=1))
def test_every_text_comes_back(texts: list[str]):
    rows = [{"text": text, "n": number} for number, text in enumerate(texts)]
    got = columns(*rows)
    full = [number for number, text in enumerate(texts) if text and not text.isspace()]
    assert got.kept.tolist() == full
    for number in full:
        made = example(rows[number])
        assert (made.text, made.custom) == (texts[number], {"n": number})
