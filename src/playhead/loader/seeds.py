"""Where the seed of a run comes from, once, the same on every rank."""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING
from zlib import crc32

from playhead.errors import ConfigError
from playhead.loader.ranks import broadcast_from_first, has_process_group

if TYPE_CHECKING:
    from playhead.loader.ranks import Topology

__all__ = ["resolve_seed"]


def resolve_seed(seed: int | str, topology: Topology) -> int:
    """The integer that `seed` stands for, drawn by rank 0 where it has to be drawn.

    Parameters
    ----------
    seed
        An integer; `trng` for one from the operating system; `randomized` for one that follows
        from the state of Python's global generator.
    topology
        The ranks that must agree on it.

    Raises
    ------
    ConfigError
        When several ranks would have to draw it and cannot talk to each other.

    Examples
    --------
    >>> from playhead.loader.ranks import Topology
    >>> resolve_seed(7, Topology(rank=0, world_size=8))
    7
    """
    if isinstance(seed, int):
        return seed
    if not topology.is_alone and not has_process_group():
        raise ConfigError(
            f"seed {seed!r} must be drawn once for all {topology.world_size} ranks, and there is no"
            " process group to send it through",
            fix="Give an integer seed, or initialise torch.distributed before the loader",
        )
    # The state is read, not drawn from: drawing would move somebody else's generator.
    drawn = secrets.randbits(31) if seed == "trng" else crc32(repr(random.getstate()).encode()) >> 1
    return drawn if topology.is_alone else broadcast_from_first(drawn)
