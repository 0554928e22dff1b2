"""Lengths like those of speech corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["speech_seconds"]


def speech_seconds(count: int, seed: int) -> NDArray[np.float64]:
    """Seconds, whole milliseconds: median 6.7 s, from 0.5 to 30 s."""
    draws = np.random.default_rng(seed).lognormal(1.9, 0.6, count)
    return np.round(np.clip(draws, 0.5, 30.0), 3)
