"""Writes what NeMo's prompt formats make of samples; run by hand with a Python that has NeMo.

python nemo_ids.py > ids.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent
FORMATS = [
    "plain",
    "t5nmt",
    "llama2",
    "llama3",
    "qwen",
    "gemma",
    "mistral",
    "phi2_qa",
    "phi2_chat",
    "phi2_code",
    "nemotron-h",
]
ASKED = "translate the house\nplease"
TEXT = "we speak and listen  today"
TURNS = [
    ["user", "the quick brown dog"],
    ["user", None],
    ["assistant", "jumps over"],
    ["assistant", " über haus wir"],
    ["user", None],
    ["user", "and?"],
]
CASES = {
    "cut": {"kind": "cut", "text": TEXT, "custom": {"context": ASKED}},
    "cut, nothing asked": {"kind": "cut", "text": TEXT, "custom": {}},
    "cut, question": {"kind": "cut", "text": TEXT, "custom": {"question": "what?"}},
    "cut, default": {"kind": "cut", "text": TEXT, "custom": {"default_context": "<de>"}},
    "cut, system": {
        "kind": "cut",
        "text": TEXT,
        "custom": {"context": ASKED, "system_prompt": "be quick"},
    },
    "cut, no text": {"kind": "cut", "text": None, "custom": {"context": ASKED}},
    "text": {"kind": "text", "text": TEXT + "\n", "custom": {}},
    "pair": {"kind": "pair", "text": "das haus", "custom": {"source": "the house"}},
    "pair, question": {
        "kind": "pair",
        "text": "das haus",
        "custom": {"source": "the house", "question": "translate:"},
    },
    "pair, more": {
        "kind": "pair",
        "text": "das haus",
        "custom": {"source": "the house", "extra_prompt": "short"},
    },
    "sft": {
        "kind": "sft",
        "turns": [["user", "a cat?"], ["assistant", "a dog"], ["assistant", "or both"]],
    },
    "sft, asked": {"kind": "sft", "turns": [["user", "a"], ["assistant", "b"], ["user", "the"]]},
    "sft, system": {"kind": "sft", "turns": [["system", "be lazy"], *TURNS[:1], *TURNS[2:3]]},
    "conversation": {"kind": "conversation", "turns": TURNS[:4]},
    "conversation, asked": {"kind": "conversation", "turns": TURNS},
    "conversation, system": {"kind": "conversation", "turns": [["system", "listen"], *TURNS[:3]]},
    "conversation, answers alone": {"kind": "conversation", "turns": TURNS[2:4]},
}

# Of qwen3, which draws lots: all that may come out is written down.
THOUGHTS = {
    "thoughts": {
        "kind": "conversation",
        "turns": [
            ["system", "be quick"],
            ["user", "a cat?"],
            ["assistant", "<think>hm</think>\n\na dog "],
            ["user", "and?"],
            ["assistant", "<think>\nboth </think>\n\n today "],
        ],
    },
    "empty thoughts": {
        "kind": "conversation",
        "turns": [["system", " "], ["user", "a"], ["assistant", "<think>\n\n</think>\n\nb"]],
    },
    "no system": {"kind": "sft", "turns": [["user", "a"], ["assistant", "b"]]},
    "thoughts, asked": {
        "kind": "conversation",
        "turns": [
            ["system", ""],
            ["user", "a"],
            ["assistant", "<think>x</think> b"],
            ["user", "c"],
        ],
    },
    "late thoughts": {
        "kind": "conversation",
        "turns": [["user", "a"], ["assistant", "b <think>c</think>"]],
    },
    "endless thoughts": {
        "kind": "conversation",
        "turns": [["user", "a"], ["assistant", "<think>"]],
    },
    "endings alone": {"kind": "conversation", "turns": [["user", "a"], ["assistant", "b</think>"]]},
}


def sample(case: dict):
    from lhotse import MonoCut, SupervisionSegment
    from nemo.collections.common.data.lhotse import text_adapters as nemo

    custom = case.get("custom", {})
    if case["kind"] == "cut":
        said = SupervisionSegment(
            id="s", recording_id="r", start=0, duration=1, text=case["text"], language="en"
        )
        return MonoCut(
            id="c", start=0, duration=1, channel=0, supervisions=[said], custom=dict(custom)
        )
    if case["kind"] == "text":
        return nemo.TextExample(case["text"], language="en")
    if case["kind"] == "pair":
        question = custom.get("question")
        pair = nemo.SourceTargetTextExample(
            source=nemo.TextExample(custom["source"], language="en"),
            target=nemo.TextExample(case["text"], language="de"),
            question=question and nemo.TextExample(question, language="en"),
        )
        pair.custom = {"extra_prompt": custom["extra_prompt"]} if "extra_prompt" in custom else {}
        return pair
    if case["kind"] == "sft":
        turns = [turn for turn in case["turns"] if turn[0] != "system"]
        system = [turn[1] for turn in case["turns"] if turn[0] == "system"]
        said = [{"from": role.title(), "value": text} for role, text in turns]
        return nemo.NeMoSFTExample({"conversations": said, "system": "".join(system)})
    turns = [
        nemo.AudioTurn(cut=None, role=role, audio_locator_tag="<|audio|>")
        if text is None
        else nemo.TextTurn(value=text, role=role)
        for role, text in case["turns"]
    ]
    return nemo.NeMoMultimodalConversation(id="c", turns=turns)


def encoded(case: dict, prompt) -> dict | None:
    from nemo.collections.common.data.prompt_fn import apply_prompt_format_fn

    try:
        found = apply_prompt_format_fn(sample(case), prompt)
    except Exception as error:  # noqa: BLE001 - whatever it refuses
        return {"refused": type(error).__name__}
    context, answer = len(found["context_ids"]), len(found.get("answer_ids", ()))
    mask = found.get("mask")
    return {
        "ids": found["input_ids"].tolist(),
        "context": context,
        "answer": answer,
        "mask": "" if mask is None else "".join("01"[bit] for bit in mask.tolist()),
    }


def drawn(case: dict, prompt) -> list[dict]:
    from nemo.collections.common.prompts import qwen

    found = []
    for place in range(3):
        for lots in ((a, b) for a in (0.1, 0.9) for b in (0.1, 0.9)):
            left = list(lots)
            qwen.random = SimpleNamespace(
                choice=lambda turns, place=place: turns[place % len(turns)],
                random=lambda left=left: left.pop(0),
            )
            one = encoded(case, prompt)
            if one not in found:
                found.append(one)
    return found


def main() -> None:
    from nemo.collections.common.prompts import PromptFormatter
    from nemo.collections.common.tokenizers import AutoTokenizer, SentencePieceTokenizer

    tokenizers = {
        "sentencepiece": SentencePieceTokenizer(str(HERE / "prompts.model")),
        "tokenizers": AutoTokenizer(str(HERE)),
    }
    found = {
        name: {
            form: {
                title: encoded(case, PromptFormatter.resolve(form)(tokenizer))
                for title, case in CASES.items()
            }
            for form in FORMATS
        }
        for name, tokenizer in tokenizers.items()
    }
    for name, tokenizer in tokenizers.items():
        prompt = PromptFormatter.resolve("qwen3")(tokenizer)
        cases = {**CASES, **THOUGHTS}
        found[name]["qwen3"] = {title: drawn(case, prompt) for title, case in cases.items()}
    json.dump(found, sys.stdout, separators=(",", ":"))


if __name__ == "__main__":
    main()
