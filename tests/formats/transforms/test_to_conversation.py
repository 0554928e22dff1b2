from __future__ import annotations

from dataclasses import replace

import pytest

from playhead.errors import ManifestError
from playhead.formats import Audio, Example
from support.fetching import leaf_of
from support.transforming import (
    PLACE,
    TAG,
    apply,
    cut,
    example_of,
    recording,
    said,
    turns,
    with_transforms,
    written,
)

NEMO = with_transforms(leaf_of("nemo", manifest="/data/m.json"))


def row(text: str | None = "hello", **custom) -> Example:
    return Example(
        id="a.wav",
        text=text,
        language="en",
        audio=Audio(source="/data/a.wav", start=0.5, duration=1.25),
        place=PLACE,
        custom=custom,
    )


def test_the_user_speaks_and_the_assistant_writes_what_was_said():
    source = row(number=3)
    talk = apply(NEMO, source, "lhotse_as_conversation")
    assert turns(talk) == [("user", "hello", "a.wav", 1.25), ("assistant", "hello", None, None)]
    assert talk.turns[0].audio == source
    assert talk.turns[0].locator == TAG
    assert (talk.id, talk.kind, talk.custom) == ("a.wav", "conversation", {"number": 3})
    assert talk.audio is talk.cut_data is talk.text is None


def test_context_and_system_prompt_come_before_in_this_order():
    talk = apply(NEMO, row(context="listen", system_prompt="be brief"), "lhotse_as_conversation")
    assert [(turn.role, turn.text) for turn in talk.turns] == [
        ("system", "be brief"),
        ("user", "listen"),
        ("user", "hello"),
        ("assistant", "hello"),
    ]


def test_a_context_of_null_is_none_and_of_an_object_is_an_error():
    assert len(apply(NEMO, row(context=None), "lhotse_as_conversation").turns) == 2
    with pytest.raises(ManifestError, match="context"):
        apply(NEMO, row(context={"a": 1}), "lhotse_as_conversation")


def test_the_answer_is_the_first_supervision_of_a_cut(tmp_path):
    source = recording(tmp_path, "r", 1.0)
    both = [said("1", source, 0.5, 0.3, "later", "b"), said("2", source, 0.0, 0.3, "first", "a")]
    leaf = with_transforms(written(tmp_path, cut("c", source, both)))
    talk = apply(leaf, example_of(leaf, cut("c", source, both)), "lhotse_as_conversation")
    assert turns(talk) == [("user", "later", "c", 1.0), ("assistant", "later", None, None)]


def test_the_answer_of_a_mixed_cut_is_that_of_its_first_track_that_says_something(tmp_path):
    source = recording(tmp_path, "r", 1.0)
    silent, spoken = cut("a", source), cut("b", source, [said("1", source, 0, 1, "hm", "x")])
    leaf = with_transforms(written(tmp_path, silent))
    mixed = silent.pad(1.5, preserve_id=True).append(spoken).with_id("m")
    talk = apply(leaf, example_of(leaf, mixed), "lhotse_as_conversation")
    assert turns(talk) == [("user", "hm", "m", 2.5), ("assistant", "hm", None, None)]


def test_what_cannot_answer_is_named(tmp_path):
    source = recording(tmp_path, "r", 1.0)
    leaf = with_transforms(written(tmp_path, cut("c", source)))
    with pytest.raises(ManifestError, match="no supervision"):
        apply(leaf, example_of(leaf, cut("c", source)), "lhotse_as_conversation")
    with pytest.raises(ManifestError, match="no transcript"):
        apply(NEMO, row(None), "lhotse_as_conversation")
    with pytest.raises(ManifestError, match="no question"):
        apply(NEMO, row(answer="b"), "sqa_as_conversation")
    with pytest.raises(ManifestError, match="no answer"):
        apply(NEMO, row(question="a"), "sqa_as_conversation")


def test_an_empty_text_is_an_answer():
    assert apply(NEMO, row(""), "lhotse_as_conversation").turns[-1].text == ""


def test_a_question_comes_before_the_audio_and_its_context_before_it():
    source = row(question="who?", answer="me", context="listen")
    assert turns(apply(NEMO, source, "sqa_as_conversation")) == [
        ("user", "listen", None, None),
        ("user", "who?", None, None),
        ("user", "hello", "a.wav", 1.25),
        ("assistant", "me", None, None),
    ]


def test_questioned_audio_needs_no_transcript(tmp_path):
    source = recording(tmp_path, "r", 1.0)
    plain = cut("c", source, question="who?", answer="me")
    leaf = with_transforms(written(tmp_path, plain))
    talk = apply(leaf, example_of(leaf, plain), "sqa_as_conversation")
    assert turns(talk)[1] == ("user", None, "c", 1.0)
    plain.text = "mine"
    assert turns(apply(leaf, example_of(leaf, plain), "sqa_as_conversation"))[1][1] == "mine"


def test_the_length_of_a_file_without_one_is_in_its_header(tmp_path):
    recording(tmp_path, "r", 1.0, rate=8000)
    source = replace(row(), audio=Audio(source=str(tmp_path / "r.wav"), start=0.25))
    assert apply(NEMO, source, "lhotse_as_conversation").turns[0].duration == 0.75


def test_a_turn_keeps_the_channel_that_the_leaf_chooses():
    leaf = replace(NEMO, options=replace(NEMO.options, channel_selector=1))
    (turn, _) = apply(leaf, row(), "lhotse_as_conversation").turns
    assert turn.audio is not None
    assert turn.audio.channel_selector == 1
