"""The ranks of a launcher, and what they have in common while a phase runs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import torch.distributed as dist

from playhead.errors import ConfigError
from playhead.loader.ranks import find_topology, has_process_group

if TYPE_CHECKING:
    from collections.abc import Generator

    from playhead.loader.ranks import Topology

__all__ = ["process_group"]

# One rank may build what the others wait for.
_PATIENCE = timedelta(hours=2)


@contextmanager
def process_group() -> Generator[Topology]:
    """Join the ranks that a launcher started, such as torchrun; one alone joins nobody.

    Yields
    ------
    Topology
        Which of them this process is.

    Raises
    ------
    ConfigError
        If the environment names several ranks and no place where they meet.
    """
    topology = find_topology()
    if topology.world_size == 1 or has_process_group():
        yield topology
        return
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"there are {topology.world_size} ranks, and {' and '.join(missing)} does not say where"
            " they meet",
            where="environment",
            fix="Start them with torchrun, or with `playhead validate CONFIG --ranks N`",
        )
    dist.init_process_group(
        "gloo", rank=topology.rank, world_size=topology.world_size, timeout=_PATIENCE
    )
    try:
        yield topology
        # Whoever ends first would tear down what the others still talk over.
        dist.barrier()
    finally:
        dist.destroy_process_group()
