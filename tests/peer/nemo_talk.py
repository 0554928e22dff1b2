"""Texts, conversations and duplex speech that NeMo and Playhead both read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.talk import section, tokenizer, write_lines
from support.talk_cuts import FORMS

if TYPE_CHECKING:
    from pathlib import Path

# What both read, and what has an end.
SHARED = [name for name, form in FORMS.items() if form.in_nemo and form.num is not None]
ENTRIES = "entries.json"
MODEL = "talk.model"


def write_talk(folder: Path) -> None:
    """All of it, and the entries that read it by name."""
    entries = {}
    for number, name in enumerate(SHARED):
        place = folder / f"{number:02d}"
        place.mkdir()
        entries[name] = FORMS[name].write(place)
    # Which of several is asked is drawn: here they are all the same.
    questions = entries["txt_pair, questions"]["questions_path"]
    write_lines(folder / questions, ["translate the fox"] * 3)
    (folder / ENTRIES).write_text(json.dumps(entries))
    tokenizer(folder)


def talk_config(*names: str, **options: Any) -> dict[str, Any]:
    """A section that reads these, each as `{"form": name}`, by the tokens of what is said."""
    plain = section(use_multimodal_sampling=True, shuffle=False)
    return {**plain, "input_cfg": [{"form": name} for name in names], **options}


def resolved(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same with the entries in place of their names."""
    if not (folder / ENTRIES).exists() or "input_cfg" not in config:
        return config
    entries = json.loads((folder / ENTRIES).read_text())

    def entry(one: dict[str, Any]) -> dict[str, Any]:
        if "form" not in one:
            inner = [entry(each) for each in one.get("input_cfg", ())]
            return {**one, "input_cfg": inner} if inner else one
        return {**entries[one["form"]], **{key: one[key] for key in one if key != "form"}}

    return {**config, "input_cfg": [entry(one) for one in config["input_cfg"]]}


# What has turns of the system, which not every prompt knows.
SYSTEM = {
    "multimodal_conversation",
    "multimodal_conversation, tars",
    "multimodal_conversation, tags",
    "lhotse_as_conversation",
    "lhotse_as_conversation, manifest",
    "sqa_as_conversation",
}
PROMPTS = ("llama2", "llama3", "qwen", "gemma", "mistral", "phi2_chat", "nemotron-h")
BINS: dict[str, Any] = {
    "bucket_duration_bins": [[40, 30], [40, 60], [90, 40], [90, 120]],
    "bucket_batch_size": [4, 3, 2, 1],
}
ANYWHERE: dict[str, dict[str, Any]] = {
    "durations": {"min_duration": 0.7, "max_duration": 1.6},
    "resampled": {"sample_rate": 8000},
}
IN_TOKENS: dict[str, dict[str, Any]] = {
    "numbers of tokens": {"min_tokens": 60, "max_tokens": 200},
    "numbers of input tokens": {
        "min_tokens": 30,
        "max_tokens": 90,
        "measure_total_length": False,
    },
    "least answer": {"min_tpt": 1},
    "most answer": {"max_tpt": 0.9},
    "bins": {"bucket_duration_bins": [60, 90, 180], "bucket_batch_size": [3, 2, 1]},
    "bins of inputs": {
        "bucket_duration_bins": [60, 90],
        "bucket_batch_size": [3, 2],
        "measure_total_length": False,
    },
    "two bins": BINS,
    "two lenient bins": {**BINS, "bucketing_2d_strict_mode": False},
    "two bins with ratios": {**BINS, "max_tpt": [0.5, 1.0, 0.6, 1.1]},
}


BLEND: list[dict[str, Any]] = [
    {
        "type": "group",
        "weight": 0.5,
        "tags": {"task": "both"},
        "input_cfg": [
            {"form": "share_gpt", "weight": 2, "tags": {"origin": "share"}},
            {"form": "txt_pair", "weight": 1},
        ],
    },
    {"form": "nemo_sft_jsonl", "weight": 1, "tags": {"origin": "chats"}},
    {"form": "lhotse_as_conversation, tars", "weight": 0.5, "tags": {"context": "the fox"}},
]


def talk_configs() -> dict[str, tuple[str, dict[str, Any]]]:
    """Configs by name, each with the corpus that it reads."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}

    def add(name: str, of: str, **options: Any) -> None:
        if "bucket_duration_bins" in options:
            options = {**options, "concurrent_bucketing": False, "batch_size": None}
        found[f"talk, {name}"] = (of, talk_config(of, **options))

    for name in SHARED:
        add(name, name, prompt_format="llama3" if name in SYSTEM else "plain")
    for name in ("txt", "txt_pair, questions", "nemo_sft_jsonl", "share_gpt"):
        for prompt in PROMPTS:
            add(f"{name}, {prompt}", name, prompt_format=prompt)
    add("txt_pair, t5nmt", "txt_pair", prompt_format="t5nmt")
    for name in ("txt", "txt_jsonl"):
        windows = {"cut_text_into_windows_tokens": 16, "prompt_format": "llama2"}
        add(f"{name}, windows", name, **windows)
        add(f"{name}, without a prompt", name)
    mixed = {**talk_config(prompt_format="llama3"), "input_cfg": BLEND}
    found["talk, a blend"] = ("a blend", mixed)
    for change, options in ANYWHERE.items():
        for name in ("multimodal_conversation", "share_gpt_webdataset", "s2s_as_conversation"):
            add(f"{name}, {change}", name, prompt_format="llama3", **options)
    for change, options in IN_TOKENS.items():
        for name in ("multimodal_conversation", "share_gpt", "txt_pair"):
            add(f"{name}, {change}", name, prompt_format="llama3", **options)
    return found
