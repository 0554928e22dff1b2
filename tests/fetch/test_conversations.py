"""Texts and conversations as datasets of cuts get them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from lhotse import CutSet
from lhotse.cut import MonoCut

from playhead.errors import AudioError
from playhead.fetch.conversations import (
    AudioTurn,
    Conversation,
    TextPair,
    TextSample,
    TextTurn,
    to_sample,
)
from playhead.fetch.cuts import to_cut
from playhead.fetch.inspection import check_turn
from playhead.formats import Audio, Example, Turn
from support.corpus import wav_bytes
from support.fetching import PLACE


def example(kind: Any, **facts: Any) -> Example:
    plain = {"id": "a", "text": None, "language": None, "audio": None, "place": PLACE}
    return Example(**{**plain, **facts}, kind=kind)


def spoken(name: str, seconds: float = 0.25) -> Example:
    audio = Audio(source=wav_bytes(seconds, seed=len(name)), duration=seconds)
    return example("cut", id=name, text=f"of {name}", audio=audio)


def cut_of(one: Example) -> Any:
    return to_cut(one, None, {})


def nobody(_: Example) -> Any:
    pytest.fail("a text has no cut")


def test_a_cut_is_a_cut():
    cut = to_sample(spoken("x"), {"tag": 1}, cut_of)
    assert isinstance(cut, MonoCut)


def test_a_text():
    made = to_sample(
        example("text", text="hm", language="en", custom={"n": 3, "task": "row"}),
        {"task": "tag"},
        nobody,
    )
    assert isinstance(made, TextSample)
    assert (made.id, made.text, made.language, made.custom) == ("a", "hm", "en", made.custom)
    assert made.custom == {"n": 3, "task": "tag"}
    assert (made.n, made.task) == (3, "tag")


PAIR = {
    "source": "one",
    "target": "ein",
    "source_language": "en",
    "target_language": "de",
    "question_language": "fr",
    "n": 1,
}


def test_a_pair():
    made = to_sample(example("pair", text="ein", custom=PAIR), {"task": "mt"}, nobody)
    assert isinstance(made, TextPair)
    assert made.source == TextSample(id="a-source", text="one", language="en")
    assert made.target == TextSample(id="a-target", text="ein", language="de")
    assert made.question is None
    assert made.custom == {"n": 1, "task": "mt"}


def test_a_pair_with_a_question():
    made = to_sample(example("pair", custom={**PAIR, "question": "what"}), {}, nobody)
    assert made.question == TextSample(id="a-question", text="what", language="fr")


@pytest.mark.parametrize("name", ["source", "target", "question", "source_language"])
def test_tags_called_as_halves_of_pairs_are_tags(name: str):
    """`tags: {source: web}` is what people write who keep account of where data come from."""
    made = to_sample(example("pair", text="ein", custom={**PAIR}), {name: "web"}, nobody)
    assert (made.source.text, made.target.text, made.question) == ("one", "ein", None)
    assert made.source.language == "en"
    assert made.custom[name] == "web"


def conversation(**facts: Any) -> Example:
    turns = (
        Turn(role="system", text="listen"),
        Turn(role="user", text="of v", audio=spoken("v"), locator="<a>", duration=0.25),
        Turn(role="user", audio=spoken("vw", 0.5), duration=0.5),
        Turn(role="assistant", text="yes"),
    )
    return example("conversation", turns=turns, custom={"score": 1}, language="en", **facts)


def test_a_conversation():
    made = to_sample(conversation(), {"task": "qa"}, cut_of, 0.08)
    assert isinstance(made, Conversation)
    assert (made.id, made.language, made.token_equivalent_duration) == ("a", "en", 0.08)
    assert made.custom == {"score": 1, "task": "qa"}
    system, first, second, answer = made.turns
    assert system == TextTurn(value="listen", role="system")
    assert answer == TextTurn(value="yes", role="assistant")
    assert isinstance(first, AudioTurn)
    assert isinstance(second, AudioTurn)
    assert (first.role, first.audio_locator_tag, first.text) == ("user", "<a>", "of v")
    assert (second.audio_locator_tag, second.text) == ("", None)
    assert made.list_cuts() == [first.cut, second.cut]
    assert [cut.id for cut in made.list_cuts()] == ["v", "vw"]
    assert [cut.duration for cut in made.list_cuts()] == [0.25, 0.5]
    assert (made.has_audio_turns, made.has_text_turns, made.is_text_only) == (True, True, False)


def test_a_conversation_of_text_alone():
    made = to_sample(example("sft", turns=(Turn(role="user", text="hm"),)), {}, nobody)
    assert (made.has_audio_turns, made.is_text_only, made.list_cuts()) == (False, True, [])


def test_custom_fields_are_attributes_and_others_are_not():
    made = to_sample(conversation(), {"task": "qa"}, cut_of)
    assert made.score == 1
    with pytest.raises(AttributeError, match="Conversation has no attribute 'other'"):
        _ = made.other
    assert not hasattr(made, "__array__")
    assert getattr(made, "other", "none") == "none"


@pytest.mark.parametrize("how", [pickle.dumps, copy.deepcopy, copy.copy])
def test_samples_travel(how: Any):
    """Between processes; what looks attributes up before there are any must not go round."""
    for made in (
        to_sample(conversation(), {}, cut_of),
        to_sample(example("pair", custom=PAIR), {}, nobody),
        to_sample(example("text", text="x"), {}, nobody),
    ):
        again = how(made)
        again = pickle.loads(again) if isinstance(again, bytes) else again
        assert (again.id, again.custom) == (made.id, made.custom)
        assert type(again) is type(made)


def test_samples_stand_in_cut_sets():
    made = [to_sample(conversation(), {}, cut_of), cut_of(spoken("x"))]
    assert [one.id for one in CutSet(made)] == ["a", "x"]
    assert np.isclose(sum(cut.duration for cut in made[0].list_cuts()), 0.75)


def test_a_turn_without_bytes_is_bad_audio():
    empty = example("cut", id="v")
    with pytest.raises(AudioError, match=r"(?i)the audio is empty \(leaf train.*_skipme"):
        check_turn(empty)
    check_turn(spoken("v"))
    check_turn(example("cut", cut_data={"id": "x"}))
