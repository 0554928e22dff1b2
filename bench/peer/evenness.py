"""Lhotse: padding, batches above the limit and the slowest rank; every rank has data of its own."""

from __future__ import annotations

import itertools

import numpy as np
from lhotse import CutSet, MonoCut
from samplers import bucketing

from lengths import speech_seconds
from meter import Settings, main
from quality import batch_quality

_LIMIT, _QUADRATIC = 660.0, 30.0


def measure(settings: Settings) -> dict[str, float]:
    ranks, steps, buffer = (16, 15, 5_000) if settings.quick else (64, 20, 10_000)
    pool = [
        MonoCut(id=str(i), start=0.0, duration=seconds, channel=0)
        for i, seconds in enumerate(speech_seconds(5 * buffer, 5).tolist())
    ]
    # All ranks choose the same buckets, so a few steps say little of padding: one rank goes on.
    alone = [_batches(CutSet.from_cuts(pool).repeat(), 0, buffer, 200 if settings.quick else 1_000)]
    rng = np.random.default_rng(6)
    together = [
        _batches(
            CutSet.from_cuts(pool[i] for i in rng.permutation(len(pool))[: 3 * buffer].tolist()),
            rank,
            buffer,
            steps,
        )
        for rank in range(ranks)
    ]
    return {**_quality(together), "padding_pct": _quality(alone)["padding_pct"]}


def _batches(cuts: CutSet, seed: int, buffer: int, steps: int) -> list[list[float]]:
    """Lengths in each batch of one rank."""
    sampler = bucketing(
        cuts,
        max_duration=_LIMIT,
        quadratic_duration=_QUADRATIC,
        buffer_size=buffer,
        seed=seed,
    )
    return [[cut.duration for cut in batch] for batch in itertools.islice(iter(sampler), steps)]


def _quality(ranks: list[list[list[float]]]) -> dict[str, float]:
    steps = list(zip(*ranks, strict=True))
    return batch_quality(
        np.array([[len(batch) for batch in step] for step in steps]),
        np.array([[max(batch) for batch in step] for step in steps]),
        np.array([[sum(batch) for batch in step] for step in steps]),
        limit=_LIMIT,
        quadratic=_QUADRATIC,
    )


if __name__ == "__main__":
    main(measure)
