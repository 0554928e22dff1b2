"""Prompt formats give the tokens that NeMo's give; `nemo/nemo_ids.py` wrote those down."""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from pathlib import Path

import pytest

from playhead.errors import ManifestError
from playhead.formats import Turn
from playhead.tokens.encoding import Encoding
from playhead.tokens.prompts.dialog import Said
from playhead.tokens.prompts.thoughts import with_thoughts
from playhead.tokens.tokenizer import load_tokenizer
from support.token_models import example

HERE = Path(__file__).parent / "nemo"
NEMO = json.loads((HERE / "ids.json").read_text())
PATHS = {"sentencepiece": HERE / "prompts.model", "tokenizers": HERE / "tokenizer.json"}
# NeMo has no system for such rows but with llama2, and no prompts of these formats for bare cuts.
MORE_THAN_NEMO = {
    ("sft, system", "llama3"),
    ("sft, system", "nemotron-h"),
    ("conversation, system", "llama2"),
} | {
    (case, form)
    for case in ("cut", "cut, question", "cut, default", "cut, system", "cut, no text")
    for form in ("qwen", "mistral", "phi2_qa", "phi2_chat", "phi2_code")
}


@lru_cache
def script():
    spec = importlib.util.spec_from_file_location("nemo_ids", HERE / "nemo_ids.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@lru_cache
def encoding_of(name, form):
    return Encoding(load_tokenizer(PATHS[name]), form)


def sample(case):
    kind = case["kind"]
    custom = dict(case.get("custom", {}))
    if kind == "pair":
        custom |= {"source_language": "en", "target_language": "de"}
    one = example(case.get("text"), "en", **custom)
    one.kind = kind
    spoken = example(None)
    one.turns = tuple(
        Turn(role=role, text=text)
        if text is not None
        else Turn(role=role, audio=spoken, locator="<|audio|>", duration=1.0)
        for role, text in case.get("turns", ())
    )
    return one


CASES = [
    (name, form, title)
    for name, forms in NEMO.items()
    for form, titles in forms.items()
    for title in titles
    if form != "qwen3"
]
DRAWN = [(name, title) for name, forms in NEMO.items() for title in forms["qwen3"]]


@pytest.mark.parametrize(("name", "form", "title"), CASES)
def test_the_tokens_are_nemos(name, form, title):
    expected = NEMO[name][form][title]
    encoding = encoding_of(name, form)
    one = sample(script().CASES[title])
    if "refused" in expected:
        if (title, form) not in MORE_THAN_NEMO:
            with pytest.raises(ManifestError, match=r"rows\.jsonl, byte 120, row 3"):
                encoding.encode(one)
        else:
            assert encoding.encode(one)["input_ids"]
        return
    assert told(encoding.encode(one)) == shown(expected)


@pytest.mark.parametrize(("name", "title"), DRAWN)
def test_what_nemo_draws_lots_for_is_one_of_its_outcomes(name, title):
    encoding = encoding_of(name, "qwen3")
    one = sample({**script().CASES, **script().THOUGHTS}[title])
    outcomes = [shown(found) for found in NEMO[name]["qwen3"][title] if "refused" not in found]
    if outcomes:
        assert told(encoding.encode(one)) in outcomes
        return
    (refused,) = NEMO[name]["qwen3"][title]
    if refused["refused"] == "AssertionError":
        with pytest.raises(ManifestError, match=r"thoughts that do not.*row 3"):
            encoding.encode(one)


def test_all_outcomes_come_and_the_same_row_has_the_same():
    def asked(number, answer):
        turns = [Said("user", f"{number}", None), Said("assistant", answer, None)]
        assert with_thoughts(turns) == with_thoughts(turns)
        return with_thoughts(turns)[0].text.replace(f"{number}", "it")

    thinking = {asked(number, "<think>a</think>b") for number in range(40)}
    assert thinking == {"it", "it /think", "/think it"}
    assert {asked(number, "b") for number in range(40)} == {"it /no_think", "/no_think it"}


def told(got):
    assert got["context_ids"] + got["answer_ids"] == got["input_ids"]
    mask = "".join("01"[bit] for bit in got["mask"])
    return got["input_ids"], len(got["context_ids"]), len(got["answer_ids"]), mask


def shown(found):
    mask = found["mask"] or "0" * len(found["ids"])
    return found["ids"], found["context"], found["answer"], mask
