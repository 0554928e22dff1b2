"""Hours of decoded audio per second, of any loader of batches."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import torch

from meter import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["stream_rates"]

_RATE = 16_000
# By then start-up is over and workers have their batches in hand, at the end as at the beginning.
_WARM_UP = 10


def stream_rates(batches: Iterator[dict[str, Any]], count: int) -> tuple[float, float]:
    """Hours of audio that come out per second of CPU time (workers included) and of wall time.

    Both count once all is warm.
    """
    # As workers have it. On a busy machine, idle threads that spin would be counted as work.
    torch.set_num_threads(1)
    for _ in itertools.islice(batches, _WARM_UP):
        pass
    cpu, wall = cpu_seconds(), time.perf_counter()
    samples = sum(int(batch["audio_lens"].sum()) for batch in itertools.islice(batches, count))
    hours = samples / _RATE / 3600
    return hours / (cpu_seconds() - cpu), hours / (time.perf_counter() - wall)
