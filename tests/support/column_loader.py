"""Loaders over made-up columns, whose batches show where they come from."""

from __future__ import annotations

import hashlib

import numpy as np

from playhead.loader.loader import Loader
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape


def leaf(key, rows, weight=1, seed=0):
    durations = np.random.default_rng(seed).integers(300_000, 12_000_000, rows)

    def fingerprint(n):
        return hashlib.blake2b(durations[:n].tobytes(), digest_size=8).hexdigest()

    return LeafColumns(
        key=key, name=key, weight=weight, duration_us=durations, fingerprint=fingerprint
    )


LEAVES = (leaf("a", 90), leaf("b", 37, weight=2, seed=1))


def rows_of(micro_batch):
    """A batch that shows where it comes from."""
    pairs = zip(micro_batch.leaf.tolist(), micro_batch.row.tolist(), strict=True)
    return {
        "rows": list(pairs),
        "step": micro_batch.step,
        "slot": micro_batch.slot,
        "key": micro_batch.key,
        "repeated": micro_batch.repeated.tolist(),
    }


def loader(
    *,
    rank=0,
    world_size=1,
    step=6,
    finite=False,
    seed=3,
    limit=40_000_000,
    shuffle=True,
    fixed_step=True,
    workers=0,
    leaves=LEAVES,
    window_draws=100,
):
    return Loader(
        planning=Planning(
            leaves=leaves,
            shape=Shape(finite=finite, shuffle=shuffle, window_draws=window_draws),
            batching=Batching(micro_batches_per_step=step, batch_duration_us=limit, batch_size=8),
        ),
        fetch=rows_of,
        topology=Topology(rank=rank, world_size=world_size),
        workers=Workers(num_workers=workers),
        seed=seed,
        fixed_step=fixed_step,
    )
