"""Small corpora of text and conversations, one of every type, with something like speech in them.

`FORMS` names them all: those of this module, and those of `support.talk_cuts`, which are made of
cuts. Each has ten samples that a pass hands out, and writes the entry of `input_cfg` that reads
them; `section` adds what a section has to say for conversations.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import soundfile as sf

from support.corpus import write_jsonl, write_tar
from support.token_models import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Write = Callable[[Path], dict[str, Any]]

RATE = 16000
NUM = 10
TAG = "<audio>"
SECONDS_PER_TOKEN = 0.08
ROLES = {"user": "User", "assistant": "Assistant", "system": "System"}
# What prompts and conversations are made of: a token each.
MARKS = (
    *(TAG, "<sound>", "<speech>", "<de>", "<en>"),
    *("<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]"),
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<extra_id_0>", "<extra_id_1>"),
)

Kind = Literal["text", "conversation", "cut"]


@dataclass(frozen=True)
class Form:
    """One corpus: how it is written, and what its samples are."""

    name: str
    type: str
    write: Write
    kind: Kind
    num: int | None = NUM
    """Samples of a pass; None where there is no end."""
    in_nemo: bool = True
    """Whether NeMo 3.0 reads it."""


FORMS: dict[str, Form] = {}


def form(name: str, kind: Kind, type: str | None = None, **more: Any) -> Callable[[Write], Write]:
    """Enter what writes a corpus in `FORMS`."""

    def enter(write: Write) -> Write:
        FORMS[name] = Form(name, type or name.partition(",")[0], write, kind, **more)
        return write

    return enter


def section(*entries: dict[str, Any], **options: Any) -> dict[str, Any]:
    """A section of one pass of these entries, with what it says of audio in conversations."""
    plain = {"audio_locator_tag": TAG, "token_equivalent_duration": SECONDS_PER_TOKEN}
    plain |= {"force_finite": True, "shuffle": False, "batch_size": 4}
    return {"input_cfg": list(entries), **plain, **options}


@lru_cache
def voice(seconds: float, seed: int = 0, rate: int = RATE, format: str = "WAV") -> bytes:
    """Something like speech: a voice that glides, in syllables, with breath; each seed another."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    pitch = 90 + 15 * (seed % 9) + 10 * np.sin(2 * np.pi * 0.7 * time + seed)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    tones = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 9))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * (3 + seed % 3) * time)
    wave = 0.2 * tones * syllables + 0.01 * rng.standard_normal(len(time))
    buffer = io.BytesIO()
    sf.write(buffer, np.round(wave * 20000).astype(np.int16), rate, format=format)
    return buffer.getvalue()


def seconds_of(number: int) -> float:
    """From 0.3 to 1.2 s."""
    return round(0.3 + 0.1 * (number % NUM), 1)


def write_voice(path: Path, number: int, seconds: float | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {".flac": "FLAC"}.get(path.suffix, "WAV")
    path.write_bytes(voice(seconds_of(number) if seconds is None else seconds, number, RATE, kind))
    return path


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@lru_cache
def sentencepiece_model() -> bytes:
    """A tokenizer of these corpora: `MARKS` are a token each, and any byte has one."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences(300, "en"), *sentences(300, "de"), *"<>|:\n"]),
        model_writer=model,
        vocab_size=420,
        byte_fallback=True,
        user_defined_symbols=list(MARKS),
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


@lru_cache
def tokenizer_json() -> bytes:
    """The same for Hugging Face's `tokenizers`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<unk>", "<s>", "</s>", *MARKS],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([*sentences(300, "en"), *sentences(300, "de")], trainer)
    return tokenizer.to_str().encode()


def tokenizer(folder: Path, kind: Literal["sentencepiece", "json"] = "sentencepiece") -> str:
    """Write one of them; return its path."""
    name = "talk.model" if kind == "sentencepiece" else "tokenizer.json"
    data = sentencepiece_model() if kind == "sentencepiece" else tokenizer_json()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return str(folder / name)


# Texts ---------------------------------------------------------------------------------------


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


# Conversations -------------------------------------------------------------------------------


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
