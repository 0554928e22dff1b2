"""What small corpora of text and conversations are made of: forms, voices, tokenizers."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import soundfile as sf

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
