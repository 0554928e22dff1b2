"""The second prompt of Canary models."""

from __future__ import annotations

import pytest

from playhead.errors import ManifestError
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.encoding import Encoding
from playhead.tokens.sentencepiece_model import SentencePieceModel
from support.token_models import example, sentencepiece_bytes

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)
GERMAN = SentencePieceModel(sentencepiece_bytes("de"), None)
SPECIAL = SentencePieceModel(sentencepiece_bytes(special=True), None)
AGGREGATE = AggregateTokenizer({"spl_tokens": SPECIAL, "en": ENGLISH, "de": GERMAN})
ROW = {"source_lang": "en", "target_lang": "de"}
OFF = ("noitn", "notimestamp", "nodiarize")


def specials(*tokens):
    ids = [AGGREGATE.token_id(f"<|{token}|>", "spl_tokens") for token in tokens]
    assert None not in ids
    return ids


def test_defaults_fill_what_the_row_does_not_say():
    got = Encoding(AGGREGATE, "canary2").encode(example("wir sprechen", "de", **ROW))
    prompt = specials(
        "startofcontext", "startoftranscript", "emo:undefined", "en", "de", "pnc", *OFF
    )
    text = AGGREGATE.encode("wir sprechen", "de")
    assert got["context_ids"] == prompt
    assert got["answer_ids"] == text
    assert got["input_ids"] == prompt + text + specials("endoftext")
    assert got["mask"] == [False] * len(prompt) + [True] * (len(text) + 1)


def test_the_context_is_a_text_in_the_target_language():
    row = {**ROW, "decodercontext": "das haus"}
    got = Encoding(AGGREGATE, "canary2").encode(example("wir", "de", **row))
    assert got["context_ids"] == [
        *specials("startofcontext"),
        *AGGREGATE.encode("das haus", "de"),
        *specials("startoftranscript", "emo:undefined", "en", "de", "pnc", *OFF),
    ]


def test_another_tokenizer_encodes_each_turn_whole():
    row = {**ROW, "decodercontext": "the house", "emotion": "<|emo:happy|>"}
    got = Encoding(SPECIAL, "canary2").encode(example("we speak", "en", **row))
    prompt = SPECIAL.encode(
        "<|startofcontext|>the house<|startoftranscript|><|emo:happy|><|en|><|de|>"
        "<|pnc|><|noitn|><|notimestamp|><|nodiarize|>"
    )
    assert got["context_ids"] == prompt
    assert got["input_ids"] == prompt + SPECIAL.encode("we speak<|endoftext|>")


@pytest.mark.parametrize("name", ["pnc", "itn", "timestamp", "diarize"])
@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("yes", True),
        ("1", True),
        ("True", True),
        ("true", True),
        (True, True),
        (1, True),
        ("no", False),
        ("False", False),
        (False, False),
        ("anything", False),
        ("itself", True),
    ],
)
def test_switches(name, value, on):
    value = name if value == "itself" else value
    got = Encoding(AGGREGATE, "canary2").encode(example(**ROW, **{name: value}))
    place = 5 + ["pnc", "itn", "timestamp", "diarize"].index(name)
    assert got["context_ids"][place : place + 1] == specials(name if on else f"no{name}")
    assert len(got["context_ids"]) == 9


def test_languages_are_required():
    with pytest.raises(ManifestError, match="no source_lang, which the prompt format `canary2`"):
        Encoding(AGGREGATE, "canary2").encode(example(target_lang="de"))
