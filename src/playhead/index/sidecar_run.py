"""Many sidecars at once: which of them are missing or stale, and their building in processes."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead.errors import PlayheadError
from playhead.index.part_work import deal
from playhead.index.pool import Outcome, Workers, at_most, run_each
from playhead.index.sidecars import Sidecar, build_sidecar, is_fresh
from playhead.storage import access
from playhead.storage.atomic import remove_stale
from playhead.storage.limits import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from playhead.index.part_work import Share

__all__ = ["build_sidecars", "sidecars_of", "stale_sidecars"]

# Most of the check is waiting for the file system, which answers several at once; stores answer
# more of them.
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

    Raises
    ------
    StorageError
        If a store cannot be asked.
    """
    are_remote = any(access.is_remote(sidecar.path) for sidecar in sidecars)
    with ThreadPoolExecutor(limits().concurrency if are_remote else _CHECKERS) as checkers:
        fresh = checkers.map(is_fresh, sidecars)
        return [sidecar for sidecar, ok in zip(sidecars, fresh, strict=True) if not ok]


def sidecars_of(sidecars: Sequence[Sidecar], share: Share) -> list[Sidecar]:
    """Give those that fall to a part of the work, by the sizes of local data, in their order.

    Parameters
    ----------
    sidecars
        All of them, those that are up to date included: every part divides them alike.
    share
        The part.
    """
    # A store would be asked for every object by every part.
    paths = ["" if access.is_remote(sidecar.path) else sidecar.path for sidecar in sidecars]
    with ThreadPoolExecutor(_CHECKERS) as checkers:
        sizes = list(checkers.map(_size, paths))
    costs = [size / _BYTES_A_WORKER + 1 / _FILES_A_WORKER for size in sizes]
    numbers = deal(costs, share.count)
    return [one for one, number in zip(sidecars, numbers, strict=True) if number == share.number]


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
    local = [sidecar.idx for sidecar in sidecars if not access.is_remote(sidecar.idx)]
    for folder in {os.path.dirname(idx) for idx in local}:  # noqa: PTH120
        remove_stale(folder or ".")
    with ThreadPoolExecutor(_CHECKERS) as pool:
        looked = pool.map(_size, [sidecar.path for sidecar in sidecars])
        sizes = dict(zip(sidecars, looked, strict=True))
    work = sum(sizes.values()) / _BYTES_A_WORKER + len(sidecars) / _FILES_A_WORKER
    yield from run_each(
        build_sidecar,
        sorted(sidecars, key=lambda sidecar: -sizes[sidecar]),
        workers=at_most(workers, min(len(sidecars), math.ceil(work))),
        on_death=on_death,
    )


def _size(path: str) -> int:
    # Those that cannot be looked at are named when they are built.
    with suppress(OSError, PlayheadError):
        return access.size(path)
    return 0
