"""A dataset that tells all there is to know of samples of any kind."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import playhead
from peer.nemo_reading import facts_of_any
from support.corpus import write_jsonl
from support.talk import SECONDS_PER_TOKEN, section, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Facts = dict[str, Any]


class Told:
    """Facts of each sample, audio and tokens among them, and a digest of all of that."""

    def __getitem__(self, samples: Iterable[Any]) -> dict[str, Any]:
        facts = [facts_of_any(one) for one in samples]
        said = [json.dumps(one, sort_keys=True).encode() for one in facts]
        return {"facts": facts, "digests": [hashlib.sha256(one).hexdigest() for one in said]}


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
