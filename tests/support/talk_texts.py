"""Small corpora of text, of every type; `support.talk` has them too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.corpus import write_jsonl, write_tar
from support.talk_base import NUM, form, write_lines
from support.token_models import sentences

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "materialized",
    "nemo_sft_jsonl",
    "nemotron_text",
    "nemotron_text_tar",
    "texts",
    "txt",
    "txt_jsonl",
    "txt_pair",
    "txt_pair_lists",
    "txt_pair_questions",
    "txt_pair_shards",
]


def texts(seed: int, language: str = "en", num: int = NUM) -> list[str]:
    """Sentences, each another; the fourth of ten is long."""
    found = [f"{text} {number}" for number, text in enumerate(sentences(num, language, seed))]
    return [f"{text} " * 6 + text if n % NUM == 3 else text for n, text in enumerate(found)]


@form("txt", "text")
def txt(folder: Path) -> dict[str, Any]:
    lines = texts(1)
    paths = [write_lines(folder / f"{n}.txt", lines[7 * n : 7 + 3 * n]) for n in (0, 1)]
    return {"type": "txt", "paths": [str(path) for path in paths], "language": "en"}


@form("txt_jsonl", "text")
def txt_jsonl(folder: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [{"text": text, "n": n} for n, text in enumerate(texts(2))]
    rows.insert(4, {"other": "no text"})
    for shard in (0, 1):
        write_jsonl(folder / f"rows_{shard}.jsonl", rows[6 * shard : 6 + 5 * shard])
    return {"type": "txt_jsonl", "paths": f"{folder}/rows__OP_0..1_CL_.jsonl", "language": "en"}


_ENDS = ("source", "target")


def _pair(folder: Path, shards: int) -> dict[str, Any]:
    ends: dict[str, Any] = {}
    for role, language in (("source", "en"), ("target", "de")):
        lines = texts(3 if role == "source" else 4, language)
        for n in range(shards):
            some = lines[n * NUM // shards :][: NUM // shards]
            write_lines(folder / f"{role}_{n}.txt", some)
        span = f"_OP_0..{shards - 1}_CL_" if shards > 1 else "0"
        ends[f"{role}_paths"] = f"{folder}/{role}_{span}.txt"
        ends[f"{role}_language"] = language
    return {"type": "txt_pair", **ends}


@form("txt_pair", "text")
def txt_pair(folder: Path) -> dict[str, Any]:
    return _pair(folder, 1)


@form("txt_pair, shards", "text")
def txt_pair_shards(folder: Path) -> dict[str, Any]:
    return _pair(folder, 2)


@form("txt_pair, lists", "text", in_nemo=False)
def txt_pair_lists(folder: Path) -> dict[str, Any]:
    lists = {f"{role}_paths": [f"{folder}/{role}_{n}.txt" for n in (0, 1)] for role in _ENDS}
    return {**_pair(folder, 2), **lists}


@form("txt_pair, questions", "text")
def txt_pair_questions(folder: Path) -> dict[str, Any]:
    questions = write_lines(folder / "questions.txt", [f"translate the {n}" for n in range(7)])
    more = {"questions_path": str(questions), "questions_language": "en"}
    return {**_pair(folder, 2), **more}


@form("nemo_sft_jsonl", "conversation")
def nemo_sft_jsonl(folder: Path) -> dict[str, Any]:
    asked, told = texts(5), texts(6)
    rows = []
    for n in range(NUM):
        turns = [("User", asked[n]), ("Assistant", told[n])]
        turns += [("User", "and today"), ("Assistant", told[-n])] if n % 3 == 2 else []
        said = [
            {"from": who, "value": text, "canonical_form": "", "label": None} for who, text in turns
        ]
        row = {"conversations": said, "mask": "User", "system": "", "dataset": "", "category": "x"}
        rows.append(row)
    for shard in (0, 1):
        write_jsonl(folder / f"sft_{shard}.jsonl", rows[5 * shard : 5 * shard + 5])
    paths = [f"{folder}/sft_{shard}.jsonl" for shard in (0, 1)]
    return {"type": "nemo_sft_jsonl", "paths": paths, "language": "en"}


def _fragments(number: int) -> dict[str, Any]:
    asked, told = texts(7)[number], texts(8)[number]
    said = [
        {"sender": ("human", "user")[number % 2], "fragments": [asked]},
        {
            "sender": ("gpt", "assistant", "model", "bot")[number % 4],
            "fragments": [{"t": "text", "value": told}, " we speak"],
        },
    ]
    if number % 5 == 4:
        said.insert(0, {"sender": "system", "fragments": [{"value": "speak and listen"}]})
    row: dict[str, Any] = {"conversation": said}
    if number % 2:
        row["id"] = f"own-{number}"
    if number % 3 == 0:
        row["custom"] = {"score": number / 4}
    return row


@form("nemotron_text_converation", "conversation", in_nemo=False)
def nemotron_text(folder: Path) -> dict[str, Any]:
    for shard in (0, 1):
        numbers = range(5 * shard, 5 * shard + 5)
        write_jsonl(folder / f"talk_{shard}.jsonl", [_fragments(n) for n in numbers])
    return {"type": "nemotron_text_converation", "paths": f"{folder}/talk__OP_0..1_CL_.jsonl"}


@form("nemotron_text_converation, tar", "conversation", in_nemo=False)
def nemotron_text_tar(folder: Path) -> dict[str, Any]:
    for shard in (0, 1):
        numbers = range(5 * shard, 5 * shard + 5)
        # One of them is written on several lines.
        members = [
            (f"row-{n}.json", json.dumps(_fragments(n), indent=2 if n == 3 else None).encode())
            for n in numbers
        ]
        write_tar(folder / f"talk_{shard}.tar", members)
    return {"type": "nemotron_text_converation", "paths": f"{folder}/talk__OP_0..1_CL_.tar"}


@form("materialized_sft_messages", "conversation", in_nemo=False)
def materialized(folder: Path) -> dict[str, Any]:
    """Contents as a chat template leaves them: pieces whose tokens are those of the whole."""
    rows = []
    for n, (asked, told) in enumerate(zip(texts(9), texts(10), strict=True)):
        said = [
            {"role": "user", "content": f"<|im_start|>{asked}<|im_end|>"},
            {"role": "assistant", "content": f"<|im_start|>{told}<|im_end|>"},
        ]
        if n % 4 == 1:
            said.insert(0, {"role": "system", "content": "<|im_start|>speak<|im_end|>"})
        rows.append({"messages": said})
    path = write_jsonl(folder / "messages.jsonl", rows)
    return {"type": "materialized_sft_messages", "paths": str(path)}
