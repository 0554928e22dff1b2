"""Members of archives on AIStore: one batch request against one request of its client for each.

The server is the emulator of the tests, in a process of its own on the same machine.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from meter import main
from playhead.storage.ais_objects import Wanted
from playhead.storage.aistore import AIStore

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from support.ais_emulator import AisEmulator
from support.ais_sdk_checks import a_tar

if TYPE_CHECKING:
    from collections.abc import Callable

    from meter import Settings

_BYTES, _MEMBERS, _ARCHIVES, _BATCH = 40_000, 100, 4, 32


def measure(settings: Settings) -> dict[str, float]:
    """Fetch micro-batches of 32 samples of 40 kB."""
    rng = random.Random(1)
    batches = 4 if settings.quick else 20
    with AisEmulator() as server:
        tars = [
            server.put(
                "speech",
                f"{number}.tar",
                a_tar({f"{i}.flac": rng.randbytes(_BYTES) for i in range(_MEMBERS)}),
            )
            for number in range(_ARCHIVES)
        ]
        wanted = [
            [
                Wanted(tars[one % _ARCHIVES], f"{one // _ARCHIVES}.flac")
                for one in rng.sample(range(_MEMBERS * _ARCHIVES), _BATCH)
            ]
            for _ in range(batches)
        ]
        os.environ["AIS_ENDPOINT"] = server.endpoint
        store = AIStore()

        def by_sdk(batch: list[Wanted]) -> None:
            from aistore.sdk.archive_config import ArchiveConfig

            for one in batch:
                archive = ArchiveConfig(archpath=one.member)
                store.objects.object(one.uri).get_reader(archive_config=archive).read_all()

        ways: dict[str, Callable[[list[Wanted]], object]] = {
            "batch": store.batch,
            "individual": store.get,
            "sdk": by_sdk,
        }
        for way in ways.values():
            way(wanted[0])
        rates = {name: _rate(way, wanted) for name, way in ways.items()}
    return {
        **{f"{name}_samples_per_s": rate for name, rate in rates.items()},
        "batch_over_sdk": rates["batch"] / rates["sdk"],
    }


def _rate(way: Callable[[list[Wanted]], object], wanted: list[list[Wanted]]) -> float:
    """Samples a second of a usual batch."""
    seconds: list[float] = []
    for batch in wanted:
        begin = time.perf_counter()
        way(batch)
        seconds.append(time.perf_counter() - begin)
    return _BATCH / statistics.median(seconds)


if __name__ == "__main__":
    main(measure)
