"""Playhead: the size of a state of four leaves, and what restoring one costs, early and late."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from configs import four_leaves

import playhead
from meter import Settings, cpu_seconds, main
from playhead.datasets import Ids

_RANKS = 64
_INSIDE = 5


def measure(settings: Settings) -> dict[str, float]:
    config = four_leaves(settings.data)

    def loader() -> playhead.Loader:
        return playhead.dataloader(config, dataset=Ids(), rank=0, world_size=_RANKS)

    figures: dict[str, float] = {}
    steps = _steps_of_a_window(loader())
    for step in (10, 1_000, 100_000, 1_000_000):
        before = loader()
        before.load_state_dict(_late(before.state_dict(), step - _INSIDE, steps))
        for _ in itertools.islice(before, _INSIDE):
            pass
        state = json.dumps(before.state_dict())
        figures[f"state_bytes_{step}"] = len(state)
        after = loader()
        read, cpu = _bytes_read(), cpu_seconds()
        after.load_state_dict(json.loads(state))
        next(iter(after))
        figures[f"restore_{step}_s"] = cpu_seconds() - cpu
        figures[f"restore_{step}_bytes"] = _bytes_read() - read
    figures["restore_late_over_early"] = figures["restore_1000000_s"] / figures["restore_10_s"]
    figures["restore_1000000_replay_s"] = figures["restore_1000000_s"]
    figures["state_bytes"] = figures["state_bytes_1000000"]
    return figures


def _steps_of_a_window(loader: playhead.Loader) -> int:
    """Steps until the state says that another window runs."""
    for step, _ in enumerate(loader, start=1):
        if loader.state_dict()["window"]:
            return step
    raise AssertionError("an endless loader ended")


def _late(state: dict[str, Any], step: int, steps_of_a_window: int) -> dict[str, Any]:
    """The state at the start of the window that a step lies in; the leaves are equal."""
    window = step // steps_of_a_window
    drawn = window * state["W"] // 4
    leaves = {
        key: [drawn // rows, drawn % rows, rows, fingerprint]
        for key, (_, _, rows, fingerprint) in state["leaves"].items()
    }
    return {**state, "step": step, "window": window, "leaves": leaves}


def _bytes_read() -> int:
    """What this process has read with system calls; mapped files are not in it."""
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


if __name__ == "__main__":
    main(measure)
