"""Prompt formats by name, and a person's own."""

from __future__ import annotations

import pytest

from playhead.errors import ConfigError, ManifestError, NotSupportedError
from playhead.tokens.encoding import Encoding
from playhead.tokens.prompts import get_prompt, prompt_names, register_prompt, registry
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import Words, example

WORDS = load_tokenizer(Words())


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setattr(registry, "_PROMPTS", dict(registry._PROMPTS))


def test_ours_are_there():
    assert {"canary", "canary2", "plain", "chat", "llama3", "qwen3"} <= set(prompt_names())
    assert not {"nemotron-nano-v3", "example_prompt_format"} & set(prompt_names())


def test_unknown_names_are_refused_with_those_that_are_there():
    with pytest.raises(ConfigError, match=r"no prompt format 'canery'; there are .*canary2"):
        get_prompt("canery", WORDS)
    with pytest.raises(NotSupportedError, match=r"'nemotron-nano-v3' is not built.*there are"):
        Encoding(WORDS, "nemotron-nano-v3")


def test_a_persons_own_is_used():
    @register_prompt("mine")
    class Mine:
        def __init__(self, tokenizer):
            self.tokenizer = tokenizer

        def encode(self, sample):
            ids = self.tokenizer.encode(sample.text)
            return {"input_ids": ids, "context_ids": [], "answer_ids": ids, "mask": []}

    assert Encoding(WORDS, "mine").encode(example("we"))["input_ids"] == [2]
    first = Encoding(WORDS, "mine").digest

    @register_prompt("mine")
    class Mine:  # noqa: F811
        def __init__(self, tokenizer):
            self.tokenizer = tokenizer

        def encode(self, sample):
            raise KeyError("which")

    assert Encoding(WORDS, "mine").digest != first
    with pytest.raises(ManifestError, match=r"'mine' fails: KeyError.*rows\.jsonl"):
        Encoding(WORDS, "mine").encode(example("we"))
    Mine.digest = "2"
    second = Encoding(WORDS, "mine").digest
    Mine.digest = "3"
    assert len({first, second, Encoding(WORDS, "mine").digest}) == 3
