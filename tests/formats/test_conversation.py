from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.formats import BadRowError, Part, Place, SourcePair, audio_turns
from playhead.formats.conversation import MultimodalConversation
from support.conversation_leaves import TAG, audio_of, said, talk_leaf
from support.text_leaves import json_lines, words

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.formats import Example, RowColumns

TYPE = "multimodal_conversation"
PLAIN = SourcePair(manifest="/data/m.jsonl")
TARRED = SourcePair(manifest="/data/m.jsonl", tars=("/data/audio_3.tar",))
PLACE = Place(leaf="talk", shard="/data/m.jsonl", row=3, byte=70)


def leaf(**tags: Any):
    return talk_leaf(TYPE, tags=tags, manifest="/data/m.jsonl")


def text(value: str = "hello", who: str = "Assistant", **more: Any) -> dict[str, Any]:
    return {"from": who, "type": "text", "value": value, **more}


def audio(value: str = "/a/v.wav", who: str = "User", **more: Any) -> dict[str, Any]:
    return {"from": who, "type": "audio", "value": value, "duration": 1.5, **more}


def row(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "talk-1", "conversations": list(turns), **more}


def columns(*rows: Any, pair: SourcePair = PLAIN) -> RowColumns:
    return MultimodalConversation().columns(leaf(), pair, json_lines(*rows))


def example(of: dict[str, Any], parts: list[Part], **tags: Any) -> Example:
    return MultimodalConversation().example(leaf(**tags), PLACE, json.dumps(of).encode(), parts)


def plain_part(duration_us: int = 1_500_000) -> Part:
    return Part("audio", b"", "", 0, duration_us)


def test_audio_turns_are_columns():
    got = columns(
        row(text(who="User"), audio("/a/v.wav"), text()),
        row(text(who="User"), text()),
        row(
            audio("/a/w.wav", offset=0.25, duration=0.5, sampling_rate=16000),
            audio("/x.flac", "Assistant", duration=None),
            audio("/a/w.wav", duration=2, offset=None),
        ),
    )
    assert got.num_rows == 3
    assert got.kept.tolist() == [0, 1, 2]
    assert got.audios is not None
    assert [[tuple(one) for one in turns] for turns in got.audios] == [
        [(None, "/a/v.wav", 0.0, 1_500_000, 0)],
        [],
        [
            (None, "/a/w.wav", 0.25, 500_000, 0),
            (None, "/x.flac", 0.0, -1, 0),
            (None, "/a/w.wav", 0.0, 2_000_000, 0),
        ],
    ]
    assert got.duration_us.tolist() == [1_500_000, 0, 2_500_000]
    assert got.tar.tolist() == [-1, -1, -1]
    assert got.rate.tolist() == got.num_samples.tolist() == got.channels.tolist() == [0, 0, 0]


def test_paths_are_relative_to_the_manifest(tmp_path: Path):
    (tmp_path / "talk").mkdir()
    (tmp_path / "talk/v.wav").touch()
    pair = SourcePair(manifest=str(tmp_path / "m.jsonl"))
    got = columns(row(audio("talk/v.wav"), audio("s3://b/v.wav"), audio("other.wav")), pair=pair)
    assert got.audios is not None
    paths = [one.path for one in got.audios[0]]
    assert paths == [str(tmp_path / "talk/v.wav"), "s3://b/v.wav", "other.wav"]


def test_with_tars_a_value_is_a_members_name():
    values = ["talk/v.wav", "audio_3.tar/v.wav", "/data/audio_3.tar/a/v.wav", "audio_4.tar/v.wav"]
    got = columns(row(*map(audio, values)), pair=TARRED)
    assert got.audios is not None
    assert [(one.member, one.path, one.tar) for one in got.audios[0]] == [
        ("talk/v.wav", None, 0),
        ("v.wav", None, 0),
        ("a/v.wav", None, 0),
        ("audio_4.tar/v.wav", None, 0),
    ]


def test_skipped_rows_are_counted():
    good = row(text())
    got = columns(
        {**good, "_skipme": "noise"},
        {**good, "_skipme": ""},
        {**good, "custom": {"_skipme": 1}},
        {**good, "custom": {"_skipme": 0, "x": 1}},
        {"_skipme": True},
        {**good, "custom": "text"},
    )
    assert got.kept.tolist() == [1, 3, 5]
    assert got.dropped == {"_skipme": 3}
    assert got.num_rows == 6
    assert got.audios == [[], [], []]
    assert columns({"_skipme": 1}).kept.tolist() == []


BAD: dict[str, tuple[Any, str]] = {
    "no id": ({"conversations": [text()]}, "no id"),
    "no conversations": ({"id": "a"}, "no turns in 'conversations'"),
    "null": (row() | {"conversations": None}, "no turns"),
    "empty": (row(), "no turns"),
    "not a list": ({"id": "a", "conversations": "hi"}, "'conversations' has the wrong type"),
    "a turn that is a text": ({"id": "a", "conversations": ["hi"]}, "has the wrong type"),
    "type": (row(text(), text() | {"type": "video"}), "turn 2 of the row has the type 'video'"),
    "no type": (row({"from": "User", "value": "hi"}), "turn 1 of the row has no type"),
    "audio without value": (row(text(), audio("")), "turn 2 of the row is audio and has no value"),
    "audio with null": (row(audio() | {"value": None}), "is audio and has no value"),
    "text without value": (row({"from": "User", "type": "text"}), "is text and has no value"),
    "text that is a number": (row(text() | {"value": 5}), "value' has the wrong type"),
    "nobody": (row(text() | {"from": None}), "turn 1 of the row has nobody in 'from'"),
    "somebody": (row(text(who="narrator")), "'narrator' in 'from'"),
    "negative": (row(audio(duration=-1)), "duration is -1.0 seconds"),
    "nan": (row(audio(duration=float("nan"))), "duration is nan seconds"),
    "infinite": (row(audio(duration=float("inf"))), "duration is inf seconds"),
    "huge": (row(audio(duration=1e9)), "duration is 1000000000.0 seconds"),
    "text for a duration": (row(audio(duration="1.5")), "duration' has the wrong type"),
    "negative offset": (row(audio(offset=-0.1)), "offset of '/a/v.wav' is -0.1 seconds"),
    "offset nan": (row(audio(offset=float("nan"))), "offset of '/a/v.wav' is nan seconds"),
    "huge offset": (row(audio(offset=2e8)), "offset of '/a/v.wav' is 200000000.0 seconds"),
    "rate": (row(audio(sampling_rate=-1)), "sampling rate is -1.0 Hz"),
    "in an archive": (row(audio("/d/a.tar/v.wav")), "'/d/a.tar/v.wav' lies in an archive"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_refused(name: str):
    bad, says = BAD[name]
    good = row(audio(), text())
    with pytest.raises(BadRowError, match=f"(?i){says}") as raised:
        columns(good, bad, good)
    assert raised.value.fix
    assert columns(good, good).num_rows == 2


def test_a_row_becomes_turns():
    got = example(
        row(
            text("listen", "SYSTEM"),
            text("what is that?", "human"),
            audio("talk/v.wav", "user", text="a bell", sampling_rate=8000),
            audio("talk/w.wav", "USER", offset=0.25, duration=0.5),
            text(" as it stands\n", "gpt"),
            text("{}", "tool"),
        ),
        [plain_part(), plain_part(500_000)],
    )
    assert (got.id, got.kind, got.text, got.language, got.audio) == (
        "talk-1",
        "conversation",
        None,
        None,
        None,
    )
    assert said(got) == [
        ("system", "listen"),
        ("user", "what is that?"),
        ("user", "<v>"),
        ("user", "<w_0.250_0.500>"),
        ("assistant", " as it stands\n"),
        ("tool", "{}"),
    ]
    bell, late = audio_turns(got)
    assert (bell.text, bell.locator, bell.duration) == ("a bell", TAG, 1.5)
    assert (late.text, late.locator, late.duration) == (None, TAG, 0.5)
    assert bell.audio is not None
    assert (bell.audio.kind, bell.audio.text, bell.audio.turns) == ("cut", "a bell", ())
    first, second = audio_of(got)
    assert (first.source, first.start, first.duration) == ("talk/v.wav", 0.0, 1.5)
    assert (first.channel, first.sampling_rate) == (None, 8000)
    assert (second.start, second.duration, second.sampling_rate) == (0.25, 0.5, None)


@pytest.mark.parametrize(
    ("turn", "duration_us", "called", "seconds"),
    [
        (audio("a/b.c.flac"), 1_500_000, "b.c", 1.5),
        (audio("b"), 1_500_000, "b", 1.5),
        (audio("b.wav", offset=0), 1_500_000, "b", 1.5),
        (audio("b.wav", offset=None), 1_500_000, "b", 1.5),
        (audio("b.wav", offset=1), 1_500_000, "b_1.000_1.500", 1.5),
        (audio("b.wav", offset=0.0004), 1_500_000, "b_0.000_1.500", 1.5),
        # What the row does not say the index has measured.
        (audio("b.wav", duration=None), 2_250_000, "b", 2.25),
        (audio("b.wav", duration=None, offset=0.5), 2_250_000, "b_0.500_2.250", 2.25),
        (audio("b.wav", duration=1 / 3), 333_333, "b", 0.333333),
    ],
)
def test_how_audio_turns_are_called(
    turn: dict[str, Any], duration_us: int, called: str, seconds: float
):
    got = example(row(turn), [plain_part(duration_us)])
    assert said(got) == [("user", f"<{called}>")]
    assert got.turns[0].duration == seconds
    # What nobody declared is as long as it was measured.
    assert audio_of(got)[0].duration == (turn["duration"] or seconds)


def test_lengths_are_the_same_where_nobody_asked_for_audio():
    got = example(row(audio(duration=1 / 3), audio(duration=None, offset=0.5)), [])
    assert [turn.duration for turn in got.turns] == [0.333333, None]
    assert [turn.audio is not None for turn in got.turns] == [True, True]
    assert audio_of(got) == [None, None]


def test_members_of_tars():
    parts = [
        Part("audio", b"bytes", "/data/audio_3.tar", 512, 1_500_000),
        # Without bytes where no audio is wanted.
        Part("audio", b"", "/data/audio_3.tar", 2048, 1_500_000),
    ]
    got = example(row(audio("talk/v.wav"), audio("talk/w.wav")), parts)
    first, second = (turn.audio for turn in got.turns)
    assert first is not None
    assert second is not None
    assert first.audio is not None
    assert first.audio.source == b"bytes"
    assert second.audio is None
    assert (second.place.member, second.place.member_byte) == ("/data/audio_3.tar/talk/w.wav", 2048)
    assert second.place.row == PLACE.row


def test_messages_name_plain_files_too():
    got = example(row(audio("/talk/v.wav")), [plain_part()])
    assert got.turns[0].audio is not None
    assert got.turns[0].audio.place.member == "/talk/v.wav"


def test_everything_else_is_custom():
    of = row(text(), custom={"x": 1, "_skipme": 0}, lang="de", x=2, task="b", _skipme="")
    assert example(of, [], task="a").custom == {"x": 1, "lang": "de", "task": "a"}
    assert example(row(text(), custom="note"), []).custom == {"custom": "note"}
    assert example(row(text(), custom=None), []).custom == {}


def test_ids_may_be_numbers():
    assert example({**row(text()), "id": 7}, []).id == "7"


def roles(*turns: dict[str, Any], **tags: Any) -> list[tuple[str, str | None]]:
    parts = [plain_part() for turn in turns if turn["type"] == "audio"]
    return said(example(row(*turns), parts, **tags))


def test_a_context_is_written_before_what_is_spoken_first():
    spoken, heard = ("user", "<v>"), ("user", "what?")
    assert roles(audio(), context="what?") == [heard, spoken]
    assert roles(text("hi", "User"), audio(), context="what?")[0] == ("user", "hi")
    assert roles(audio(who="Assistant"), context="what?") == [("assistant", "<v>")]
    assert roles(text("be brief", "System"), audio(), context="what?")[0][0] == "system"


def test_system_prompts():
    brief, kind = ("system", "be brief"), ("system", "be kind")
    mine = [text("be brief", "System"), text("hi", "User"), text("be loud", "System")]
    assert roles(text("hi", "User"), system_prompt="be kind") == [kind, ("user", "hi")]
    assert roles(*mine, system_prompt="be kind")[0] == brief
    over = {"system_prompt": "be kind", "override_system_prompt": True}
    assert roles(*mine, **over) == [kind, ("user", "hi")]
    assert roles(*mine, override_system_prompt=True)[0] == brief
    both = roles(audio(), system_prompt="be kind", context="what?")
    assert both == [kind, ("user", "what?"), ("user", "<v>")]


@pytest.mark.parametrize(
    "tags", [{"system_prompt": 5}, {"context": ["x"]}, {"override_system_prompt": "yes"}]
)
def test_tags_that_are_no_prompts(tags: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(tags))):
        MultimodalConversation().sources(leaf(**tags))


def test_sources_are_pairs():
    paths = {"manifest": ["/a.jsonl", "/b.jsonl"], "tar": ["/x.tar", "/y.tar"]}
    pairs = MultimodalConversation().sources(talk_leaf(TYPE, **paths))
    assert [pair.files for pair in pairs] == [("/a.jsonl", "/x.tar"), ("/b.jsonl", "/y.tar")]
    alone = MultimodalConversation().sources(talk_leaf(TYPE, manifest=paths["manifest"]))
    assert [pair.files for pair in alone] == [("/a.jsonl",), ("/b.jsonl",)]


TURNS = st.lists(
    st.one_of(
        st.builds(text, words, st.sampled_from(["User", "assistant", "SYSTEM", "tool"])),
        st.builds(
            audio,
            st.sampled_from(["/a/v.wav", "/w.flac", "/ü v.wav"]),
            st.sampled_from(["User", "Assistant"]),
            offset=st.one_of(st.none(), st.floats(0, 9)),
            duration=st.one_of(st.none(), st.floats(0, 100)),
        ),
    ),
    min_size=1,
    max_size=6,
)


@given(st.lists(TURNS, min_size=1, max_size=4))
def test_columns_and_samples_agree(conversations: list[list[dict[str, Any]]]):
    rows = [row(*turns) for turns in conversations]
    got = columns(*rows)
    assert got.audios is not None
    for of, audios in zip(rows, got.audios, strict=True):
        spoken = [turn for turn in of["conversations"] if turn["type"] == "audio"]
        assert [one.path for one in audios] == [turn["value"] for turn in spoken]
        parts = [plain_part(max(one.duration_us, 0)) for one in audios]
        turns = example(of, parts).turns
        assert [turn.role for turn in turns] == [
            turn["from"].lower() for turn in of["conversations"]
        ]
        assert [turn.text for turn in turns if turn.audio is None] == [
            turn["value"] for turn in of["conversations"] if turn["type"] == "text"
        ]
        for turn, one in zip(audio_turns(example(of, parts)), audios, strict=True):
            assert turn.audio is not None
            assert turn.audio.audio is not None
            assert (turn.audio.audio.source, turn.audio.audio.start) == (one.path, one.start)
            assert turn.duration == max(one.duration_us, 0) / 1e6
        if all(one.duration_us >= 0 for one in audios):
            # Nothing depends on whether the parts are there.
            assert [turn.duration for turn in example(of, []).turns] == [
                turn.duration for turn in turns
            ]


@given(TURNS, st.integers(0, 6), st.sampled_from(sorted(BAD)))
def test_one_bad_turn_makes_a_bad_row(turns: list[dict[str, Any]], at: int, name: str):
    bad = BAD[name][0].get("conversations")
    if not isinstance(bad, list) or not bad or name == "no id":
        return
    with pytest.raises(BadRowError):
        columns(row(*turns[:at], bad[-1], *turns[at:]))
