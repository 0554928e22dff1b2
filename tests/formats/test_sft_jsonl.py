from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from playhead.formats import BadRowError, SourcePair
from playhead.formats.sft_jsonl import NemoSft
from support.text_leaves import PLACE, json_lines, text_leaf, words

PAIR = SourcePair(manifest="/data/web_3.jsonl")


def leaf(language: object = "en", paths: object = "/data/a.jsonl", **options: Any):
    return text_leaf("nemo_sft_jsonl", own={"language": language}, text=paths, **options)


def columns(*rows: Any):
    return NemoSft().columns(leaf(), PAIR, json_lines(*rows))


def example(row: Any, **options: Any):
    return NemoSft().example(leaf(**options), PLACE, json.dumps(row).encode(), [])


def said(*turns: tuple[Any, Any]) -> list[dict]:
    return [{"from": sender, "value": value} for sender, value in turns]


GOOD = {"conversations": said(("User", "a"), ("Assistant", "b"))}


def test_sources():
    assert NemoSft().sources(leaf(None)) == [SourcePair(manifest="/data/a.jsonl")]
    with pytest.raises(ConfigError, match="this is a tar"):
        NemoSft().sources(leaf(paths="/a.tar"))
    with pytest.raises(ConfigError, match="has 5 as its `language`"):
        NemoSft().sources(leaf(5))


def test_a_row_becomes_turns():
    row = {
        "system": "be kind",
        "mask": "User",
        "dataset": "d",
        "_skipme": "",
        "conversations": [
            {"from": "User", "value": "a", "canonical_form": "c", "label": None},
            {"from": "Assistant", "value": "b"},
            {"from": "user", "value": ""},
            {"from": "GPT", "value": "d"},
        ],
    }
    got = example(row, tags={"task": "chat"})
    assert (got.kind, got.id, got.text, got.language) == ("sft", "web_3-41", None, "en")
    assert [(turn.role, turn.text) for turn in got.turns] == [
        ("system", "be kind"),
        ("user", "a"),
        ("assistant", "b"),
        ("user", ""),
        ("assistant", "d"),
    ]
    assert all(turn.audio is None for turn in got.turns)
    assert got.custom == {"mask": "User", "dataset": "d", "task": "chat"}
    assert example({**GOOD, "id": "x"}).id == "x"


def test_without_a_system_prompt_there_is_no_system_turn():
    for system in ({}, {"system": ""}, {"system": None}):
        assert [turn.role for turn in example({**GOOD, **system}).turns] == ["user", "assistant"]
    own = {"conversations": said(("System", "s"), ("human", "a"), ("tool", "t"))}
    assert [turn.role for turn in example(own).turns] == ["system", "user", "tool"]


def test_skipped_rows_are_counted_whatever_they_hold():
    got = columns(
        GOOD,
        {"_skipme": "empty"},
        {**GOOD, "_skipme": ""},
        {"conversations": [], "custom": {"_skipme": 1}},
    )
    assert (got.num_rows, got.kept.tolist(), got.dropped) == (4, [0, 2], {"_skipme": 2})


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"conversations": []}, "no turns in 'conversations'"),
        ({"conversation": GOOD["conversations"]}, "no turns in 'conversations'"),
        ({"conversations": "a"}, "'conversations' has the wrong type"),
        ({"conversations": said(("User", 5))}, r"'conversations\[0\].value' has the wrong type"),
        ({"conversations": said(("User", "a"), ("Assistant", None))}, "turn 2 .* no 'value'"),
        ({"conversations": said(("Alice", "a"))}, "turn 1 of the row has 'Alice' in 'from'. Name"),
        ({"conversations": said((None, "a"))}, "turn 1 of the row has nobody in 'from'"),
        ({"conversations": [{"value": "a"}]}, "turn 1 of the row has nobody in 'from'"),
        ({"conversations": ["a"]}, r"'conversations\[0\]' has the wrong type"),
        ({**GOOD, "system": ["x"]}, "'system' has the wrong type"),
        ({"conversations": said(("User", "\udc00"))}, "not Unicode"),
    ],
)
def test_bad_rows_are_refused(bad: Any, says: str):
    with pytest.raises(BadRowError, match=f"(?i){says}"):
        columns(GOOD, bad, GOOD)
    assert columns(GOOD, GOOD).num_rows == 2


def test_a_row_that_is_not_one_any_more_is_refused():
    for row in ({}, {"conversations": 3}, {"conversations": said(("Bob", "x"))}):
        with pytest.raises(ManifestError):
            example(row)


senders = st.sampled_from(["User", "Assistant"])


@given(st.lists(st.tuples(senders, words), min_size=1, max_size=8), words)
def test_what_is_said_comes_back(turns: list[tuple[str, str]], system: str):
    row = {"conversations": said(*turns), "system": system}
    assert columns(row).kept.tolist() == [0]
    expected = [("system", system)] if system else []
    expected += [(sender.lower(), value) for sender, value in turns]
    assert [(turn.role, turn.text) for turn in example(row).turns] == expected
