"""Prompt formats of one's own as templates, and what must hold of all templates."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.errors import ConfigError, ManifestError
from playhead.formats import Turn
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.encoding import Encoding
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.prompts import Template, TemplatePrompt, register_template, registry
from playhead.tokens.prompts.templates import TEMPLATES
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from playhead.tokens.writing import count_writings
from support.token_models import (
    ByLanguage,
    Words,
    example,
    hf_bytes,
    sentencepiece_bytes,
    sentences,
    write,
)

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)
GERMAN = SentencePieceModel(sentencepiece_bytes("de"), None)
BOTH = AggregateTokenizer({"en": ENGLISH, "de": GERMAN})
words = st.sampled_from([*sentences(6), "", "ü <|eot_id|>", "{message} {system}", "we\nspeak "])
ROLES = st.sampled_from(["user", "assistant"])
turns = st.lists(st.tuples(ROLES, words), min_size=1, max_size=6)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setattr(registry, "_PROMPTS", dict(registry._PROMPTS))


def conversation(said, kind="conversation", **custom):
    one = example(None, **custom)
    one.kind = kind
    one.turns = tuple(
        Turn(role=role, text=text)
        if text is not None
        else Turn(role=role, audio=example(), locator="<a>", duration=2.0)
        for role, text in said
    )
    return one


def mine(**changed):
    texts = {"user": "<{message}>", "assistant": "{bos}[{message}]{eos}"}
    return Template(**{"name": "mine", "roles": texts, **changed})


@pytest.mark.parametrize("name", [template.name for template in TEMPLATES if not template.slots])
@settings(max_examples=25)
@given(said=turns)
def test_the_mask_spans_exactly_the_answers(name, said):
    encoding = Encoding(ENGLISH, name)
    one = conversation(said)
    got = encoding.encode(one)
    ids, mask = got["input_ids"], got["mask"]
    assert len(ids) == len(mask)
    assert got["context_ids"] + got["answer_ids"] == ids
    if said[-1][0] != "assistant":
        assert got["answer_ids"] == []
        assert not any(mask)
        return
    assert all(mask[len(got["context_ids"]) :])
    # Each part of the mask is what one side's turns add, written without the others' words.
    writing = encoding.written(one)
    place = 0
    for piece in writing.pieces:
        count = len(ENGLISH.encode(piece.text)) + piece.begins + piece.ends
        assert mask[place : place + count] == [piece.is_answer] * count
        place += count
    assert place == len(ids)
    grouped = [said[0][0]] + [b for (a, _), (b, _) in pairwise(said) if a != b]
    template = next(one for one in TEMPLATES if one.name == name)
    answers = sum(piece.is_answer for piece in writing.pieces) - template.ends
    assert answers == (1 if template.masks_last else grouped.count("assistant"))


@pytest.mark.parametrize("tokenizer", [ENGLISH, BOTH, load_tokenizer(Words())])
@settings(max_examples=25)
@given(
    samples=st.lists(turns, min_size=1, max_size=4), kind=st.sampled_from(["sft", "conversation"])
)
def test_what_is_counted_at_once_is_what_is_encoded(tokenizer, samples, kind):
    encoding = Encoding(tokenizer, "mistral")
    rows = [conversation(said, kind) for said in samples]
    counts = count_writings([encoding.written(row) for row in rows], tokenizer).tolist()
    for row, (context, answer) in zip(rows, counts, strict=True):
        got = encoding.encode(row)
        assert (len(got["context_ids"]), len(got["answer_ids"])) == (context, answer)


def test_turns_of_one_side_are_one_in_conversations_and_several_in_chats_for_fine_tuning():
    register_template(mine(roles={"user": "u {message}", "assistant": "a {message}"}))
    encoding = Encoding(load_tokenizer(Words()), "mine")
    said = [("user", "we"), ("user", None), ("assistant", "speak"), ("assistant", "today")]
    assert encoding.encode(conversation(said))["input_ids"] == [1, 2, 3, 1, 5, 5]
    got = encoding.encode(conversation([("user", "we"), *said[2:]], "sft"))
    assert got["input_ids"] == [1, 2, 1, 5, 1, 5]
    assert got["mask"] == [False, False, True, True, True, True]
    assert got["answer_ids"] == [1, 5]


def test_sentences_begin_and_end_where_the_template_says():
    register_template(mine(begins=True, ends=True, preamble="we"))
    got = Encoding(ENGLISH, "mine").encode(example("house", context="a"))
    begin, end = ENGLISH.edge_ids()
    assert None not in (begin, end)
    asked = [begin, *ENGLISH.encode("we"), *ENGLISH.encode("<a>")]
    answer = [begin, *ENGLISH.encode("[house]"), end, end]
    assert got["input_ids"] == asked + answer
    assert got["answer_ids"] == answer
    assert got["mask"] == [False] * len(asked) + [True] * len(answer)


def test_each_turn_of_a_pair_is_in_its_own_language():
    register_template(mine(roles={"user": "{message}", "assistant": "{message}"}))
    pair = example("wir sprechen", "en", source="we speak", source_language="en")
    pair.kind = "pair"
    pair.custom["target_language"] = "de"
    got = Encoding(BOTH, "mine").encode(pair)
    assert got["context_ids"] == BOTH.encode("we speak", "en")
    assert got["answer_ids"] == BOTH.encode("wir sprechen", "de")


def test_slots_are_asked_of_the_sample():
    register_template(
        mine(
            roles={"user": "{task}: {message}", "assistant": "{message}"},
            slots={"task": lambda sample: sample.custom.get("task")},
        )
    )
    encoding = Encoding(load_tokenizer(Words()), "mine")
    assert encoding.encode(example("we", context="x", task="say"))["input_ids"] == [4, 1, 2]
    with pytest.raises(ManifestError, match=r"does not say task, which.*`mine`.*row 3"):
        encoding.encode(example("we", context="x"))


@pytest.mark.parametrize(
    ("name", "said", "why"),
    [
        ("qwen", [("system", "x"), ("user", "y")], "no role 'system'; it has user, assistant"),
        ("llama2", [("system", "x"), ("assistant", "y")], "not followed by the user's"),
        ("llama2", [("system", "x")], "not followed by the user's"),
        ("llama2", [("user", "x"), ("tool", "y")], "no role 'tool'; it has user, assistant"),
        ("llama2", [("user", "x"), ("system", "y")], "no role 'system'"),
        ("llama3", [], "has no turns"),
        ("t5nmt", [("user", "x")], "does not say target_lang"),
        ("canary", [("user", "x")], "is of kind conversation"),
        ("canary2", [("user", "x")], "is of kind conversation"),
    ],
)
def test_what_cannot_be_written_names_the_row(tmp_path, name, said, why):
    folder = tmp_path / "m"
    write(folder / "tokenizer.json", hf_bytes())
    config = {"bos_token": "<s>", "eos_token": "</s>"}
    write(folder / "tokenizer_config.json", json.dumps(config).encode())
    tokenizer = load_tokenizer(folder)
    if name.startswith("canary"):
        tokenizer = SentencePieceModel(sentencepiece_bytes(special=True), None)
    with pytest.raises(ManifestError, match=rf"(?s){why}.*rows\.jsonl, byte 120, row 3"):
        Encoding(tokenizer, name).encode(conversation(said))


def test_audio_without_a_tag_names_the_row():
    one = conversation([("user", None)])
    one.turns = (Turn(role="user", audio=example(), duration=1.0),)
    with pytest.raises(ManifestError, match=r"No tag says where.*audio_locator_tag.*<\|audio\|>"):
        Encoding(ENGLISH, "llama3").encode(one)


@pytest.mark.parametrize(
    "tokenizer", [load_tokenizer(Words()), HuggingFaceTokenizer(hf_bytes(), None)]
)
@pytest.mark.parametrize("name", ["llama2", "gemma"])
def test_tokenizers_without_the_tokens_of_sentences_are_refused(tokenizer, name):
    with pytest.raises(ConfigError, match=rf"no token that begins a sentence.*`{name}`"):
        Encoding(tokenizer, name)


def test_templates_with_slots_that_nothing_fills_are_refused():
    roles = {"user": "{message} {typo}", "assistant": "{message}"}
    with pytest.raises(ConfigError, match=r"slot \{typo\} in its role `user`"):
        TemplatePrompt(Template(name="mine", roles=roles), ENGLISH)


def test_templates_that_do_not_write_answers_are_refused():
    for roles in ({"user": "{message}"}, {"assistant": "x"}, {"assistant": "{message} {x}"}):
        with pytest.raises(ConfigError, match="does not write what the assistant says"):
            TemplatePrompt(mine(roles=roles), ENGLISH)


def test_the_digest_knows_all_that_changes_tokens(tmp_path):
    def digest(tokenizer=ENGLISH, **changed):
        return TemplatePrompt(mine(**changed), tokenizer).digest

    others = [
        digest(begins=True),
        digest(ends=True),
        digest(preamble="x"),
        digest(asking="x"),
        digest(asked=("question",)),
        digest(asked_else=""),
        digest(system_else=""),
        digest(question=None),
        digest(joined="both"),
        digest(roles={"user": "{message}", "assistant": "{bos}[{message}]{eos}"}),
    ]
    assert len({digest(), *others}) == len(others) + 1
    assert digest() == digest()
    # Which tokens begin and end a sentence stands in another file than the tokenizer.
    write(tmp_path / "tokenizer.json", hf_bytes())
    found = set()
    for ends in ("</s>", "<|user|>"):
        config = json.dumps({"bos_token": "<s>", "eos_token": ends}).encode()
        write(tmp_path / "tokenizer_config.json", config)
        found |= {Encoding(load_tokenizer(tmp_path), name).digest for name in ("llama2", "plain")}
    assert len(found) == 3


def test_a_template_travels():
    import pickle

    encoding = Encoding(ENGLISH, "llama2")
    copy = pickle.loads(pickle.dumps(encoding))
    assert copy.encode(example("we", context="a")) == encoding.encode(example("we", context="a"))


def test_cuts_say_what_they_are_asked():
    words = load_tokenizer(Words())
    encoding = Encoding(words, "mistral")
    given = example("we", context="a", question="abc", default_context="abcd")
    assert encoding.encode(given)["input_ids"] == words.encode("<s>") + words.encode(
        "[INST] a [/INST]"
    ) + words.encode("we</s>")
    with pytest.raises(ManifestError, match="no context and no question and no default_context"):
        encoding.encode(example("we"))


def test_languages_of_an_object_are_asked_for_their_edges():
    class Edged(ByLanguage):
        def get_bos(self, language):
            return {"en": 7, "de": 107}[language]

        def get_eos(self, language):
            return {"en": 8, "de": 108}[language]

    register_template(mine())
    got = Encoding(load_tokenizer(Edged()), "mine").encode(example("wir", "de", context="a"))
    assert got["answer_ids"] == [107, 105, 108]
