"""Small corpora of text and conversations, one of every type, with something like speech in them.

`FORMS` names them all: those of this module, and those of `support.talk_cuts`, which are made of
cuts. Each has ten samples that a pass hands out, and writes the entry of `input_cfg` that reads
them; `section` adds what a section has to say for conversations.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.corpus import write_jsonl, write_tar
from support.talk_base import (
    FORMS,
    MARKS,
    NUM,
    RATE,
    ROLES,
    SECONDS_PER_TOKEN,
    TAG,
    Form,
    Kind,
    form,
    seconds_of,
    section,
    sentencepiece_model,
    tokenizer,
    tokenizer_json,
    voice,
    write_lines,
    write_voice,
)
from support.talk_texts import (
    materialized,
    nemo_sft_jsonl,
    nemotron_text,
    nemotron_text_tar,
    texts,
    txt,
    txt_jsonl,
    txt_pair,
    txt_pair_lists,
    txt_pair_questions,
    txt_pair_shards,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "FORMS",
    "MARKS",
    "NUM",
    "PLACEHOLDERS",
    "RATE",
    "ROLES",
    "SECONDS_PER_TOKEN",
    "TAG",
    "Form",
    "Kind",
    "conversation_row",
    "conversations",
    "conversations_tags",
    "conversations_tars",
    "conversations_text",
    "form",
    "materialized",
    "nemo_sft_jsonl",
    "nemotron_text",
    "nemotron_text_tar",
    "seconds_of",
    "section",
    "sentencepiece_model",
    "share_gpt",
    "share_gpt_lists",
    "share_gpt_root",
    "share_gpt_row",
    "share_gpt_tars",
    "skipped_row",
    "texts",
    "tokenizer",
    "tokenizer_json",
    "txt",
    "txt_jsonl",
    "txt_pair",
    "txt_pair_lists",
    "txt_pair_questions",
    "txt_pair_shards",
    "voice",
    "webdataset",
    "webdataset_row",
    "webdataset_scan",
    "webdataset_split",
    "write_lines",
    "write_voice",
]


def _said(who: str, value: str, **more: Any) -> dict[str, Any]:
    return {"from": ROLES[who], "type": "text", "value": value, **more}


def _spoken(who: str, name: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "from": ROLES[who],
        "type": "audio",
        "value": name,
        "duration": seconds_of(number),
        **more,
    }


def conversation_row(number: int, suffix: str = "wav") -> tuple[dict[str, Any], list[int]]:
    """A row of a `multimodal_conversation`, and the voices of its audio turns in order."""
    asked, told = texts(11)[number % NUM], texts(12)[number % NUM]
    first, second = 3 * number, 3 * number + 1
    one = _spoken("user", f"talk/v{first}.{suffix}", first)
    # A stretch that begins late.
    other = _spoken("user", f"talk/v{second}.{suffix}", second, offset=0.1)
    other["duration"] = round(seconds_of(second) - 0.2, 1)
    answer = _spoken("assistant", f"talk/v{second}.{suffix}", second)
    turns: list[dict[str, Any]]
    voices = [first, second]
    match number % 5:
        case 0:
            turns, voices = [_said("user", asked), one, _said("assistant", told)], [first]
        case 1:
            turns = [one, _said("assistant", told), other, _said("assistant", asked)]
        case 2:
            turns, voices = [_said("user", asked), _said("assistant", told)], []
        case 3:
            turns, voices = [_said("system", "listen"), one, _said("assistant", told)], [first]
        case _:
            third = _spoken("user", f"talk/v{first + 2}.{suffix}", first + 2)
            turns = [_said("user", asked), one, answer, _said("assistant", told)]
            turns += [_said("user", "and today"), third, _said("assistant", "we speak")]
            voices = [first, second, first + 2]
    row: dict[str, Any] = {"id": f"talk-{number}", "conversations": turns}
    if number % 3 == 0:
        row["custom"] = {"score": number / 4, "note": "ü", "_skipme": False}
    return row, voices


def skipped_row(suffix: str = "wav") -> tuple[dict[str, Any], list[int]]:
    """A row that asks to be left out; in a tar its audio is there all the same."""
    row, voices = conversation_row(21, suffix)
    return {**row, "custom": {"_skipme": "noise"}}, voices


def _conversations(folder: Path, suffix: str, shards: int) -> list[Path]:
    """Rows in so many manifests; the voices of each in the order of turns."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [conversation_row(number, suffix) for number in range(NUM)]
    rows.insert(6, skipped_row(suffix))
    paths = []
    for shard in range(shards):
        some = rows[shard * 6 : shard * 6 + 6] if shards > 1 else rows
        paths.append(write_jsonl(folder / f"talk_{shard}.jsonl", [row for row, _ in some]))
        voices = [number for _, numbers in some for number in numbers]
        kind = {"flac": "FLAC"}.get(suffix, "WAV")
        members = [(f"talk/v{n}.{suffix}", voice(seconds_of(n), n, RATE, kind)) for n in voices]
        if shards > 1:
            write_tar(folder / f"audio_{shard}.tar", members)
        else:
            for name, data in members:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
    return paths


@form("multimodal_conversation", "conversation")
def conversations(folder: Path) -> dict[str, Any]:
    (path,) = _conversations(folder, "wav", 1)
    return {"type": "multimodal_conversation", "manifest_filepath": str(path)}


@form("multimodal_conversation, tars", "conversation")
def conversations_tars(folder: Path) -> dict[str, Any]:
    _conversations(folder, "flac", 2)
    return {
        "type": "multimodal_conversation",
        "manifest_filepath": f"{folder}/talk__OP_0..1_CL_.jsonl",
        "tarred_audio_filepaths": f"{folder}/audio__OP_0..1_CL_.tar",
    }


@form("multimodal_conversation, text", "conversation")
def conversations_text(folder: Path) -> dict[str, Any]:
    rows = [conversation_row(5 * number + 2)[0] for number in range(NUM)]
    path = write_jsonl(folder / "text.jsonl", rows)
    return {"type": "multimodal_conversation", "manifest_filepath": str(path)}


@form("multimodal_conversation, tags", "conversation")
def conversations_tags(folder: Path) -> dict[str, Any]:
    tags = {"system_prompt": "speak today", "context": "the fox", "task": "talk"}
    return {**conversations(folder), "tags": tags}


def share_gpt_row(number: int, suffix: str = "wav") -> tuple[dict[str, Any], list[int]]:
    """A row of `share_gpt`, and the voices that it speaks of."""
    asked, told = texts(13)[number % NUM], texts(14)[number % NUM]
    name = f"share/s{number}.{suffix}"
    row: dict[str, Any] = {"id": f"share-{number}", "sound": name}
    match number % 4:
        case 0:
            turns = [("human", f"<sound>\n{asked}"), ("gpt", told)]
        case 1:
            turns = [("user", f"{asked} <speech> and today"), ("assistant", told)]
            row["ori_sound"] = row.pop("sound")
        case 2:
            turns = [("human", asked), ("gpt", told)]
            del row["sound"]
        case _:
            turns = [("human", "<speech>"), ("gpt", told), ("human", asked), ("gpt", "we listen")]
    row["conversations"] = [{"from": who, "value": text} for who, text in turns]
    if number == 4:
        row["conversations"][0] |= {"offset": 0.1, "duration": 0.4}
    return row, [number] if "sound" in row or "ori_sound" in row else []


PLACEHOLDERS = ["<sound>", "<speech>"]


@form("share_gpt", "conversation")
def share_gpt(folder: Path) -> dict[str, Any]:
    rows = [share_gpt_row(number) for number in range(NUM)]
    for _, voices in rows:
        for number in voices:
            write_voice(folder / f"share/s{number}.wav", number)
    path = write_jsonl(folder / "share.jsonl", [row for row, _ in rows])
    return {
        "type": "share_gpt",
        "manifest_filepath": str(path),
        "audio_placeholders": PLACEHOLDERS,
    }


@form("share_gpt, audio root", "conversation")
def share_gpt_root(folder: Path) -> dict[str, Any]:
    entry = share_gpt(folder)
    (folder / "elsewhere").mkdir()
    (folder / "share").rename(folder / "elsewhere/share")
    return {**entry, "audio_root": str(folder / "elsewhere")}


@form("share_gpt, lists", "conversation", in_nemo=False)
def share_gpt_lists(folder: Path) -> dict[str, Any]:
    """Two files for one placeholder, two for two, and one for two."""
    rows: list[dict[str, Any]] = []
    for number in range(NUM):
        paths = [f"share/s{number}.wav", f"share/s{number + 10}.wav"]
        for n, path in enumerate(paths):
            write_voice(folder / path, number + 10 * n)
        asked, told = texts(15)[number], texts(16)[number]
        text, sound = {
            0: (f"<sound> {asked}", paths),
            1: (f"<sound> {asked} <speech> today", paths),
            2: (f"{asked} <sound> and <sound>", paths[0]),
        }[number % 3]
        said = [{"from": "human", "value": text}, {"from": "gpt", "value": told}]
        rows.append({"id": f"lists-{number}", "sound": sound, "conversations": said})
    path = write_jsonl(folder / "lists.jsonl", rows)
    return {"type": "share_gpt", "manifest_filepath": str(path), "audio_placeholders": PLACEHOLDERS}


@form("share_gpt, tars", "conversation")
def share_gpt_tars(folder: Path) -> dict[str, Any]:
    for shard in (0, 1):
        rows = [share_gpt_row(n, "flac") for n in range(5 * shard, 5 * shard + 5)]
        members = [
            (f"share/s{n}.flac", voice(seconds_of(n), n, RATE, "FLAC"))
            for _, voices in rows
            for n in voices
        ]
        write_tar(folder / f"audio_{shard}.tar", members)
        write_jsonl(folder / f"share_{shard}.jsonl", [row for row, _ in rows])
    return {
        "type": "share_gpt",
        "manifest_filepath": f"{folder}/share__OP_0..1_CL_.jsonl",
        "tarred_audio_filepaths": f"{folder}/audio__OP_0..1_CL_.tar",
        "audio_placeholders": PLACEHOLDERS,
    }


def webdataset_row(number: int) -> dict[str, Any]:
    """A sample of `share_gpt_webdataset`, with or without an id and the name of its audio."""
    row, _ = share_gpt_row(number + (number % 4 == 2), "flac")
    for key in ("sound", "ori_sound"):
        row.pop(key, None)
    row["id"] = f"web-{number}"
    if number % 3 == 0:
        row["sound"] = f"{number}.flac"
    if number % 5 == 4:
        del row["id"]
    return row


def _webdataset(folder: Path, *, audio_first: bool = False) -> list[str]:
    """Two archives, in folders of their own; their paths below `folder`."""
    names = []
    for shard in (0, 1):
        members = []
        for number in range(5 * shard, 5 * shard + 5):
            sample = [
                (f"{number}.json", json.dumps(webdataset_row(number)).encode()),
                (f"{number}.flac", voice(seconds_of(number), number, RATE, "FLAC")),
            ]
            members += reversed(sample) if audio_first else sample
        names.append(f"{shard}/shards/part-{shard}.tar")
        write_tar(folder / names[-1], members)
    return names


@form("share_gpt_webdataset", "conversation")
def webdataset(folder: Path) -> dict[str, Any]:
    names = _webdataset(folder)
    shards = [{"url": name, "nsamples": 5} for name in names]
    (folder / "wids-meta.json").write_text(json.dumps({"shardlist": shards}))
    return {
        "type": "share_gpt_webdataset",
        "data_dir": str(folder),
        "audio_placeholders": PLACEHOLDERS,
    }


@form("share_gpt_webdataset, scan", "conversation")
def webdataset_scan(folder: Path) -> dict[str, Any]:
    _webdataset(folder, audio_first=True)
    return {"type": "share_gpt_webdataset", "data_dir": str(folder)}


@form("share_gpt_webdataset, nv-meta", "conversation", in_nemo=False)
def webdataset_split(folder: Path) -> dict[str, Any]:
    """Beside the two that are for training there is another, and one that is left out."""
    _webdataset(folder)
    for name in ("valid.tar", "2/shards/part-2.tar"):
        write_tar(folder / name, [("x.json", b"{}"), ("x.flac", b"")])
    (folder / ".nv-meta").mkdir()
    (folder / ".nv-meta/split.yaml").write_text(
        "split_parts:\n"
        "  train: [0/shards/part-0.tar, 1/shards/part-1.tar, 2/shards/part-2.tar]\n"
        "  val: [valid.tar]\n"
        "exclude: ['2/shards/*.tar']\n"
    )
    return {"type": "share_gpt_webdataset", "data_dir": str(folder)}
