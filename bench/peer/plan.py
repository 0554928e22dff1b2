"""Lhotse: batches of cuts without audio, from an indexed manifest and from a plain one."""

from __future__ import annotations

import itertools

from samplers import bucketing, cut_set

from meter import Settings, cpu_seconds, main


def measure(settings: Settings) -> dict[str, float]:
    count = 300 if settings.quick else 1500
    path = settings.data / "cuts/cuts.jsonl"
    figures: dict[str, float] = {}
    for name, indexed in (("lazy", False), ("indexed", True)):
        begin = cpu_seconds()
        batches = iter(bucketing(cut_set(path, indexed=indexed)))
        next(batches)
        figures[f"first_batch_{name}_s"] = cpu_seconds() - begin
        begin = cpu_seconds()
        cuts = sum(len(batch) for batch in itertools.islice(batches, count))
        figures[f"plan_{name}_samples_per_s"] = cuts / (cpu_seconds() - begin)
    return figures


if __name__ == "__main__":
    main(measure)
