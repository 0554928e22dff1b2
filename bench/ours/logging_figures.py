"""Playhead: what it costs to count steps of very many sources, and to ask for the figures."""

from __future__ import annotations

import itertools
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lengths import speech_seconds
from meter import Settings, main
from playhead.loader import DataLog, Loader
from playhead.loader.counting import StepCounter
from playhead.loader.ranks import Topology
from playhead.loader.run import Planning
from playhead.loader.stream import Workers
from playhead.plan import Batching, LeafColumns, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

_RANKS = 64
_ROWS = 125
_STEPS = 250


def measure(settings: Settings) -> dict[str, float]:
    planning = _planning(1_000 if settings.quick else 10_000)
    topology = Topology(rank=0, world_size=_RANKS)
    counter = StepCounter(planning)
    run = planning.run(planning.start(seed=1, pass_=0, step=0), topology)
    counted = [_own_ms(partial(counter.count, run, step)) for step in range(1, _STEPS)]
    loader = Loader(
        planning=planning,
        fetch=lambda micro_batch: micro_batch,
        topology=topology,
        workers=Workers(),
        seed=1,
    )
    log = DataLog(loader)
    asked: list[float] = []
    logged: list[float] = []
    for _ in itertools.islice(loader, _STEPS):
        asked.append(_own_ms(loader.measures))
        logged.append(_own_ms(log.figures))
    return {
        "count_ms_per_step": statistics.fmean(counted),
        "measures_ms": statistics.median(asked),
        "figures_ms": statistics.median(logged),
    }


def _planning(leaves: int) -> Planning:
    return Planning(
        leaves=tuple(_leaf(number) for number in range(leaves)),
        shape=Shape(),
        batching=Batching(micro_batches_per_step=_RANKS, batch_duration_us=600_000_000),
    )


def _leaf(number: int) -> LeafColumns:
    return LeafColumns(
        key=f"{number:08x}",
        name=f"leaf {number}",
        weight=1 + number % 7,
        duration_us=(speech_seconds(_ROWS, seed=number) * 1e6).astype(np.int64),
        fingerprint=lambda rows: f"{rows:016x}",
    )


def _own_ms(act: Callable[[], object]) -> float:
    """CPU time of a call in this thread (ms): the next window is planned beside it."""
    begin = time.thread_time()
    act()
    return 1000 * (time.thread_time() - begin)


if __name__ == "__main__":
    main(measure)
