"""Audio in every format, and ways to break it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import soundfile as sf

if TYPE_CHECKING:
    from collections.abc import Callable

RATE = 16000
KINDS = {
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "opus": ("OGG", "OPUS"),
}


def speech(seconds: float, seed: int) -> np.ndarray:
    """Something that codecs take for sound, shape (samples,)."""
    time = np.arange(round(seconds * RATE)) / RATE
    tone = np.sin(2 * np.pi * (120 + 31 * seed) * time) + 0.4 * np.sin(2 * np.pi * 900 * time)
    return (0.2 * tone + 0.02 * np.random.default_rng(seed).normal(size=len(time))).astype("f4")


def encoded(seconds: float, kind: str, seed: int = 0) -> bytes:
    buffer = io.BytesIO()
    container, codec = KINDS[kind]
    sf.write(buffer, speech(seconds, seed), RATE, format=container, subtype=codec)
    return buffer.getvalue()


def _flipped(data: bytes) -> bytes:
    """Some bits of the header are wrong."""
    damaged = bytearray(data)
    for at in range(min(48, len(damaged))):
        damaged[at] ^= 0x55
    return bytes(damaged)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[: len(data) // 4],
    "no byte": lambda data: b"",
    "bits flipped": _flipped,
    "text": lambda data: b"This is no audio but a page that a proxy wrote.\n" * 3,
    "zeros": lambda data: bytes(len(data)),
}
"""Each makes audio unusable, whatever its format."""
