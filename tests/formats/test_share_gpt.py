from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.errors import ConfigError
from playhead.formats import BadRowError, Part, Place, SourcePair, audio_turns
from playhead.formats.share_gpt import ShareGpt
from support.conversation_leaves import TAG, audio_of, said, talk_leaf
from support.text_leaves import json_lines, words

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.formats import Example, RowColumns

TYPE = "share_gpt"
PLAIN = SourcePair(manifest="/data/m.jsonl")
TARRED = SourcePair(manifest="/data/m.jsonl", tars=("/data/a.tar", "/data/b.tar"))
PLACE = Place(leaf="talk", shard="/data/m.jsonl", row=3, byte=70)
MANY = ["/1.wav", "/2.wav", "/3.wav"]


def turn(who: str, value: str, **more: Any) -> dict[str, Any]:
    return {"from": who, "value": value, **more}


def row(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "share-1", "conversations": list(turns), **more}


def asked(value: str, **more: Any) -> dict[str, Any]:
    return row(turn("human", value), turn("gpt", "yes"), **more)


def columns(*rows: Any, pair: SourcePair = PLAIN, **own: Any) -> RowColumns:
    leaf = talk_leaf(TYPE, own=own, manifest=pair.manifest, tar=list(pair.tars))
    return ShareGpt().columns(leaf, pair, json_lines(*rows))


def spoken(of: dict[str, Any], **own: Any) -> list[tuple[str | None, float, int]]:
    """Path, offset and length of each audio turn of a row."""
    audios = columns(of, **own).audios
    assert audios is not None
    return [(one.path, one.start, one.duration_us) for one in audios[0]]


def example(of: dict[str, Any], tags: dict[str, Any] | None = None, **own: Any) -> Example:
    leaf = talk_leaf(TYPE, own=own, tags=tags, manifest="/data/m.jsonl")
    parts = [Part("audio", b"", "", 0, 1_500_000) for _ in spoken(of, **own)]
    return ShareGpt().example(leaf, PLACE, json.dumps(of).encode(), parts)


def turns(*of: dict[str, Any], **more: Any) -> list[tuple[str, str | None]]:
    return said(example(row(*of, **more)))


def test_a_placeholder_stands_for_audio():
    assert turns(turn("human", " what is \n<sound> here? "), turn("gpt", "A bell."), sound="/v.wav")
    assert said(example(asked(" what is \n<sound> here? ", sound="/a/v.wav"))) == [
        ("user", "what is"),
        ("user", "<v>"),
        ("user", "here?"),
        ("assistant", "yes"),
    ]


def test_several_placeholders_of_several_kinds():
    got = example(asked("a <speech> b <sound><sound> c", sound=MANY))
    assert said(got) == [
        ("user", "a"),
        ("user", "<1>"),
        ("user", "b"),
        ("user", "<2>"),
        ("user", "<3>"),
        ("user", "c"),
        ("assistant", "yes"),
    ]
    assert {one.locator for one in audio_turns(got)} == {TAG}


def test_one_file_serves_all_placeholders():
    both = row(turn("human", "<sound>"), turn("gpt", "a"), turn("user", "and <sound>?"))
    assert [path for path, _, _ in spoken({**both, "sound": "/v.wav"})] == ["/v.wav", "/v.wav"]
    assert [path for path, _, _ in spoken({**both, "sound": ["/v.wav"]})] == ["/v.wav", "/v.wav"]


def test_files_in_order_reach_over_turns():
    three = row(turn("human", "<sound> <sound>"), turn("gpt", "a"), turn("human", "<speech>"))
    assert [path for path, _, _ in spoken({**three, "sound": MANY})] == MANY


def test_all_files_at_the_only_placeholder():
    assert said(example(asked("a <sound> b", sound=MANY))) == [
        ("user", "a"),
        ("user", "<1>"),
        ("user", "<2>"),
        ("user", "<3>"),
        ("user", "b"),
        ("assistant", "yes"),
    ]


@pytest.mark.parametrize(
    ("who", "role"),
    [
        ("human", "user"),
        ("User", "user"),
        ("HUMAN", "user"),
        ("system", "system"),
        ("System", "system"),
        ("gpt", "assistant"),
        ("assistant", "assistant"),
        ("tool", "assistant"),
    ],
)
def test_roles(who: str, role: str):
    got = turns(turn(who, "one <sound>"), sound="/v.wav")
    # Only the user speaks; elsewhere a placeholder is text.
    expected = [(role, "one"), (role, "<v>")] if role == "user" else [(role, "one <sound>")]
    assert got == expected


def test_texts_are_stripped():
    assert turns(turn("human", "\n <sound>\n "), turn("gpt", " yes\n"), sound="/v.wav") == [
        ("user", "<v>"),
        ("assistant", "yes"),
    ]
    # Where there is no placeholder, an empty text is a turn.
    assert turns(turn("human", " "), turn("gpt", "")) == [("user", ""), ("assistant", "")]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"sound": "/a.wav", "speech": "/b.wav", "ori_sound": "/c.wav"}, "/a.wav"),
        ({"ori_sound": "/c.wav", "speech": "/b.wav"}, "/b.wav"),
        ({"sound": "", "speech": [], "ori_sound": "/c.wav"}, "/c.wav"),
        ({"sound": None, "speech": ["/b.wav"]}, "/b.wav"),
    ],
)
def test_which_field_names_the_audio(fields: dict[str, Any], path: str):
    assert spoken(asked("<sound>", **fields)) == [(path, 0.0, -1)]


def test_placeholders_of_ones_own():
    assert said(example(asked("a <sound>|A|b", sound="/v.wav"), audio_placeholders="|A|")) == [
        ("user", "a <sound>"),
        ("user", "<v>"),
        ("user", "b"),
        ("assistant", "yes"),
    ]
    # The first one in the text, and among those at one place the first in the list.
    own = {"audio_placeholders": ["<a>", "<a>b", "*"]}
    assert said(example(asked("*<a>b", sound="/v.wav"), **own)) == [
        ("user", "<v>"),
        ("user", "<v>"),
        ("user", "b"),
        ("assistant", "yes"),
    ]


def test_lengths_and_offsets_stand_in_the_turn():
    of = row(
        turn("human", "<sound>", duration=2, offset=0.5, sampling_rate=8000),
        turn("gpt", "a"),
        turn("human", "<sound>", duration=[1.0], offset=None),
        sound="/v.wav",
        duration=9,
    )
    assert spoken(of) == [("/v.wav", 0.5, 2_000_000), ("/v.wav", 0.0, 1_000_000)]
    first, second = audio_of(example(of))
    assert (first.start, first.duration, first.sampling_rate) == (0.5, 2.0, 8000)
    assert (second.start, second.duration, second.sampling_rate) == (0.0, 1.0, None)


def test_lists_of_lengths_are_those_of_files():
    at_once = turn("human", "<sound>", duration=[1, None, 3], offset=[0.25, 0, None])
    assert spoken(row(at_once, sound=MANY)) == [
        ("/1.wav", 0.25, 1_000_000),
        ("/2.wav", 0.0, -1),
        ("/3.wav", 0.0, 3_000_000),
    ]
    # The second turn has the third file.
    of = row(
        turn("human", "<sound><sound>", duration=[1, 2]),
        turn("human", "<sound>", duration=[1, 2, 3]),
        sound=MANY,
    )
    assert [length for _, _, length in spoken(of)] == [1_000_000, 2_000_000, 3_000_000]


def test_rows_without_audio():
    got = columns(asked("hi"), asked("hi", sound="/v.wav"))
    assert got.audios == [[], []]
    assert got.duration_us.tolist() == [0, 0]
    assert said(example(asked("hi"))) == [("user", "hi"), ("assistant", "yes")]


def test_skipped_rows_are_counted():
    got = columns(
        asked("a"), {**asked("b"), "_skipme": "x"}, {**asked("c"), "custom": {"_skipme": 1}}
    )
    assert got.kept.tolist() == [0]
    assert got.dropped == {"_skipme": 2}
    assert columns({"_skipme": 1}).num_rows == 1


BAD: dict[str, tuple[Any, str]] = {
    "no conversations": ({"id": "a", "sound": "/v.wav"}, "no turns in 'conversations'"),
    "empty": (row(), "no turns in 'conversations'"),
    "no path": (asked("<sound> and <speech>"), "2 placeholders for audio and names no audio"),
    "empty paths": (asked("<sound>", sound="", speech=[]), "names no audio"),
    "an empty path": (asked("<sound>", sound=["/a.wav", ""]), "'sound' holds an empty path"),
    "a path that is a number": (asked("<sound>", sound=5), "'sound' has the wrong type"),
    "paths that are numbers": (asked("<sound>", sound=[5]), "sound.* has the wrong type"),
    "too many files": (asked("<sound><sound>", sound=MANY), "3 audio files and has 2 placeh"),
    "too few files": (asked("<sound>" * 3, sound=MANY[:2]), "2 audio files and has 3 placeh"),
    "nobody": (row({"value": "hi"}), "turn 1 of the row has nobody"),
    "an empty name": (row(turn("gpt", "a"), turn("", "b")), "turn 2 of the row has nobody"),
    "no value": (row({"from": "gpt"}), "turn 1 of the row has no value"),
    "a value that is a list": (row(turn("gpt", "a") | {"value": ["a"]}), "value' has the wrong"),
    "a turn that is a text": (row() | {"conversations": ["a"]}, "has the wrong type"),
    "too few lengths": (
        row(turn("human", "<sound>", duration=[1, 2]), sound=MANY),
        "duration of a turn has 2 values, and file 3",
    ),
    "no lengths": (
        row(turn("human", "<sound>", offset=[]), sound="/v.wav"),
        "offset of a turn has 0 values, and file 1",
    ),
    "negative": (row(turn("human", "<sound>", duration=-1), sound="/v.wav"), "duration is -1.0"),
    "nan": (row(turn("human", "<sound>", duration=float("nan")), sound="/v.wav"), "is nan"),
    "huge": (row(turn("human", "<sound>", duration=[1e9]), sound="/v.wav"), "is 1000000000.0"),
    "offset": (
        row(turn("human", "<sound>", offset=-1), sound="/v.wav"),
        "offset of '/v.wav' is -1.0 seconds",
    ),
    "offset nan": (
        row(turn("human", "<sound>", offset=float("nan")), sound="/v.wav"),
        "offset of '/v.wav' is nan seconds",
    ),
    "rate": (row(turn("human", "<sound>", sampling_rate=0.5), sound="/v.wav"), "rate is 0.5 Hz"),
    "in an archive": (asked("<sound>", sound="/d/a.tar/v.wav"), "lies in an archive"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_refused(name: str):
    bad, says = BAD[name]
    good = asked("<sound>", sound="/v.wav")
    with pytest.raises(BadRowError, match=f"(?i){says}") as raised:
        columns(good, bad, good)
    assert raised.value.fix
    assert columns(good, good).num_rows == 2


def test_ids_and_custom():
    of = asked("hi", lang="de", custom={"x": 1, "_skipme": 0})
    got = example(of, tags={"task": "chat"})
    assert (got.id, got.kind, got.audio) == ("share-1", "conversation", None)
    assert got.custom == {"lang": "de", "x": 1, "task": "chat"}
    del of["id"]
    assert example(of).id == "missing-example-id"
    assert example({**of, "id": 5}).id == "5"


def test_system_prompts():
    mine = [turn("system", "be brief"), turn("human", "hi")]
    kind = ("system", "be kind")
    assert said(example(row(mine[1]), tags={"system_prompt": "be kind"}))[0] == kind
    assert said(example(row(*mine), tags={"system_prompt": "be kind"}))[0] == (
        "system",
        "be brief",
    )
    over = {"system_prompt": "be kind", "override_system_prompt": True}
    assert said(example(row(*mine), tags=over)) == [kind, ("user", "hi")]
    # This one is not for conversations of this type.
    got = said(example(asked("<sound>", sound="/v.wav"), tags={"context": "listen"}))
    assert got[0] == ("user", "<v>")


def test_files_below_a_root(tmp_path: Path):
    for name in ("root/v.wav", "beside/v.wav", "beside/w.wav"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    pair = SourcePair(manifest=str(tmp_path / "beside/m.jsonl"))
    of = asked("<sound>", sound="v.wav")
    for own, folder in (({}, "beside"), ({"audio_root": str(tmp_path / "root")}, "root")):
        audios = columns(of, pair=pair, **own).audios
        assert audios is not None
        assert audios[0][0].path == str(tmp_path / folder / "v.wav")


def test_paths_whose_beginning_is_another_now():
    own = {"audio_path_prefix_map": {"/old": "/new"}}
    assert spoken(asked("<sound>", sound="/old/v.wav"), **own) == [("/new/v.wav", 0.0, -1)]
    assert audio_of(example(asked("<sound>", sound="/old/v.wav"), **own))[0].source == "/new/v.wav"


def test_members_of_tars():
    got = columns(asked("<sound><sound>", sound=["v.wav", "b.tar/w.wav"]), pair=TARRED)
    assert got.audios is not None
    assert [(one.member, one.tar, one.path) for one in got.audios[0]] == [
        ("v.wav", 0, None),
        ("w.wav", 1, None),
    ]


def test_a_collection_of_tars():
    own = {"tar_lookup_mode": "collection"}
    got = columns(asked("<sound><sound>", sound=["v.wav", "b.tar/w.wav"]), pair=TARRED, **own)
    assert got.audios is not None
    assert [(one.member, one.tar) for one in got.audios[0]] == [("v.wav", -1), ("w.wav", 1)]


def sources(own: dict[str, Any] | None = None, **paths: Any) -> list[tuple[str, ...]]:
    return [pair.files for pair in ShareGpt().sources(talk_leaf(TYPE, own=own, **paths))]


def test_every_manifest_has_a_tar_or_all_of_them():
    paths = {"manifest": ["/a.jsonl", "/b.jsonl"], "tar": ["/x.tar", "/y.tar", "/z.tar"]}
    tars = tuple(paths["tar"])
    assert sources({"tar_lookup_mode": "collection"}, **paths) == [
        ("/a.jsonl", *tars),
        ("/b.jsonl", *tars),
    ]
    with pytest.raises(ConfigError, match=r"2 manifests .* 3 tars"):
        sources(**paths)
    both = {**paths, "tar": tars[:2]}
    assert sources({"tar_lookup_mode": "paired"}, **both) == sources(**both)
    assert sources(**both) == [("/a.jsonl", "/x.tar"), ("/b.jsonl", "/y.tar")]
    assert sources(manifest="/a.jsonl") == [("/a.jsonl",)]


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"tar_lookup_mode": "all"}, "tar_lookup_mode is 'all'"),
        ({"tar_lookup_mode": "collection"}, "collection and there are no tars"),
        ({"tar_lookup_mode": "paired"}, "paired and there are no tars"),
        ({"tar_routing_filepath": "a.sgroute", "tar_routing_index": "b.sgroute"}, "name two files"),
        ({"audio_placeholders": []}, "audio_placeholders is"),
        ({"audio_placeholders": ""}, "audio_placeholders is"),
        ({"audio_placeholders": ["<sound>", ""]}, "audio_placeholders is"),
        ({"audio_placeholders": 5}, "audio_placeholders is 5"),
        ({"audio_placeholders": {"a": 1}}, "audio_placeholders is"),
        ({"audio_root": 5}, "audio_root is 5"),
        ({"audio_path_prefix_map": {"old": "/new"}}, "audio_path_prefix_map cannot take 'old'"),
        ({"excluded_manifest_lines": [0]}, "excluded_manifest_lines is"),
    ],
)
def test_options_that_cannot_be(own: dict[str, Any], says: str):
    with pytest.raises(ConfigError, match=says):
        sources(own, manifest="/a.jsonl")


def test_one_routing_file_may_have_two_names():
    own = {"tar_routing_filepath": "./a.sgroute", "tar_routing_index": "a.sgroute"}
    assert sources(own, manifest="/a.jsonl") == [("/a.jsonl",)]


# What the user says: texts and placeholders, one after another.
TALK = st.lists(
    st.one_of(words, st.sampled_from(["<sound>", "<speech>", "<soun", "d>"])), max_size=6
).map("".join)


def by_hand(value: str) -> list[str | None]:
    """The texts of a turn, None where audio is; found by looking at one character after another."""
    found: list[str | None] = [""]
    at = 0
    while at < len(value):
        mark = next((m for m in ("<sound>", "<speech>") if value.startswith(m, at)), None)
        if mark is None:
            found[-1] = f"{found[-1]}{value[at]}"
            at += 1
        else:
            found += [None, ""]
            at += len(mark)
    return found


@given(st.lists(TALK, min_size=1, max_size=4), st.integers(1, 4))
def test_placeholders_and_files_by_hand(values: list[str], num_files: int):
    files = [f"/{number}.wav" for number in range(num_files)]
    split = [by_hand(value) for value in values]
    wanted = sum(part is None for parts in split for part in parts)
    of = row(*(turn("human", value) for value in values), sound=files)
    if num_files > 1 and wanted > 1 and num_files != wanted:
        with pytest.raises(BadRowError, match=f"{num_files} audio files and has {wanted} placeh"):
            columns(of)
        return
    expected: list[tuple[str, str | None]] = []
    left = iter(range(num_files))
    for parts in split:
        for part in parts:
            if part is None and num_files == 1:
                expected.append(("user", "<0>"))
            elif part is None:
                some = range(num_files) if wanted == 1 else [next(left)]
                expected += [("user", f"<{number}>") for number in some]
            elif part.strip() or len(parts) == 1:
                expected.append(("user", part.strip()))
    assert said(example(of)) == expected
    named = [f"<{path.removesuffix('.wav')[1:]}>" for path, _, _ in spoken(of) if path]
    assert named == [who for _, who in expected if who and who.strip("<>").isdigit() and "<" in who]
