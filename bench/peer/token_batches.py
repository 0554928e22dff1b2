"""Lhotse: batches of texts of the same lengths by their tokens."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from lhotse import CutSet
from lhotse.dataset import DynamicBucketingSampler
from lhotse.dataset.sampling.base import TokenConstraint

from lengths import TOKEN_SECONDS, mixed_tokens, speech_seconds
from meter import Settings, cpu_seconds, main

_LIMIT = 16_384


@dataclass
class _Text:
    id: str
    num_tokens: int
    custom: None = None


def measure(settings: Settings) -> dict[str, float]:
    rows, batches = (20_000, 200) if settings.quick else (200_000, 2_000)
    tokens = mixed_tokens(rows, seed=1)
    audio = np.ceil(speech_seconds(rows, seed=1) / TOKEN_SECONDS).astype(np.int64)
    lengths = [tokens["text"], tokens["conversation"], tokens["speech"] + audio]
    texts = [
        _Text(f"{row}-{leaf}", int(of_leaf[row]))
        for row in range(rows)
        for leaf, of_leaf in enumerate(lengths)
    ]
    sampler = DynamicBucketingSampler(
        CutSet(texts).repeat(preserve_id=True),
        constraint=TokenConstraint(max_tokens=_LIMIT),
        num_buckets=30,
        num_cuts_for_bins_estimate=10_000,
        buffer_size=10_000,
        shuffle=True,
        seed=0,
        rank=0,
        world_size=1,
    )
    iterator = iter(sampler)
    next(iterator)
    begin = cpu_seconds()
    found = list(itertools.islice(iterator, batches))
    cpu = cpu_seconds() - begin
    sizes = [[text.num_tokens for text in batch] for batch in found]
    padded = [len(one) * max(one) for one in sizes]
    return {
        "samples_per_s": sum(map(len, sizes)) / cpu,
        "full_pct": 100 * sum(map(sum, sizes)) / sum(padded),
        "over_limit": sum(one > _LIMIT for one in padded),
    }


if __name__ == "__main__":
    main(measure)
