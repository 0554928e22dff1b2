"""Playhead: the size of a state of four leaves, and what restoring one costs, early and late."""

from __future__ import annotations

import gc
import itertools
import json
import time
from pathlib import Path
from typing import Any

from configs import four_leaves

import playhead
from meter import Settings, cpu_seconds, main
from playhead.datasets import Ids

_RANKS = 64
_INSIDE = 5
_STEPS = (10, 1_000, 100_000, 1_000_000)
# Batches of 10 minutes make a window of half a million samples.
_WIDE_SECONDS = 600


def measure(settings: Settings) -> dict[str, float]:
    usual = four_leaves(settings.data)
    wide = {**usual, "batch_duration": _WIDE_SECONDS}
    wanted = {str(step): (usual, step) for step in _STEPS} | {"wide": (wide, _STEPS[-1])}
    # All states first: packs that are mapped to make one must be let go before it is restored.
    states = {name: _state_at(config, step) for name, (config, step) in wanted.items()}
    figures: dict[str, float] = {"state_bytes": max(map(len, states.values()))}
    for name, (config, _) in wanted.items():
        _let_go()
        figures |= _restored(config, states[name], name)
    figures["restore_late_over_early"] = figures["restore_1000000_s"] / figures["restore_10_s"]
    figures["restore_1000000_replay_s"] = figures["restore_1000000_s"]
    return figures


def _loader(config: dict[str, Any]) -> playhead.Loader:
    return playhead.dataloader(config, dataset=Ids(), rank=0, world_size=_RANKS)


def _state_at(config: dict[str, Any], step: int) -> str:
    """The state after so many steps, some of them of the window that runs then."""
    late = _late(_loader(config).state_dict(), step - _INSIDE, _steps_of_a_window(_loader(config)))
    loader = _loader(config)
    loader.load_state_dict(late)
    for _ in itertools.islice(loader, _INSIDE):
        pass
    return json.dumps(loader.state_dict())


def _restored(config: dict[str, Any], state: str, name: str) -> dict[str, float]:
    """What it takes to load a state and make the batch after it."""
    loader = _loader(config)
    mapped, read, cpu = _bytes_mapped(), _bytes_read(), cpu_seconds()
    loader.load_state_dict(json.loads(state))
    next(iter(loader))
    figures = {
        f"restore_{name}_s": cpu_seconds() - cpu,
        f"restore_{name}_bytes": float(_bytes_read() - read),
        f"restore_{name}_mapped_bytes": float(_bytes_mapped() - mapped),
    }
    loader.close()
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


def _let_go() -> None:
    """Wait for loaders that plan ahead to end, with all that they map."""
    for _ in range(100):
        gc.collect()
        if not _bytes_mapped():
            return
        time.sleep(0.05)


def _bytes_mapped() -> int:
    """What this process has touched of packs that it maps."""
    kilobytes = 0
    is_pack = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        word = line.split(maxsplit=1)[0]
        if not word.endswith(":"):
            is_pack = line.endswith(".idxpack")
        elif is_pack and word == "Rss:":
            kilobytes += int(line.split()[1])
    return 1024 * kilobytes


if __name__ == "__main__":
    main(measure)
