"""The first prompt of Canary models."""

from __future__ import annotations

import pytest

from playhead.errors import ConfigError, ManifestError
from playhead.tokens.aggregate import AggregateTokenizer
from playhead.tokens.encoding import Encoding
from playhead.tokens.hf_tokenizer import HuggingFaceTokenizer
from playhead.tokens.sentencepiece_model import SentencePieceModel
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import (
    ByLanguage,
    Words,
    example,
    hf_bytes,
    sentencepiece_bytes,
)

ENGLISH = SentencePieceModel(sentencepiece_bytes(), None)
GERMAN = SentencePieceModel(sentencepiece_bytes("de"), None)
SPECIAL = SentencePieceModel(sentencepiece_bytes(special=True), None)
AGGREGATE = AggregateTokenizer({"spl_tokens": SPECIAL, "en": ENGLISH, "de": GERMAN})
ROW = {"source_lang": "en", "target_lang": "de", "task": "translate", "pnc": "yes"}


def specials(*tokens):
    return [AGGREGATE.token_id(f"<|{token}|>", "spl_tokens") for token in tokens]


def test_an_aggregate_encodes_each_part_with_its_own():
    got = Encoding(AGGREGATE, "canary").encode(example("wir sprechen", "de", **ROW))
    prompt = specials("startoftranscript", "en", "translate", "de", "pnc")
    text = AGGREGATE.encode("wir sprechen", "de")
    end = specials("endoftext")
    assert None not in prompt
    assert got["context_ids"] == prompt
    assert got["answer_ids"] == text
    assert got["input_ids"] == prompt + text + end
    assert got["mask"] == [False] * len(prompt) + [True] * (len(text) + 1)


def test_another_tokenizer_encodes_each_turn_whole():
    got = Encoding(SPECIAL, "canary").encode(example("we speak", "en", **ROW))
    prompt = SPECIAL.encode("<|startoftranscript|><|en|><|translate|><|de|><|pnc|>")
    answer = SPECIAL.encode("we speak<|endoftext|>")
    assert got["context_ids"] == prompt
    assert got["input_ids"] == prompt + answer
    assert got["answer_ids"] == answer[:-1]
    assert answer[-1] == SPECIAL.token_id("<|endoftext|>")
    assert Encoding.num_tokens(got) == len(prompt + answer)


@pytest.mark.parametrize(
    ("changed", "tokens"),
    [
        ({"pnc": "no"}, ("en", "translate", "de", "nopnc")),
        ({"pnc": True}, ("en", "translate", "de", "pnc")),
        ({"pnc": 1}, ("en", "translate", "de", "pnc")),
        ({"pnc": "<|nopnc|>"}, ("en", "translate", "de", "nopnc")),
        ({"task": "asr"}, ("en", "transcribe", "de", "pnc")),
        ({"task": "ast"}, ("en", "translate", "de", "pnc")),
        ({"task": "<|transcribe|>"}, ("en", "transcribe", "de", "pnc")),
        ({"task": None, "taskname": "asr"}, ("en", "transcribe", "de", "pnc")),
        ({"taskname": "asr"}, ("en", "translate", "de", "pnc")),
        ({"source_lang": "<|de|>"}, ("de", "translate", "de", "pnc")),
    ],
)
def test_values_become_tokens(changed, tokens):
    got = Encoding(AGGREGATE, "canary").encode(example(**{**ROW, **changed}))
    assert got["context_ids"] == specials("startoftranscript", *tokens)


def test_the_answer_is_in_the_rows_language_else_in_the_target():
    encoding = Encoding(AGGREGATE, "canary")
    got = encoding.encode(example("wir", None, **ROW))
    assert got["answer_ids"] == AGGREGATE.encode("wir", "de")
    got = encoding.encode(example("we", "en", **ROW))
    assert got["answer_ids"] == AGGREGATE.encode("we", "en")
    got = encoding.encode(example("wir", None, **{**ROW, "target_lang": "<|de|>"}))
    assert got["answer_ids"] == AGGREGATE.encode("wir", "de")


def test_a_row_without_text_answers_with_the_end():
    assert Encoding(AGGREGATE, "canary").encode(example(None, **ROW))["answer_ids"] == []
    got = Encoding(SPECIAL, "canary").encode(example(None, "en", **ROW))
    assert got["input_ids"][-1] == SPECIAL.token_id("<|endoftext|>")
    assert got["answer_ids"] == SPECIAL.encode("<|endoftext|>")[:-1]
    assert got["mask"][-1]


def test_times_in_the_answer_are_special_tokens():
    got = Encoding(AGGREGATE, "canary").encode(
        example("<|0|> we <|1|> <|2|> speak <|3|>", "en", **ROW)
    )
    assert got["answer_ids"] == [
        *specials("0"),
        *AGGREGATE.encode("we", "en"),
        *specials("1", "2"),
        *AGGREGATE.encode("speak", "en"),
        *specials("3"),
    ]


def test_fields_that_are_missing_are_all_named_with_the_row():
    with pytest.raises(
        ManifestError, match=r"(?s)no source_lang and no task and no pnc.*rows\.jsonl.*row 3"
    ):
        Encoding(AGGREGATE, "canary").encode(example(target_lang="de"))


def test_values_without_a_token_name_the_row():
    with pytest.raises(ManifestError, match=r"(?s)no token <\|fr\|>.*rows\.jsonl"):
        Encoding(AGGREGATE, "canary").encode(example(**{**ROW, "source_lang": "fr"}))


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (ENGLISH, r"no token <\|endoftext\|>"),
        (HuggingFaceTokenizer(hf_bytes(), None), r"no token <\|endoftext\|>"),
        (load_tokenizer(Words()), r"no token <\|endoftext\|>"),
        (AggregateTokenizer({"en": ENGLISH}), "`spl_tokens` among the languages; there are en"),
        (load_tokenizer(ByLanguage()), "`spl_tokens` among the languages; there are en, de"),
        (AggregateTokenizer({"spl_tokens": ENGLISH}), r"no token <\|endoftext\|>"),
    ],
)
def test_tokenizers_without_the_tokens_are_refused(tokenizer, said):
    with pytest.raises(ConfigError, match=said):
        Encoding(tokenizer, "canary")
