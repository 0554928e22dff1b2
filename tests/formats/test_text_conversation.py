from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ManifestError, SourceNotFoundError
from playhead.formats import BadRowError, Sample, SourcePair
from playhead.formats.text_conversation import NemotronText
from support.text_leaves import PLACE, json_lines, text_leaf, words

if TYPE_CHECKING:
    from pathlib import Path

PAIR = SourcePair(manifest="/data/web_3.jsonl")


def leaf(paths: object = "/data/a.jsonl", **options: Any):
    return text_leaf("nemotron_text_converation", text=paths, **options)


def columns(*rows: Any):
    return NemotronText().columns(leaf(), PAIR, json_lines(*rows))


def example(row: Any, place=PLACE, **options: Any):
    return NemotronText().example(leaf(**options), place, json.dumps(row).encode(), [])


def turn(sender: Any, *fragments: Any) -> dict:
    return {"sender": sender, "fragments": list(fragments)}


GOOD = {"conversation": [turn("User", "a"), turn("Assistant", "b")]}


def test_sources_are_files_and_what_folders_hold(tmp_path: Path):
    for name in ("b.tar", "a/1.tar", "a-b/1.tar", "a/0.tar", "a/0.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "c.tar").mkdir()
    got = NemotronText().sources(leaf(["/data/x.jsonl", tmp_path, tmp_path / "b.tar"]))
    assert [pair.manifest for pair in got] == [
        "/data/x.jsonl",
        *(str(tmp_path / name) for name in ("a/0.tar", "a/1.tar", "a-b/1.tar", "b.tar", "b.tar")),
    ]
    with pytest.raises(SourceNotFoundError, match=r"no tars in the folder \(.*c\.tar\)"):
        NemotronText().sources(leaf(tmp_path / "c.tar"))


def test_members_that_are_rows():
    names = ["a/0.json", "a/0.txt", "README", "1.json"]
    assert list(NemotronText().samples(leaf(), names)) == [Sample(0), Sample(3)]
    assert NemotronText.rows_are_members is True


def test_a_row_becomes_turns():
    row = {
        "id": "talk",
        "source": "web",
        "custom": {"score": 1.5, "task": "x"},
        "conversation": [
            turn("system", {"value": "be "}, {"t": "text", "value": "kind"}),
            turn("Human", "a", "", " b"),
            turn("bot", {"t": None, "value": "c\n"}),
            turn("TOOL", "{}"),
            turn("model", "d"),
        ],
    }
    got = example(row, tags={"task": "chat"})
    assert (got.kind, got.id, got.text, got.language) == ("conversation", "talk", None, None)
    assert [(one.role, one.text) for one in got.turns] == [
        ("system", "be kind"),
        ("user", "a b"),
        ("assistant", "c\n"),
        ("tool", "{}"),
        ("assistant", "d"),
    ]
    assert got.custom == {"source": "web", "score": 1.5, "task": "chat"}


def test_ids():
    assert example(GOOD).id == "web_3-000000000041"
    assert example({**GOOD, "id": 7}).id == "7"
    assert example({**GOOD, "id": ""}).id == "web_3-000000000041"
    member = replace(PLACE, member="/data/web_3.tar/talks/x.y.json")
    assert example(GOOD, member).id == "x.y"
    assert example({**GOOD, "id": "own"}, member).id == "own"


def test_a_member_may_have_many_lines():
    row = json.dumps(GOOD, indent=2).encode()
    assert NemotronText().example(leaf(), PLACE, row, []).turns == example(GOOD).turns


def test_skipped_rows_are_counted_whatever_they_hold():
    got = columns(
        GOOD,
        {"_skipme": "empty"},
        {**GOOD, "custom": {"_skipme": ""}},
        {"conversation": [], "custom": {"_skipme": 1}},
    )
    assert (got.num_rows, got.kept.tolist(), got.dropped) == (4, [0, 2], {"_skipme": 2})


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"conversation": []}, "no turns in 'conversation'"),
        ({"conversations": GOOD["conversation"]}, "no turns in 'conversation'"),
        ({"conversation": {"sender": "User"}}, "'conversation' has the wrong type"),
        ({"conversation": [turn("Alice", "a")]}, "turn 1 of the row has 'Alice' in 'sender'. Name"),
        ({"conversation": [{"fragments": ["a"]}]}, "turn 1 of the row has nobody in 'sender'"),
        ({"conversation": [turn("User")]}, "turn 1 of the row has no fragments"),
        ({"conversation": [{"sender": "User"}]}, "turn 1 of the row has no fragments"),
        ({"conversation": [turn("User", 5)]}, r"fragments\[0\]' has the wrong type"),
        ({"conversation": [turn("User", "a", None)]}, r"fragments\[1\]' has the wrong type"),
        (
            {"conversation": [turn("User", "a"), turn("bot", {"t": "image", "value": "x"})]},
            "fragment in turn 2 of the row has the type 'image'. Only text",
        ),
        ({"conversation": [turn("User", {"t": "text"})]}, "fragment in turn 1 .* no value"),
        ({"conversation": [turn("User", {"value": 3})]}, "value' has the wrong type"),
        ({**GOOD, "id": {"a": 1}}, "'id' has the wrong type"),
        ({"conversation": [turn("User", {"value": "\ud800"})]}, "not Unicode"),
    ],
)
def test_bad_rows_are_refused(bad: Any, says: str):
    with pytest.raises(BadRowError, match=f"(?i){says}"):
        columns(GOOD, bad, GOOD)
    assert columns(GOOD, GOOD).num_rows == 2


def test_a_row_that_is_not_one_any_more_is_refused():
    for row in ({}, {"conversation": 3}, {"conversation": [turn("Bob", "x")]}):
        with pytest.raises(ManifestError):
            example(row)


roles = st.sampled_from(["user", "assistant", "system", "tool"])
fragments = st.lists(words, min_size=1, max_size=3)


@given(st.lists(st.tuples(roles, fragments, st.booleans()), min_size=1, max_size=6))
def test_what_is_said_comes_back(said: list[tuple[str, list[str], bool]]):
    row = {
        "conversation": [
            turn(role.title(), *({"t": "text", "value": text} if boxed else text for text in texts))
            for role, texts, boxed in said
        ]
    }
    assert columns(row, row).kept.tolist() == [0, 1]
    assert [(one.role, one.text) for one in example(row).turns] == [
        (role, "".join(texts)) for role, texts, _ in said
    ]
