"""What texts and conversations are: their turns, audio, lengths, and which of them are kept."""

from __future__ import annotations

import io
from typing import Any

import pytest
import soundfile as sf

import playhead
from peer.nemo_reading import digest_of
from support.corpus import write_jsonl, write_tar
from support.talk import TAG, seconds_of, voice, write_lines, write_voice
from support.told import (
    Told,
    Words,
    ceil,
    conversations,
    pair,
    plain,
    said,
    spoken,
    token_section,
    told,
)

pytestmark = pytest.mark.filterwarnings("ignore:a pass that ends takes every sample once")


def heard(number: int, seconds: float | None = None, start: float = 0.0) -> str:
    """The digest of a voice, or of a stretch of it."""
    data, rate = sf.read(io.BytesIO(voice(seconds_of(number), number)), dtype="float32")
    begin = round(start * rate)
    end = None if seconds is None else begin + round(seconds * rate)
    return digest_of(data[None, begin:end])


def test_seven_turns(tmp_path):
    for number in (0, 1, 2):
        write_voice(tmp_path / f"v{number}.wav", number)
    turns = [
        said("what is this"),
        spoken("v0.wav", 0.3),
        spoken("v1.wav", 0.4, "Assistant"),
        said("a fox", "Assistant"),
        said("and"),
        spoken("v2.wav", 0.3, offset=0.1),
        said("a lazy dog", "Assistant"),
    ]
    row = {"id": "seven", "conversations": turns, "custom": {"score": 2}}
    (found,) = plain(conversations(tmp_path, [row]))
    assert found["id"] == "seven"
    assert found["custom"]["score"] == 2
    assert [turn["role"] for turn in found["turns"]] == [
        *("user", "user", "assistant", "assistant", "user", "user", "assistant")
    ]
    assert [turn.get("value") for turn in found["turns"]] == [
        *("what is this", None, None, "a fox", "and", None, "a lazy dog")
    ]
    audios = [turn for turn in found["turns"] if "audio" in turn]
    assert [turn["audio"] for turn in audios] == [heard(0), heard(1), heard(2, 0.3, 0.1)]
    assert {turn["tag"] for turn in audios} == {TAG}
    # Each audio turn is a tag in the text, and as many tokens as it is long in place of it.
    words = "what is this <audio> <audio> a fox and <audio> a lazy dog"
    assert found["input_ids"] == Words().encode(words)
    assert found["answer_ids"] == Words().encode("a lazy dog")
    assert found["context_ids"] == found["input_ids"][: -len(found["answer_ids"])]
    spans = [[0] * 4, [1] * 3, [0] * 2, [1] * 3]
    assert found["mask"] == [one for span in spans for one in span]
    audio = ceil(0.3) + ceil(0.4) + ceil(0.3)
    assert found["input_length"] == 9 - 3 + audio
    assert found["output_length"] == 3
    assert found["total_length"] == 12 - 3 + audio


def test_an_answer_that_is_spoken_is_as_long_as_it_sounds(tmp_path):
    write_voice(tmp_path / "v.wav", 5)
    row = {"id": "a", "conversations": [said("say it"), spoken("v.wav", 0.8, "Assistant")]}
    (found,) = plain(conversations(tmp_path, [row]))
    assert (found["input_length"], found["output_length"]) == (2, ceil(0.8))


def test_who_asks_last_is_to_be_answered(tmp_path):
    """No answer: all of it is the context."""
    write_voice(tmp_path / "v.wav", 5)
    row = {"id": "a", "conversations": [said("say it"), spoken("v.wav", 0.8)]}
    (found,) = plain(conversations(tmp_path, [row]))
    assert found["context_ids"] == found["input_ids"]
    assert not found["answer_ids"]
    assert not any(found["mask"] or [])
    assert found["total_length"] == 2 + ceil(0.8)


@pytest.mark.parametrize("name", ["multimodal_conversation", "share_gpt"])
def test_members_of_tars_are_what_files_are(talk, name):
    plain_files, members = (
        told(token_section(talk[form]), Words()) for form in (name, f"{name}, tars")
    )
    for one in (*plain_files, *members):
        # Members are flacs: their names are others.
        one["custom"].pop("sound", None)
        one["custom"].pop("ori_sound", None)
    assert members == plain_files
    assert sum("audio" in turn for one in members for turn in one["turns"]) > 5


def test_slices_of_tars(talk):
    entry = talk["multimodal_conversation, tars"]
    seen = set()
    for epoch in range(12):
        config = token_section(entry, slice_length=2, batch_size=10, prompt_format="llama3")
        loader = playhead.dataloader(config, dataset=_Names(), tokenizer=Words())
        loader.set_epoch(epoch)
        numbers = [int(name.removeprefix("talk-")) for batch in loader for name in batch]
        assert len(numbers) == 4
        assert all(number < 6 for number in numbers[:2])
        assert all(number > 5 for number in numbers[2:])
        seen.add(tuple(numbers))
    assert len(seen) > 3


class _Names:
    def __getitem__(self, samples: Any) -> list[str]:
        return [one.id for one in samples]


@pytest.mark.parametrize("place", ["row", "custom"])
@pytest.mark.parametrize(
    ("mark", "stays"), [(True, False), ("noise", False), (1, False), ("", True), (0, True)]
)
def test_conversations_that_ask_to_be_left_out(tmp_path, place, mark, stays):
    turns = [said("a"), said("b", "Assistant")]
    rows: list[dict[str, Any]] = [{"id": f"{n}", "conversations": turns} for n in range(3)]
    rows[1] |= {"_skipme": mark} if place == "row" else {"custom": {"_skipme": mark}}
    found = [one["id"] for one in plain(conversations(tmp_path, rows))]
    assert found == (["0", "1", "2"] if stays else ["0", "2"])


def test_context_and_system_prompt_of_tags(tmp_path):
    write_voice(tmp_path / "v.wav", 1)
    audio, answer = spoken("v.wav", 0.4), said("x", "Assistant")
    rows = [
        {"id": "spoken", "conversations": [audio, answer]},
        {"id": "asked", "conversations": [said("what"), audio, answer]},
        {"id": "told", "conversations": [said("be kind", "System"), audio, answer]},
        {"id": "answered", "conversations": [{**audio, "from": "Assistant"}, said("a"), answer]},
    ]
    tags = {"system_prompt": "listen", "context": "the fox"}
    config = token_section(conversations(tmp_path, rows, tags=tags))
    turns = {one["id"]: one["turns"] for one in told(config, Words())}
    asked = {
        name: [(turn["role"], turn.get("value", TAG)) for turn in found][:-1]
        for name, found in turns.items()
    }
    assert asked == {
        "spoken": [("system", "listen"), ("user", "the fox"), ("user", TAG)],
        "asked": [("system", "listen"), ("user", "what"), ("user", TAG)],
        "told": [("system", "be kind"), ("user", TAG)],
        "answered": [("system", "listen"), ("assistant", TAG), ("user", "a")],
    }
    tags |= {"override_system_prompt": True}
    config = token_section(conversations(tmp_path, rows, tags=tags))
    first = [one["turns"][0]["value"] for one in told(config, Words())]
    assert first == ["listen"] * len(rows)


def share(folder, *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    for number in (1, 2):
        write_voice(folder / f"{number}.wav", number)
    path = write_jsonl(folder / "share.jsonl", list(rows))
    placeholders = {"audio_placeholders": ["<sound>", "<speech>"]}
    return {"type": "share_gpt", "manifest_filepath": str(path), **placeholders, **more}


def gpt(asked: str, answer: str = "x", **more: Any) -> dict[str, Any]:
    turns = [{"from": "human", "value": asked}, {"from": "gpt", "value": answer}]
    return {"id": "g", "conversations": turns, **more}


SPLIT: list[tuple[str, Any, list[str]]] = [
    ("<sound>\nwhat", "1.wav", ["1", "what"]),
    ("what is <speech>", "1.wav", ["what is", "1"]),
    (" a <speech> b ", "1.wav", ["a", "1", "b"]),
    ("a <sound> b <speech> c", ["1.wav", "2.wav"], ["a", "1", "b", "2", "c"]),
    ("<sound> and <sound>", "1.wav", ["1", "and", "1"]),
    ("hear <sound> now", ["1.wav", "2.wav"], ["hear", "1", "2", "now"]),
    ("no audio", None, ["no audio"]),
]


@pytest.mark.parametrize(("asked", "sound", "turns"), SPLIT)
def test_placeholders_split_what_is_asked(tmp_path, asked, sound, turns):
    row = gpt(asked, **({} if sound is None else {"sound": sound}))
    (found,) = plain(share(tmp_path, row))
    assert [turn.get("value", turn.get("cut")) for turn in found["turns"]] == [*turns, "x"]
    assert [turn["role"] for turn in found["turns"]] == ["user"] * len(turns) + ["assistant"]


@pytest.mark.parametrize(
    ("row", "said_of_it"),
    [
        (gpt("<sound> what"), "names no audio"),
        (gpt("<sound> <sound> <sound>", sound=["1.wav", "2.wav"]), "3|2"),
        ({"id": "g", "conversations": "no"}, "conversations"),
    ],
)
def test_share_gpt_that_does_not_fit_is_refused(tmp_path, row, said_of_it):
    with pytest.raises(playhead.PlayheadError, match=said_of_it) as error:
        plain(share(tmp_path, row))
    assert "share.jsonl" in str(error.value)


def test_what_is_answered_may_speak_of_placeholders(tmp_path):
    (found,) = plain(share(tmp_path, gpt("<sound>", "the tag <sound>", sound="1.wav")))
    assert found["turns"][-1]["value"] == "the tag <sound>"
    assert len(found["turns"]) == 2


def test_lines_of_text(tmp_path):
    write_lines(tmp_path / "a.txt", ["one two", "three"])
    entry = {"type": "txt", "paths": str(tmp_path / "a.txt"), "language": "en"}
    found = plain(entry)
    assert [one["text"].strip() for one in found] == ["one two", "three"]
    assert {one["language"] for one in found} == {"en"}
    assert [one["input_length"] for one in found] == [0, 0]
    assert [one["output_length"] for one in found] == [2, 1]


def test_pairs_of_texts(tmp_path):
    entry = pair(tmp_path, [["one", "two three"], ["four"]], [["eins", "zwei drei"], ["vier"]])
    found = plain(entry)
    assert [(one["source"]["text"], one["target"]["text"]) for one in found] == [
        *(("one", "eins"), ("two three", "zwei drei"), ("four", "vier"))
    ]
    assert {(one["source"]["language"], one["target"]["language"]) for one in found} == {
        ("en", "de")
    }
    assert [(one["input_length"], one["output_length"]) for one in found] == [
        (1, 1),
        (2, 2),
        (1, 1),
    ]


def test_pairs_that_do_not_match_are_refused(tmp_path):
    with pytest.raises(playhead.ConfigError, match=r"2.*1|1.*2"):
        plain(pair(tmp_path, [["a"], ["b"]], [["c"]]))
    with pytest.raises(playhead.PlayheadError) as error:
        plain(pair(tmp_path, [["a", "b"]], [["c"]]))
    assert "source_0.txt" in str(error.value)
    assert "target_0.txt" in str(error.value)


def test_questions_stand_before_sources(tmp_path):
    asked = write_lines(tmp_path / "questions.txt", ["translate", "say it in german"])
    entry = pair(tmp_path, [["one"] * 20], [["eins"] * 20], questions_path=str(asked))
    found = plain(entry)
    asked = {one["question"]["text"] for one in found}
    assert asked == {"translate", "say it in german"}
    for one in found:
        context = f"{one['question']['text']} one"
        assert one["context_ids"] == Words().encode(context)


def test_cuts_with_a_context_and_a_system_prompt_become_conversations(talk):
    found = told(token_section(talk["lhotse_as_conversation"]), Words())
    roles = {one["id"]: [turn["role"] for turn in one["turns"]] for one in found}
    assert roles["spoken-0"] == ["user", "assistant"]
    assert roles["spoken-1"] == ["user", "user", "assistant"]
    assert roles["spoken-4"] == ["system", "user", "assistant"]
    assert roles["spoken-9"] == ["system", "user", "user", "assistant"]
    for one in found:
        number = int(one["id"].removeprefix("spoken-"))
        audio = next(turn for turn in one["turns"] if "audio" in turn)
        assert audio["audio"] == heard(number)
        assert audio["text"] == one["turns"][-1]["value"]


def test_what_two_speakers_say_becomes_turns(talk):
    found = told(token_section(talk["s2s_as_conversation"]), Words())
    assert len(found) == 10
    for one in found:
        roles = [turn["role"] for turn in one["turns"]]
        assert roles
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert all("<|" not in (turn.get("value") or turn["text"]) for turn in one["turns"])
        assert all(
            turn["duration"] == pytest.approx(0.4) for turn in one["turns"] if "audio" in turn
        )


def test_a_shard_that_is_not_there_and_rows_that_are_none(tmp_path):
    path = write_lines(tmp_path / "talk.jsonl", ['{"id": "a", "conversations": []', "x"])
    entry = {"type": "multimodal_conversation", "manifest_filepath": str(path)}
    with pytest.raises(playhead.ManifestError, match=r"talk\.jsonl"):
        plain(entry)
    entry["manifest_filepath"] = str(tmp_path / "none.jsonl")
    with pytest.raises(playhead.SourceNotFoundError, match=r"none\.jsonl"):
        plain(entry)


def test_audio_is_opened_when_it_is_read(tmp_path):
    """Not before, where rows say how long it is."""
    write_voice(tmp_path / "v.wav", 5)
    row = {"id": "a", "conversations": [spoken("v.wav", 0.8), said("x", "Assistant")]}
    entry = conversations(tmp_path, [row])
    (tmp_path / "v.wav").unlink()
    config = token_section(entry, prompt_format="plain", fault_tolerant_audio_loading=False)
    loader = playhead.dataloader(config, dataset=_Names(), tokenizer=Words())
    assert len(loader) == 1


def test_a_turn_that_cannot_be_heard_takes_its_conversation_with_it(tmp_path):
    rows = []
    for number in range(3):
        write_voice(tmp_path / f"v{number}.wav", number)
        turns = [spoken(f"v{number}.wav", 0.3), said("x", "Assistant"), spoken("v0.wav", 0.3)]
        turns.append(said("y", "Assistant"))
        rows.append({"id": f"{number}", "conversations": turns})
    (tmp_path / "v1.wav").write_bytes(b"RIFF no more than this")
    entry = conversations(tmp_path, rows)
    config = token_section(entry, prompt_format="plain", bad_samples=None, info=True)
    with pytest.raises(playhead.AudioError, match=r"v1\.wav"):
        told(config, Words())
    tolerant = {**config, "fault_tolerant_audio_loading": True}
    (batch,) = playhead.dataloader(tolerant, dataset=Told(), tokenizer=Words())
    assert [one["id"] for one in batch["facts"]] == ["0", "2"]
    assert batch["playhead"].dropped == 1


def test_members_that_are_not_there(tmp_path):
    row = {"id": "a", "conversations": [spoken("v.wav", 0.3), said("x", "Assistant")]}
    write_tar(tmp_path / "a.tar", [("other.wav", voice(0.3))])
    entry = conversations(tmp_path, [row], tarred_audio_filepaths=str(tmp_path / "a.tar"))
    with pytest.raises(playhead.PlayheadError, match=r"v\.wav"):
        plain(entry)
