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
        for i, seconds in enumerate(speech_seconds(3 * buffer, 5).tolist())
    ]
    shape = (steps, ranks)
    count = np.zeros(shape, np.int64)
    longest, total = np.zeros(shape), np.zeros(shape)
    rng = np.random.default_rng(6)
    for rank in range(ranks):
        own = CutSet.from_cuts(pool[i] for i in rng.permutation(len(pool)).tolist())
        sampler = bucketing(
            own,
            max_duration=_LIMIT,
            quadratic_duration=_QUADRATIC,
            buffer_size=buffer,
            seed=rank,
        )
        for step, batch in enumerate(itertools.islice(iter(sampler), steps)):
            lengths = [cut.duration for cut in batch]
            count[step, rank] = len(lengths)
            longest[step, rank] = max(lengths)
            total[step, rank] = sum(lengths)
    return batch_quality(count, longest, total, limit=_LIMIT, quadratic=_QUADRATIC)


if __name__ == "__main__":
    main(measure)
