"""A Whisper of a few thousand parameters, what it reads of speech, and what it was given."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

if TYPE_CHECKING:
    from pathlib import Path

    from lhotse import CutSet

RATE = 16000
PAD, START, END, FIRST_BYTE = 0, 1, 2, 3


def small_whisper(dropout: float = 0.0) -> WhisperForConditionalGeneration:
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=FIRST_BYTE + 256,
            num_mel_bins=8,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            max_source_positions=100,
            max_target_positions=64,
            dropout=dropout,
            pad_token_id=PAD,
            bos_token_id=START,
            eos_token_id=END,
            decoder_start_token_id=START,
            suppress_tokens=[],
            begin_suppress_tokens=[],
        )
    )
    # Its loss is a mean over the batch, whatever a Trainer tells it of the others.
    model.accepts_loss_kwargs = False
    return model


class WhisperInputs:
    """Features of two seconds of speech, and its letters; texts, that no model takes, as well."""

    def __init__(self) -> None:
        self.extractor = WhisperFeatureExtractor(feature_size=8, sampling_rate=RATE, chunk_length=2)

    def __getitem__(self, cuts: CutSet) -> dict[str, Any]:
        texts = [cut.supervisions[0].text for cut in cuts]
        audio = [cut.load_audio()[0] for cut in cuts]
        tokens = [[FIRST_BYTE + byte for byte in text.encode()[:60]] + [END] for text in texts]
        labels = torch.full((len(tokens), max(map(len, tokens))), -100)
        for row, one in zip(labels, tokens, strict=True):
            row[: len(one)] = torch.tensor(one)
        features = self.extractor(audio, sampling_rate=RATE, return_tensors="pt")
        return {"input_features": features["input_features"], "labels": labels, "texts": texts}


class Notes:
    """What a model was trained on, a line for each batch, on the disk before the next one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, step: int, batch: dict[str, Any]) -> None:
        line = {"step": step, "batch": digest_of(batch)}
        os.write(self._file, (json.dumps(line) + "\n").encode())
        os.fsync(self._file)


def digest_of(batch: dict[str, Any]) -> str:
    """Of the tensors that a model takes."""
    digest = hashlib.sha256()
    for name in ("input_features", "labels"):
        digest.update(np.ascontiguousarray(batch[name].cpu().numpy()).tobytes())
    return digest.hexdigest()[:16]
