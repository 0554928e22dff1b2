"""Playhead: bins of ten million rows whose lengths all differ, in CPU time and in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from lengths import speech_seconds
from meter import Settings, cpu_of, main, most_memory_of
from playhead.bins.estimate import estimate_bins
from playhead.bins.settings import BinSettings
from playhead.plan import LeafColumns, Shape

_ROWS = 10_000_000
_DIGEST = "0" * 16


def measure(settings: Settings) -> dict[str, float]:
    rows = _ROWS // 10 if settings.quick else _ROWS
    _write(settings.data, rows)
    figures: dict[str, float] = {}
    for name in ("one", "optimized", "two"):
        # Apart from each other: looking at memory takes time.
        for what in ("cpu_s", "mb"):
            line = [sys.executable, __file__, str(settings.data), name, what]
            ran = subprocess.run(line, check=True, capture_output=True, text=True)
            figures[f"{name}_{what}"] = float(ran.stdout)
    figures["rows_per_s"] = rows / figures["one_cpu_s"]
    return figures


def _write(data: Path, rows: int) -> None:
    """Lengths in microseconds, so that hardly two are the same, and tokens of transcripts."""
    seconds = speech_seconds(rows, seed=1)
    rng = np.random.default_rng(2)
    jitter = rng.integers(0, 1000, rows)
    np.save(data / "bins_us.npy", np.round(seconds * 1e6).astype(np.int64) + jitter)
    spread = rng.uniform(2.0, 4.0, rows)
    np.save(data / "bins_tokens.npy", np.maximum(1, seconds * spread).astype(np.uint32))


def _one(data: Path, name: str, what: str) -> float:
    """CPU time (s) of an estimate, or the most memory (MB), pages of files left out."""
    tokens = np.load(data / "bins_tokens.npy", mmap_mode="r")
    leaf = LeafColumns(
        key="leaf",
        name="leaf",
        weight=1,
        duration_us=np.load(data / "bins_us.npy", mmap_mode="r"),
        fingerprint=str,
        side=lambda _: {"tokens": tokens},
    )
    two = name == "two"
    asked = BinSettings(optimize=name == "optimized", sub_buckets=2 if two else None)
    shape = Shape(tokens=_DIGEST if two else None)
    measured = cpu_of if what == "cpu_s" else most_memory_of
    return measured(lambda: estimate_bins([leaf], shape, asked))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(_one(Path(sys.argv[1]), *sys.argv[2:]))
    else:
        main(measure)
