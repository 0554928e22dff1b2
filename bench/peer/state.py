"""Lhotse: the size of a state of four sources, and what restoring one costs."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import TYPE_CHECKING

from lhotse import CutSet
from samplers import bucketing, cut_set

from meter import Settings, cpu_of, cpu_seconds, main

if TYPE_CHECKING:
    from pathlib import Path

    from lhotse.dataset import DynamicBucketingSampler


def mixed(data: Path, *, indexed: bool) -> DynamicBucketingSampler:
    """A sampler of four manifests of equal weight."""
    parts = [cut_set(data / f"cuts/part_{part}.jsonl", indexed=indexed) for part in range(4)]
    return bucketing(CutSet.mux(*parts, seed=0))


def saved_state(data: Path, batches: int, *, indexed: bool) -> dict[str, object]:
    """The state after so many batches; made once, for that takes as long as it sounds."""
    kept = data / f"cuts/state_{'indexed' if indexed else 'replayed'}_{batches}.pickle"
    if not kept.exists():
        sampler = mixed(data, indexed=indexed)
        for _ in itertools.islice(iter(sampler), batches):
            pass
        kept.write_bytes(pickle.dumps(sampler.state_dict()))
    return pickle.loads(kept.read_bytes())


def measure(settings: Settings) -> dict[str, float]:
    batches = 1_000 if settings.quick else 10_000
    figures: dict[str, float] = {}
    for name, indexed in (("indexed", True), ("replayed", False)):
        state = saved_state(settings.data, batches, indexed=indexed)
        sampler = mixed(settings.data, indexed=indexed)
        begin = cpu_seconds()
        sampler.load_state_dict(state)
        restored = iter(sampler)
        figures[f"restore_{name}_s"] = cpu_of(lambda stream=restored: next(stream))
        figures[f"restore_{name}_s"] = cpu_seconds() - begin
        if indexed:
            figures["state_bytes"] = len(json.dumps(sampler.state_dict()))
    return figures


if __name__ == "__main__":
    main(measure)
