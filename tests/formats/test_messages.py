from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from playhead.formats import BadRowError, SourcePair
from playhead.formats.messages import Messages
from support.text_leaves import PLACE, json_lines, text_leaf, words

if TYPE_CHECKING:
    from pathlib import Path

PAIR = SourcePair(manifest="/data/web_3.jsonl")


def leaf(paths: object = "/data/a.jsonl", check: object = True, **options: Any):
    own = {"validate_chunk_tokenization": check}
    return text_leaf("materialized_sft_messages", own=own, text=paths, **options)


def columns(*rows: Any):
    return Messages().columns(leaf(), PAIR, json_lines(*rows))


def example(row: Any, **options: Any):
    return Messages().example(leaf(**options), PLACE, json.dumps(row).encode(), [])


def said(*messages: tuple[Any, Any]) -> dict:
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


GOOD = said(("system", "s"), ("assistant", "b"))


def test_sources_are_jsonl_files_alone(tmp_path: Path):
    assert Messages().sources(leaf(["/b.jsonl", "/a.jsonl"])) == [
        SourcePair(manifest="/b.jsonl"),
        SourcePair(manifest="/a.jsonl"),
    ]
    with pytest.raises(ConfigError, match="this is a tar"):
        Messages().sources(leaf("/a.tar"))
    with pytest.raises(ConfigError, match=r"(?i)this is a folder.*leaf train"):
        Messages().sources(leaf(tmp_path))
    with pytest.raises(ConfigError, match="`validate_chunk_tokenization` is 'no'"):
        Messages().sources(leaf(check="no"))


def test_contents_are_taken_as_they_are():
    row = said(("system", "<s>\n"), ("user", " a "), ("assistant", ""), ("tool", "t"))
    got = example(row, tags={"task": "chat"}, check=False)
    assert (got.kind, got.id, got.text, got.language) == (
        "messages",
        "web_3-000000000041",
        None,
        None,
    )
    assert [(turn.role, turn.text) for turn in got.turns] == [
        ("system", "<s>\n"),
        ("user", " a "),
        ("assistant", ""),
        ("tool", "t"),
    ]
    assert got.custom == {"task": "chat", "validate_chunk_tokenization": False}
    assert example(GOOD).custom == {"validate_chunk_tokenization": True}


def test_skipped_rows_are_counted():
    got = columns(GOOD, {**GOOD, "_skipme": 1}, {"_skipme": "empty"}, {**GOOD, "_skipme": ""})
    assert (got.num_rows, got.kept.tolist(), got.dropped) == (4, [0, 3], {"_skipme": 2})


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"messages": []}, "the row has no messages"),
        ({}, "the row has no messages"),
        ({"messages": "a"}, "'messages' has the wrong type"),
        ({**GOOD, "id": "x"}, "unknown field `id`"),
        ({**GOOD, "custom": {"_skipme": 1}}, "unknown field `custom`"),
        ({"messages": [{"role": "user", "content": "a", "name": "x"}]}, "unknown field `name`"),
        ({"messages": [{"role": "user"}]}, "missing required field `content`"),
        ({"messages": [{"content": "a"}]}, "missing required field `role`"),
        (said(("user", None)), r"'messages\[0\].content' has the wrong type"),
        (said(("user", ["a"])), r"'messages\[0\].content' has the wrong type"),
        (said(("user", "a"), ("Assistant", "b")), "message 2 of the row has the role 'Assistant'"),
        (said(("", "b")), "message 1 of the row has the role ''. Write one of system, user"),
        (said(("user", "\ud800")), "not Unicode"),
    ],
)
def test_bad_rows_are_refused(bad: Any, says: str):
    with pytest.raises(BadRowError, match=f"(?i){says}"):
        columns(GOOD, bad, GOOD)
    assert columns(GOOD, GOOD).num_rows == 2


def test_a_row_that_is_not_one_any_more_is_refused():
    for row in ({}, {"messages": 3}, {**GOOD, "x": 1}, said(("bob", "x"))):
        with pytest.raises(ManifestError):
            example(row)


roles = st.sampled_from(["system", "user", "assistant", "tool"])


@given(st.lists(st.tuples(roles, words), min_size=1, max_size=8))
def test_what_is_said_comes_back(messages: list[tuple[str, str]]):
    row = said(*messages)
    assert columns(row).kept.tolist() == [0]
    assert [(turn.role, turn.text) for turn in example(row).turns] == messages
