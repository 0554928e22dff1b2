"""The prompt that adds nothing."""

from __future__ import annotations

from playhead.tokens.encoding import Encoding
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import ByLanguage, Words, example

WORDS = load_tokenizer(Words())


def test_what_is_asked_stands_before_the_text():
    got = Encoding(WORDS, "plain").encode(example("we speak", context="a b c"))
    assert got == {
        "input_ids": [1, 1, 1, 2, 5],
        "context_ids": [1, 1, 1],
        "answer_ids": [2, 5],
        "mask": [False, False, False, True, True],
    }


def test_without_context_there_is_only_the_text():
    got = Encoding(WORDS, "plain").encode(example("we speak"))
    assert (got["context_ids"], got["answer_ids"]) == ([], [2, 5])


def test_without_text_there_is_no_answer():
    got = Encoding(WORDS, "plain").encode(example(None, context="a"))
    assert (got["input_ids"], got["answer_ids"], got["mask"]) == ([1], [], [False])


def test_the_rows_language_chooses_the_tokenizer():
    got = Encoding(load_tokenizer(ByLanguage()), "plain").encode(example("wir", "de", context="a"))
    assert got["input_ids"] == [101, 103]
