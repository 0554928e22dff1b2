"""Which rank this process is, and whether all ranks are about to train on the same plan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from playhead.errors import ConfigError, RankMismatchError, TopologyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.loader.peers import Peers

__all__ = [
    "Topology",
    "broadcast_from_first",
    "check_agreement",
    "check_shares",
    "find_topology",
    "greatest_of_ranks",
    "has_process_group",
]

# Pairs of variables that launchers set for every process that they start.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """The place of this process among those that train together."""

    rank: int
    """Number of this process among those that train on different batches, 0 ≤ rank < world size."""
    world_size: int
    """How many share each step."""
    peers: tuple[int, ...] = ()
    """Global ranks of the processes that train on the same batches, this one among them, as along a
    tensor-parallel dimension; empty where there is none beside this one."""
    is_first: bool = True
    """Whether this process is the first of its peers, which speaks and writes for all of them."""

    @property
    def is_alone(self) -> bool:
        """Whether no other process has to plan the same."""
        return self.world_size == 1 and not self.peers

    @property
    def is_speaker(self) -> bool:
        """Whether this process tells people what they should know; the others are silent."""
        return self.rank == 0 and self.is_first

    def batches_per_step(self, micro_batches_per_step: int) -> int:
        """How many micro-batches of a step this rank trains on.

        Raises
        ------
        TopologyError
            When the world size does not divide the step.
        """
        if micro_batches_per_step % self.world_size:
            legal = [
                n for n in range(1, micro_batches_per_step + 1) if micro_batches_per_step % n == 0
            ]
            raise TopologyError(
                f"a step of {micro_batches_per_step} micro-batches cannot be shared by"
                f" {self.world_size} ranks",
                fix="Use a world size out of "
                + ", ".join(map(str, legal))
                + ", or set micro_batches_per_step to a multiple of the world size",
            )
        return micro_batches_per_step // self.world_size


def has_process_group() -> bool:
    """Whether torch.distributed is initialised in this process."""
    return dist.is_available() and dist.is_initialized()


def find_topology(
    rank: int | None = None, world_size: int | None = None, peers: Peers | None = None
) -> Topology:
    """The topology from the arguments, the peers, torch.distributed or the launcher's environment.

    Parameters
    ----------
    rank, world_size
        As given by hand: both, or neither.
    peers
        Who shares what; see `playhead.loader.peers`. None where every process is its own.

    Raises
    ------
    ConfigError
        When only one of the two is given, or they do not fit together.

    Examples
    --------
    >>> find_topology(1, 4).rank
    1
    """
    if (rank is None) != (world_size is None):
        raise ConfigError(
            "rank and world_size go together, and only one of them is given",
            fix="Give both, or neither",
        )
    mine, of_mine = (), 0
    if peers is not None:
        me = dist.get_rank()
        of_mine, mine = next((n, group) for n, group in enumerate(peers) if me in group)
    if rank is None or world_size is None:
        rank, world_size = _ambient() if peers is None else (of_mine, len(peers))
    if not 0 <= rank < world_size:
        raise ConfigError(
            f"rank {rank} does not exist in a world of {world_size}",
            fix="Use 0 ≤ rank < world_size",
        )
    if len(mine) < 2:
        return Topology(rank=rank, world_size=world_size)
    is_first = mine[0] == dist.get_rank()
    return Topology(rank=rank, world_size=world_size, peers=mine, is_first=is_first)


def _ambient() -> tuple[int, int]:
    if has_process_group():
        return dist.get_rank(), dist.get_world_size()
    for rank_name, size_name in _LAUNCHERS:
        rank, size = os.environ.get(rank_name), os.environ.get(size_name)
        if rank is None or size is None:
            continue
        try:
            return int(rank), int(size)
        except ValueError:
            raise ConfigError(
                f"{rank_name}={rank!r} and {size_name}={size!r} are not whole numbers",
                where="environment",
                fix="Unset them, or give rank and world_size",
            ) from None
    return 0, 1


def broadcast_from_first(value: int) -> int:
    """Rank 0's value, on every rank of the process group."""
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return int(box[0])


def greatest_of_ranks(value: int) -> int:
    """The greatest value that any rank of the process group has; its own where there is none."""
    if not has_process_group():
        return value
    everyone: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return max(everyone)


def check_shares(topology: Topology) -> None:
    """Compare which share of each step the ranks of the process group train on.

    Raises
    ------
    RankMismatchError
        On every rank: when they would share steps by different numbers, or leave a share out.
    """
    everyone = [(0, 0)] * dist.get_world_size()
    dist.all_gather_object(everyone, (topology.rank, topology.world_size))
    shares = {rank for rank, _ in everyone}
    world_size = everyone[0][1]
    for rank, (_, other) in enumerate(everyone):
        if other != world_size:
            raise RankMismatchError(
                f"rank {rank} would share steps by {other}, and rank 0 by {world_size}",
                fix="Give all ranks the same world_size, or the same mesh",
            )
    missing = sorted(set(range(world_size)) - shares)
    if missing:
        raise RankMismatchError(
            f"no process would train on share {missing[0]} of {world_size} of each step:"
            f" the processes have the shares {sorted(shares)}",
            fix="Give each rank from 0 to world_size - 1 to at least one process",
        )


def check_agreement(digests: Mapping[str, str], details: Mapping[str, Mapping[str, str]]) -> None:
    """Compare what ranks plan from, before any of them trains on it.

    Parameters
    ----------
    digests
        Aspect (`data`, `options`, `position`, `version`) to a digest of it.
    details
        For some aspects: part (a leaf, an option) to a digest of the part.

    Raises
    ------
    RankMismatchError
        On every rank, naming the first rank that differs from rank 0 and in what.
    """
    everyone: list[Mapping[str, str] | None] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, dict(digests))
    if all(other == everyone[0] for other in everyone):
        return
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, {name: dict(part) for name, part in details.items()})
    for rank, other in enumerate(everyone):
        if other == everyone[0]:
            continue
        assert other is not None
        assert everyone[0] is not None
        aspects = [name for name in other if other[name] != everyone[0].get(name)]
        named = [
            part
            for aspect in aspects
            for part in sorted({*parts[0].get(aspect, {}), *parts[rank].get(aspect, {})})
            if parts[0].get(aspect, {}).get(part) != parts[rank].get(aspect, {}).get(part)
        ]
        what = " and ".join(aspects) + (f": {', '.join(named[:5])}" if named else "")
        raise RankMismatchError(
            f"rank {rank} would train on another plan than rank 0: it differs in {what}",
            fix="Give all ranks the same files, config, state and version of Playhead",
        )
