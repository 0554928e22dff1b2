"""Many sidecars at once: which of them are missing or stale, and their building in processes."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.index.pool import Outcome, Workers, at_most, run_each
from playhead.index.sidecars import Sidecar, build_sidecar, is_fresh
from playhead.storage.atomic import remove_stale

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

__all__ = ["build_sidecars", "stale_sidecars"]

# Most of the check is waiting for the file system, which answers several at once.
_CHECKERS = 16
# Starting a process costs about as much as this much work in the process that is there.
_BYTES_A_WORKER = 64 << 20
_FILES_A_WORKER = 64


def stale_sidecars(sidecars: Sequence[Sidecar]) -> list[Sidecar]:
    """Give those whose `.idx` is missing, damaged or out of date, in their order.

    Parameters
    ----------
    sidecars
        What to look at.
    """
    with ThreadPoolExecutor(_CHECKERS) as checkers:
        fresh = checkers.map(is_fresh, sidecars)
        return [sidecar for sidecar, ok in zip(sidecars, fresh, strict=True) if not ok]


def build_sidecars(
    sidecars: Sequence[Sidecar], *, workers: Workers, on_death: Callable[[Sidecar, str], None]
) -> Generator[Outcome[Sidecar, int]]:
    """Build sidecars, the largest first, and give the outcomes as they come.

    Parameters
    ----------
    sidecars
        What to build.
    workers
        The most processes to use, small work being done in this one; or a cluster.
    on_death
        Called with the sidecar and what happened when a worker was killed and its sidecar will be
        tried again.

    Yields
    ------
    Outcome
        One for each sidecar; `result` is the number of its samples.
    """
    for folder in {os.path.dirname(sidecar.idx) for sidecar in sidecars}:  # noqa: PTH120
        remove_stale(folder or ".")
    sizes = {sidecar: _size(sidecar.path) for sidecar in sidecars}
    work = sum(sizes.values()) / _BYTES_A_WORKER + len(sidecars) / _FILES_A_WORKER
    yield from run_each(
        build_sidecar,
        sorted(sidecars, key=lambda sidecar: -sizes[sidecar]),
        workers=at_most(workers, min(len(sidecars), math.ceil(work))),
        on_death=on_death,
    )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
