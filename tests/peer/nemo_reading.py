"""What NeMo's own dataloader reads, as JSON lines; run by a Python that has NeMo.

`python nemo_reading.py CASES.json OUT.jsonl` reads a list of `{"name", "config", "tokenizer"}` and
writes a line for every cut: `{"case", "batch", "cut"}`, or `{"case", "error"}` where NeMo refuses
it. `facts_of` is what both sides say of a cut, and `facts_of_talk` of texts and conversations.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """What JSON can say of a value of `custom`."""
    if hasattr(value, "sampling_rate") and hasattr(value, "sources"):
        return ["recording", value.sampling_rate, digest_of(value.load_audio())]
    if hasattr(value, "storage_type") or hasattr(value, "array"):
        return ["array", digest_of(value.load().astype(np.float64))]
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        return [plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


def digest_of(samples: Any) -> str:
    samples = np.ascontiguousarray(samples)
    return hashlib.sha256(
        f"{samples.dtype}{samples.shape}".encode() + samples.tobytes()
    ).hexdigest()


def numbers(value: Any) -> list[int] | None:
    return None if value is None else [int(one) for one in value]


def facts_of(cut: Any) -> dict[str, Any]:
    """All that is compared of a cut; `peak` and `num_samples` only help to see what differs."""
    tracks = getattr(cut, "tracks", None)
    inner = [track.cut for track in tracks] if tracks else [cut]
    custom: dict[str, Any] = {}
    for one in inner:
        custom.update(getattr(one, "custom", None) or {})
    # The length with which a batch was made.
    custom.pop("num_tokens", None)
    attributes = {name: numbers(custom.pop(name, getattr(cut, name, None))) for name in _IDS}
    audio = cut.load_audio().astype(np.float32)
    said = []
    for one in cut.supervisions:
        own = dict(one.custom or {})
        said.append(
            {
                "start": round(float(one.start), 6),
                "duration": round(float(one.duration), 6),
                "text": one.text,
                "language": one.language,
                "speaker": one.speaker,
                "tokens": numbers(own.pop("tokens", None)),
                "custom": plain(own),
            }
        )
    return {
        "id": cut.id,
        "start": None if tracks else round(float(cut.start), 6),
        "duration": round(float(cut.duration), 6),
        "sampling_rate": cut.sampling_rate,
        "num_channels": cut.num_channels,
        "num_samples": audio.shape[-1],
        "supervisions": said,
        "custom": plain(custom),
        **attributes,
        "peak": round(float(np.abs(audio).max()), 5),
        "audio": digest_of(audio),
    }


def facts_of_turn(turn: Any) -> dict[str, Any]:
    """A text turn, or an audio turn with what is heard in it."""
    if not hasattr(turn, "audio_locator_tag"):
        return {"role": turn.role, "value": turn.value}
    audio = turn.cut.load_audio().astype(np.float32)
    return {
        "role": turn.role,
        "text": turn.text,
        "tag": turn.audio_locator_tag,
        "cut": turn.cut.id,
        "duration": round(float(turn.cut.duration), 6),
        "sampling_rate": turn.cut.sampling_rate,
        "num_samples": audio.shape[-1],
        "audio": digest_of(audio),
    }


def length_of(example: Any, name: str) -> int | None:
    """A length that may not be known, or only where tokens are."""
    try:
        value = getattr(example, name, None)
    except (AttributeError, AssertionError):
        return None
    return None if value is None else int(value)


def facts_of_text(text: Any) -> dict[str, Any] | None:
    if text is None:
        return None
    tokens = numbers(getattr(text, "tokens", None))
    return {"text": text.text, "language": text.language, "tokens": tokens}


_IDS = ("input_ids", "context_ids", "answer_ids", "mask")
_LENGTHS = ("input_length", "output_length", "total_length")


def facts_of_talk(example: Any) -> dict[str, Any]:
    """All that is compared of what is no cut: its texts or turns, tokens and lengths."""
    ids = {name: numbers(getattr(example, name, None)) for name in _IDS}
    lengths = {name: length_of(example, name) for name in _LENGTHS}
    custom = getattr(example, "custom", None) or {}
    # What is set on such an example lands there.
    own = {key: value for key, value in custom.items() if key not in (*_IDS, "num_tokens")}
    facts = {**ids, **lengths, "custom": plain(own)}
    if hasattr(example, "turns"):
        facts |= {"id": example.id, "turns": [facts_of_turn(turn) for turn in example.turns]}
        facts["language"] = getattr(example, "language", None)
    elif hasattr(example, "source"):
        for name in ("source", "target", "question"):
            facts[name] = facts_of_text(getattr(example, name))
    elif hasattr(example, "data"):
        # A row of chats: what it says beside them is its custom.
        row = dict(example.data)
        said = row.pop("conversations")
        turns = [{"role": turn["from"].lower(), "value": turn["value"]} for turn in said]
        facts |= {"turns": turns, "custom": plain(row), "language": example.language}
    else:
        facts |= facts_of_text(example) or {}
    return facts


def facts_of_any(example: Any) -> dict[str, Any]:
    """Facts of a cut, or of what is none."""
    # Texts and conversations make up any `load_…` that they are asked for.
    is_cut = hasattr(type(example), "load_audio")
    return facts_of(example) if is_cut else facts_of_talk(example)


class Cuts:
    """A dataset that hands the cuts themselves over."""

    def __getitem__(self, cuts: Any) -> list[Any]:
        return list(cuts)


def tokenizer_of(spec: Any) -> Any:
    """NeMo's own tokenizer of a path, or of languages and paths."""
    from nemo.collections.common.tokenizers.aggregate_tokenizer import AggregateTokenizer
    from nemo.collections.common.tokenizers.canary_tokenizer import CanaryTokenizer
    from nemo.collections.common.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    if spec is None:
        return None
    if isinstance(spec, str):
        return SentencePieceTokenizer(spec)
    kind = CanaryTokenizer if "spl_tokens" in spec else AggregateTokenizer
    return kind({language: SentencePieceTokenizer(path) for language, path in spec.items()})


def read(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Every sample of a pass, with the number of its batch."""
    from nemo.collections.common.data.lhotse.dataloader import get_lhotse_dataloader_from_config
    from omegaconf import OmegaConf

    settings = {
        "force_finite": True,
        "shuffle": False,
        "seed": 0,
        "shard_seed": 0,
        "num_workers": 0,
        "batch_size": 4,
        **case["config"],
    }
    loader = get_lhotse_dataloader_from_config(
        OmegaConf.create(settings),
        global_rank=0,
        world_size=1,
        dataset=Cuts(),
        tokenizer=tokenizer_of(case.get("tokenizer")),
    )
    return [
        {"batch": number, "cut": facts_of_any(one)}
        for number, batch in enumerate(loader)
        for one in batch
    ]


def resample_with_own_kernel() -> None:
    """Let Lhotse resample as it does where torchaudio is, which cannot be had for every PyTorch."""
    from lhotse.augmentation import torchaudio

    torchaudio.is_torchaudio_available = lambda: True


def main(cases: Path, out: Path) -> None:
    resample_with_own_kernel()
    with out.open("w") as lines:
        for case in json.loads(cases.read_text()):
            try:
                found = [{"case": case["name"], **line} for line in read(case)]
            except Exception as error:  # noqa: BLE001 - what NeMo refuses is an answer too
                traceback.print_exc()
                found = [{"case": case["name"], "error": f"{type(error).__name__}: {error}"}]
            for line in found or [{"case": case["name"], "cut": None}]:
                lines.write(json.dumps(line) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
