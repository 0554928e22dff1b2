"""A dataset that tells all there is to know of samples of any kind."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import playhead
from peer.nemo_reading import facts_of_any
from support.corpus import nemo_corpus, write_jsonl
from support.talk import (
    SECONDS_PER_TOKEN,
    conversations_tars,
    conversations_text,
    section,
    txt,
    txt_jsonl,
    txt_pair_questions,
    write_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from playhead.formats import Example

Facts = dict[str, Any]
SPEECH_SECONDS = (0.4, 0.6, 0.8, 1.0, 0.5, 0.7)


class Told:
    """Facts of each sample, audio and tokens among them, and a digest of all of that."""

    def __getitem__(self, samples: Iterable[Any]) -> dict[str, Any]:
        facts = [facts_of_any(one) for one in samples]
        said = [json.dumps(one, sort_keys=True).encode() for one in facts]
        return {"facts": facts, "digests": [hashlib.sha256(one).hexdigest() for one in said]}


class Samples:
    """The samples themselves."""

    reads_audio = False

    def collate(
        self, examples: list[Example], *, sample_rate: int | None, sample_keys: Any
    ) -> dict[str, Any]:
        return {"samples": examples, "ids": [one.id for one in examples]}


def ids_of_pass(config: dict[str, Any], tokenizer: Any = None, **options: Any) -> list[str]:
    """Ids of all samples that a loader hands out."""
    loader = playhead.dataloader(config, dataset=Samples(), tokenizer=tokenizer, **options)
    return [name for batch in loader for name in batch["ids"]]


def one_of_each(new_folder: Callable[[str], Path]) -> dict[str, dict[str, Any]]:
    """Entries of speech, conversations and texts, each in a folder of its own."""
    speech = {"type": "nemo", "tags": {"context": "what is said"}}
    manifest = nemo_corpus(new_folder("cuts"), list(SPEECH_SECONDS))
    return {
        "speech": {**speech, "manifest_filepath": str(manifest)},
        "talk": conversations_tars(new_folder("talk")),
        "written": conversations_text(new_folder("written")),
        "text": txt(new_folder("text")),
        "rows": txt_jsonl(new_folder("rows")),
        "pairs": txt_pair_questions(new_folder("pairs")),
    }


def token_section(*entries: dict[str, Any], **options: Any) -> dict[str, Any]:
    """A section of one pass that counts in tokens, with a prompt that knows all roles."""
    plain = {"use_multimodal_sampling": True, "prompt_format": "llama3", "seed": 5}
    return {**section(*entries), **plain, **options}


def batches_of(config: dict[str, Any], tokenizer: Any = None, **options: Any) -> list[list[Facts]]:
    """Batches of a pass, each as the facts of its samples."""
    loader = playhead.dataloader(config, dataset=Told(), tokenizer=tokenizer, **options)
    return [batch["facts"] for batch in loader]


def told(config: dict[str, Any], tokenizer: Any = None, **options: Any) -> list[Facts]:
    """Samples of a pass in the order in which they are handed out."""
    return [one for batch in batches_of(config, tokenizer, **options) for one in batch]


class Words:
    """A token for each word."""

    digest = "words"

    def encode(self, text: str) -> list[int]:
        return [sum(word.encode()) for word in text.split()]


def plain(*entries: dict[str, Any], **options: Any) -> list[Facts]:
    """Samples of a pass in declared order, with prompts that add nothing."""
    config = token_section(*entries, prompt_format="plain", **options)
    return told(config, Words())


def ceil(seconds: float) -> int:
    return math.ceil(seconds / SECONDS_PER_TOKEN)


def spoken(name: str, seconds: float, who: str = "User", **more: Any) -> dict[str, Any]:
    return {"from": who, "type": "audio", "value": name, "duration": seconds, **more}


def said(text: str, who: str = "User") -> dict[str, Any]:
    return {"from": who, "type": "text", "value": text}


def conversations(folder: Path, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    path = write_jsonl(folder / "talk.jsonl", rows)
    return {"type": "multimodal_conversation", "manifest_filepath": str(path), **more}


def pair(
    folder: Path, sources: list[list[str]], targets: list[list[str]], **more: Any
) -> dict[str, Any]:
    for role, shards in (("source", sources), ("target", targets)):
        for number, lines in enumerate(shards):
            write_lines(folder / f"{role}_{number}.txt", lines)
    paths = {
        "source_paths": [str(folder / f"source_{n}.txt") for n in range(len(sources))],
        "target_paths": [str(folder / f"target_{n}.txt") for n in range(len(targets))],
    }
    languages = {"source_language": "en", "target_language": "de"}
    return {"type": "txt_pair", **paths, **languages, **more}
