"""Playhead: what batches ask of the disk where rows, and where shards, are shuffled.

Columns of a corpus in archives that is larger than any cache; nothing is read.
"""

from __future__ import annotations

import numpy as np

from lengths import speech_seconds
from meter import Settings, main
from playhead.plan import Batching, LeafColumns, Shape, plan_window, start
from playhead.storage.local import MERGE_GAP

_ROWS, _PER_SHARD, _BATCHES = 1_000_000, 1_000, 300
_BYTES_PER_SECOND, _BLOCK = 18_000, 512


def measure(settings: Settings) -> dict[str, float]:
    del settings
    seconds = speech_seconds(_ROWS, 7)
    size = (seconds * _BYTES_PER_SECOND).astype(np.int64)
    shard = np.arange(_ROWS, dtype=np.int32) // _PER_SHARD
    whole = _BLOCK + -(-size // _BLOCK) * _BLOCK
    ends = np.cumsum(whole.reshape(-1, _PER_SHARD), axis=1)
    header = (ends - whole.reshape(-1, _PER_SHARD)).ravel()
    leaf = LeafColumns(
        key="leaf",
        name="leaf",
        weight=1,
        duration_us=(seconds * 1e6).astype(np.int64),
        fingerprint=lambda n: f"{n:016x}",
        shard=shard,
        shard_bytes=ends[:, -1],
    )
    batching = Batching(micro_batches_per_step=64, batch_duration_us=660_000_000)
    figures: dict[str, float] = {}
    for locality in ("rows", "shards"):
        shape = Shape(locality=locality)
        plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
        asked = requests = archives = num_bytes = 0
        window: set[int] = set()
        for number in range(_BATCHES):
            slot, step = divmod(number, plan.num_steps)
            rows = np.sort(plan.micro_batch(step, slot).row)
            begin, end = header[rows], header[rows] + _BLOCK + size[rows]
            joins = (shard[rows][1:] == shard[rows][:-1]) & (begin[1:] <= end[:-1] + MERGE_GAP)
            asked += len(rows)
            requests += len(rows) - int(joins.sum())
            num_bytes += int((end - begin).sum() + (begin[1:] - end[:-1])[joins].clip(0).sum())
            archives += len(np.unique(shard[rows]))
        for step, slot in np.ndindex(plan.num_steps, 64):
            window.update(shard[plan.micro_batch(step, slot).row].tolist())
        figures |= {
            f"{locality}_samples_per_batch": asked / _BATCHES,
            f"{locality}_requests_per_batch": requests / _BATCHES,
            f"{locality}_archives_per_batch": archives / _BATCHES,
            f"{locality}_mb_per_batch": num_bytes / _BATCHES / 1e6,
            f"{locality}_archives_per_window": len(window),
        }
    return figures


if __name__ == "__main__":
    main(measure)
