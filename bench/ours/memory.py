"""Playhead: memory of its own that planning takes, for leaves of one and of ten million rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from columns import mapped_leaf

from meter import Settings, main, most_memory_of
from playhead.plan import Batching, Shape, plan_window, start


def own_megabytes(data: Path, rows: int) -> float:
    """Most memory while windows are planned, pages of files left out, above that before (MB)."""

    def plan_windows() -> None:
        leaves, shape = [mapped_leaf(data, rows)], Shape()
        batching = Batching(micro_batches_per_step=64, batch_duration_us=660_000_000)
        position = start(leaves, shape, batching, seed=1)
        for _ in range(3):
            plan = plan_window(position, leaves, shape, batching)
            position = plan.position_at(plan.num_steps)

    return most_memory_of(plan_windows)


def measure(settings: Settings) -> dict[str, float]:
    figures: dict[str, float] = {}
    for millions in (1, 10):
        line = [sys.executable, __file__, str(settings.data), str(millions)]
        ran = subprocess.run(line, check=True, capture_output=True, text=True)
        figures[f"memory_{millions}m_mb"] = float(ran.stdout)
    figures["memory_ratio"] = figures["memory_10m_mb"] / figures["memory_1m_mb"]
    return figures


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].isdigit():
        print(own_megabytes(Path(sys.argv[1]), int(sys.argv[2]) * 1_000_000))
    else:
        main(measure)
