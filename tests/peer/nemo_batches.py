"""Compares the batches of NeMo's datasets by two loaders; run by a Python that has NeMo.

`python nemo_batches.py CASES.json OUT.jsonl` reads a list of `{"name", "config", "tokenizer",
"dataset"}`. Of each it makes NeMo's own loader and Playhead's, of the same config with the same
dataset and tokenizer, and writes `{"case", "theirs", "ours"}`: what the batches of each hold, or
`{"case", "missing"}` where the dataset cannot be imported, `{"case", "error"}` where one fails.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

ASR = "nemo.collections.asr.data"


def facts_of(value: Any) -> Any:
    """What a batch holds, as JSON: of tensors their type, their shape and a digest."""
    if isinstance(value, torch.Tensor):
        value = value.contiguous()
        digest = hashlib.sha256(value.numpy().tobytes()).hexdigest()
        return [str(value.dtype), list(value.shape), digest]
    if isinstance(value, dict):
        return {str(key): facts_of(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [facts_of(one) for one in value]
    if dataclasses.is_dataclass(value) and not hasattr(value, "turns"):
        return {field.name: facts_of(getattr(value, field.name)) for field in _fields(value)}
    if type(value).__name__ == "CutSet":
        return [_sample(one) for one in value]
    return value if isinstance(value, (str, int, float, bool)) else str(type(value))


def _fields(value: Any) -> Any:
    return dataclasses.fields(value)


def _sample(one: Any) -> Any:
    """A cut by its length and what is said in it; a conversation by its class and its turns."""
    if not hasattr(one, "turns"):
        return [round(one.duration, 4), [said.text for said in one.supervisions]]
    turns = [
        [type(turn).__name__, turn.role, getattr(turn, "value", None) or turn.audio_locator_tag]
        for turn in one.turns
    ]
    lengths = [one.input_length, one.output_length, one.total_length]
    return [type(one).__name__, one.id, turns, lengths, facts_of(torch.as_tensor(one.input_ids))]


def tokenizer_of(spec: Any) -> Any:
    """NeMo's own tokenizer of a path, of languages and paths, or of a folder of Hugging Face's."""
    from nemo.collections.common.tokenizers.aggregate_tokenizer import AggregateTokenizer
    from nemo.collections.common.tokenizers.canary_tokenizer import CanaryTokenizer
    from nemo.collections.common.tokenizers.huggingface.auto_tokenizer import AutoTokenizer
    from nemo.collections.common.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    if spec is None:
        return None
    if isinstance(spec, str):
        is_folder = Path(spec).is_dir()
        return AutoTokenizer(spec, use_fast=True) if is_folder else SentencePieceTokenizer(spec)
    kind = CanaryTokenizer if "spl_tokens" in spec else AggregateTokenizer
    return kind({language: SentencePieceTokenizer(path) for language, path in spec.items()})


def of_letters() -> Any:
    from nemo.collections.common.parts.preprocessing.parsers import make_parser

    return make_parser(labels=list(" abcdefghijklmnopqrstuvwxyz0123456789"), name="en")


def dataset_of(name: str, tokenizer: Any) -> Any:
    """A dataset of NeMo's by its name here."""

    def found(module: str, kind: str) -> Any:
        return getattr(importlib.import_module(module), kind)

    transcribing = "LhotseSpeechToTextBpeDataset"
    if name in ("bpe", "bpe with cuts"):
        kind = found(f"{ASR}.audio_to_text_lhotse", transcribing)
        return kind(tokenizer, return_cuts=name != "bpe")
    if name == "letters":
        return found(f"{ASR}.audio_to_text_lhotse", transcribing)(of_letters())
    if name in ("canary", "canary2"):
        from nemo.collections.common.prompts.formatter import PromptFormatter

        kind = found(f"{ASR}.audio_to_text_lhotse_prompted", "PromptedAudioToTextLhotseDataset")
        return kind(tokenizer, prompt=PromptFormatter.resolve(name)(tokenizer))
    if name == "noisy":
        return found(f"{ASR}.ssl_dataset", "LhotseAudioNoiseDataset")()
    if name == "to audio":
        module = "nemo.collections.audio.data.audio_to_audio_lhotse"
        return found(module, "LhotseAudioToTargetDataset")()
    assert name == "salm"
    return found("nemo.collections.speechlm2.data.salm_dataset", "SALMDataset")(tokenizer)


def compare(case: dict[str, Any]) -> dict[str, Any]:
    from nemo.collections.common.data.fallback import FallbackDataset
    from nemo.collections.common.data.lhotse import get_lhotse_dataloader_from_config as theirs

    from playhead.integrations.nemo import get_lhotse_dataloader_from_config as ours

    tokenizer = tokenizer_of(case["tokenizer"])
    try:
        dataset = dataset_of(case["dataset"], tokenizer)
    except ImportError as error:
        return {"missing": str(error)}
    if case["dataset"] == "salm":
        dataset = FallbackDataset(dataset)
    settings = {
        "force_finite": True,
        "shuffle": False,
        "seed": 0,
        "shard_seed": 0,
        "num_workers": 0,
        "batch_size": 4,
        "concurrent_bucketing": False,
        **case["config"],
    }
    answer = {}
    for name, make in (("theirs", theirs), ("ours", ours)):
        loader = make(
            config=OmegaConf.create(settings),
            global_rank=0,
            world_size=1,
            dataset=copy.deepcopy(dataset),
            tokenizer=None if case["dataset"] == "letters" else tokenizer,
        )
        answer[name] = [facts_of(batch) for batch in loader]
    return answer


def main(cases: Path, out: Path) -> None:
    with out.open("w") as lines:
        for case in json.loads(cases.read_text()):
            try:
                answer = compare(case)
            except Exception:  # noqa: BLE001 - the test says it
                answer = {"error": traceback.format_exc()}
            lines.write(json.dumps({"case": case["name"], **answer}) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
