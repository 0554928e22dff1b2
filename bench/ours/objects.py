"""Playhead: micro-batches from an object store that is 20 ms away, beside its library alone.

A real web server on this machine, behind a proxy of the tests that delays every answer.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
from obstore.store import HTTPStore

from meter import Settings, main
from playhead.storage import access
from playhead.storage.base import ByteRange

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from support.fault_proxy import FaultProxy, Faults
from support.servers import caddy

_LATENCY = 0.02
_SAMPLES, _BYTES = 32, 40_000
_FILES, _SLOTS, _SLOT_BYTES = 16, 40, 160_000


def measure(settings: Settings) -> dict[str, float]:
    batches = 10 if settings.quick else 40
    rng = np.random.default_rng(3)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        root = folder / "www"
        root.mkdir()
        for number in range(_FILES):
            (root / f"{number}.bin").write_bytes(os.urandom(_SLOTS * _SLOT_BYTES))
        server = stack.enter_context(caddy(root, logs=folder / "logs"))
        proxy = stack.enter_context(FaultProxy(server.port))
        proxy.set(Faults(latency=_LATENCY))
        # No two are so near that they would be read together: all have to be asked for.
        asked = [
            [
                ByteRange(f"{proxy.url}/{file}.bin", slot * _SLOT_BYTES, _BYTES)
                for file, slot in zip(*np.divmod(places, _SLOTS), strict=True)
            ]
            for places in (rng.permutation(_FILES * _SLOTS)[:_SAMPLES] for _ in range(batches))
        ]
        ways = {
            "together": access.read_many,
            "one_by_one": lambda batch: [access.read_many([one]) for one in batch],
            **_alone(proxy.url, stack),
        }
        for read in ways.values():
            # Connections are made before anything is measured.
            read(asked[0])
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for batch in asked:
            # In turn: what else the machine does hits all of them alike.
            for name, read in ways.items():
                begin = time.perf_counter()
                read(batch)
                spent[name].append(time.perf_counter() - begin)
    median = {name: statistics.median(seconds) for name, seconds in spent.items()}
    alone = min(median["threads"], median["tasks"])
    return {
        "batch_ms": median["together"] * 1e3,
        "batch_alone_ms": alone * 1e3,
        "over_one_by_one": median["one_by_one"] / median["together"],
        "over_alone": alone / median["together"],
    }


def _alone(url: str, stack: ExitStack) -> dict[str, Callable[[list[ByteRange]], object]]:
    """The library by itself: with a thread, or with a task, for each range."""
    store: Any = HTTPStore(url, client_options={"allow_http": True})
    pool = stack.enter_context(ThreadPoolExecutor(_SAMPLES))
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)

    def arguments(one: ByteRange) -> tuple[Any, str, dict[str, int]]:
        return store, one.uri.rpartition("/")[2], {"start": one.offset, "length": one.size}

    def get(one: ByteRange) -> bytes:
        store, name, span = arguments(one)
        return bytes(obstore.get_range(store, name, **span))

    async def get_all(batch: list[ByteRange]) -> list[bytes]:
        asked = [
            obstore.get_range_async(store, name, **span)
            for store, name, span in map(arguments, batch)
        ]
        return [bytes(data) for data in await asyncio.gather(*asked)]

    return {
        "threads": lambda batch: list(pool.map(get, batch)),
        "tasks": lambda batch: loop.run_until_complete(get_all(batch)),
    }


if __name__ == "__main__":
    main(measure)
