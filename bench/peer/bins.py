"""Lhotse: bins of lengths that are in memory already."""

from __future__ import annotations

from lhotse.dataset.sampling.dynamic_bucketing import estimate_duration_buckets

from lengths import speech_seconds
from meter import Settings, cpu_of, main


class _Seconds:
    """Takes numbers for cuts: nothing but the estimate is measured."""

    def measure_length(self, example: float) -> float:
        return example


def measure(settings: Settings) -> dict[str, float]:
    rows = 100_000 if settings.quick else 1_000_000
    seconds = speech_seconds(rows, seed=1).tolist()
    cpu = cpu_of(lambda: estimate_duration_buckets(seconds, 30, _Seconds()))
    return {"rows_per_s": rows / cpu}


if __name__ == "__main__":
    main(measure)
