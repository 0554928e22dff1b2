"""Lengths like those of speech corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["mixed_tokens", "speech_seconds"]

TOKEN_SECONDS = 0.08
"""Seconds of audio that take the room of a token."""


def speech_seconds(count: int, seed: int) -> NDArray[np.float64]:
    """Seconds, whole milliseconds: median 6.7 s, from 0.5 to 30 s."""
    draws = np.random.default_rng(seed).lognormal(1.9, 0.6, count)
    return np.round(np.clip(draws, 0.5, 30.0), 3)


def mixed_tokens(count: int, seed: int) -> dict[str, NDArray[np.int64]]:
    """Tokens of lines of text, of conversations and of transcripts of speech, so many of each."""
    random = np.random.default_rng(seed)

    def drawn(median: float, spread: float, most: int) -> NDArray[np.int64]:
        return np.clip(np.exp(random.normal(np.log(median), spread, count)), 2, most).astype(
            np.int64
        )

    return {
        "text": drawn(30, 0.7, 2_000),
        "conversation": drawn(300, 0.8, 4_000),
        "speech": np.maximum(1, (3 * speech_seconds(count, seed)).astype(np.int64)),
    }
