"""Whether those that train are those among whom a loader shares its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import TopologyError
from playhead.loader.ranks import has_process_group

if TYPE_CHECKING:
    from playhead.loader import Loader

__all__ = ["check_processes"]


def check_processes(loader: Loader, ranks: int, *, on_cpus: str) -> None:
    """Raise if another number of processes trains than shares the loader's steps.

    Parameters
    ----------
    loader
        Makes the batches.
    ranks
        How many processes train on batches of their own.
    on_cpus
        What to give to whom, so that processes without GPUs meet.

    Raises
    ------
    TopologyError
        When the numbers differ.
    """
    if loader.world_size == ranks:
        return
    fix = "Make the loader without rank and world_size, in every process"
    if ranks == 1 and not has_process_group():
        fix += f". On CPUs, give {on_cpus}: without it each process of a launcher trains alone"
    raise TopologyError(
        f"the loader shares its steps among {loader.world_size} processes, and {ranks} train",
        fix=fix,
    )
