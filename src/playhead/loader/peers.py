"""Which processes are peers: those that share a data-parallel rank, and so the same batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch.distributed as dist

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh

__all__ = ["Peers", "find_peers", "peers_of_groups", "peers_of_mesh"]

Peers = tuple[tuple[int, ...], ...]
"""For each data-parallel rank the global ranks of its processes, the first of which speaks."""

# What frameworks call the dimensions along which processes train on different batches …
_DATA_PARALLEL = frozenset(
    {
        "dp",
        "dp_replicate",
        "dp_shard",
        "dp_shard_mod_ep",
        "ddp",
        "fsdp",
        "hsdp",
        "data",
        "data_parallel",
        "batch",
        "replicate",
        "shard",
    }
)
# … and those along which they work on the same one.
_SHARED = frozenset(
    {
        "tp",
        "tensor",
        "tensor_parallel",
        "etp",
        "pp",
        "pipe",
        "pipeline",
        "pipeline_parallel",
        "cp",
        "context",
        "context_parallel",
        "sp",
        "sequence",
        "sequence_parallel",
        "ep",
        "expert",
        "expert_parallel",
        "mp",
        "model",
        "model_parallel",
    }
)


def find_peers(
    mesh: DeviceMesh | None,
    dp_dims: str | int | Sequence[str | int] | None,
    broadcast: bool | ProcessGroup,
) -> Peers | None:
    """The peers by what was asked of `playhead.dataloader`; None where every process is its own.

    Raises
    ------
    ConfigError
        When the arguments do not fit together, or it cannot be told who shares what.
    """
    if mesh is None and dp_dims is not None:
        raise ConfigError(
            "dp_dims names dimensions of a mesh, and no mesh is given", fix="Give mesh too"
        )
    if isinstance(broadcast, bool):
        if mesh is not None:
            return peers_of_mesh(mesh, dp_dims)
        if broadcast:
            raise ConfigError(
                "broadcast=True, and nothing says which processes share a batch",
                fix="Give mesh, or the process group of those that share one:"
                " broadcast=model_parallel_group",
            )
        return None
    if mesh is not None:
        raise ConfigError(
            "a mesh says which processes share a batch, and so does the group in broadcast",
            fix="Give mesh and broadcast=True, or the group alone",
        )
    if not isinstance(broadcast, dist.ProcessGroup):  # pyright: ignore[reportUnnecessaryIsInstance]
        # To torch, None is the group of all processes: none of them would train on data of its own.
        raise ConfigError(
            f"broadcast is {broadcast!r}",
            fix="Give False, True with a mesh, or the process group of those that share a batch",
        )
    return peers_of_groups(_everyones(dist.get_process_group_ranks(broadcast)))


def peers_of_mesh(
    mesh: DeviceMesh, dp_dims: str | int | Sequence[str | int] | None = None
) -> Peers:
    """The peers in a mesh: processes with the same coordinates in its data-parallel dimensions.

    Data-parallel ranks count in row-major order over those dimensions, in the mesh's order.

    Parameters
    ----------
    mesh
        A mesh of all processes of the process group.
    dp_dims
        Names or numbers of its data-parallel dimensions; by their names if None. The only
        dimension of a mesh without names is one.

    Raises
    ------
    ConfigError
        When a dimension has a name that nobody knows or does not exist, or the mesh is a part.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> peers_of_mesh(SimpleNamespace(mesh=[[0, 1], [2, 3]], mesh_dim_names=("dp", "tp")))
    ((0, 1), (2, 3))
    >>> peers_of_mesh(SimpleNamespace(mesh=[[0, 1], [2, 3]], mesh_dim_names=("pp", "dp")))
    ((0, 2), (1, 3))
    """
    ranks = np.asarray(mesh.mesh)
    if dist.is_initialized() and ranks.size != dist.get_world_size():
        raise ConfigError(
            f"the mesh holds {ranks.size} of {dist.get_world_size()} processes, and does not say"
            " what the others train on",
            where=f"mesh of {_named(mesh, ranks.shape)}",
            fix="Give the whole mesh, not mesh[…] of it, or give rank and world_size: those of"
            " its data-parallel dimension",
        )
    names = mesh.mesh_dim_names
    if dp_dims is None:
        data = _known(names, ranks)
    else:
        asked = [dp_dims] if isinstance(dp_dims, (str, int)) else dp_dims
        data = sorted({_dimension(dim, names, ranks.ndim) for dim in asked})
    shared = [dim for dim in range(ranks.ndim) if dim not in data]
    size = math.prod(ranks.shape[dim] for dim in data)
    rows = ranks.transpose(*data, *shared).reshape(size, -1)
    return tuple(tuple(row) for row in rows.tolist())


def peers_of_groups(groups: Sequence[Sequence[int]]) -> Peers:
    """The peers where each process names those with which it shares its batches.

    Data-parallel ranks count in the order of the first process of each.

    Parameters
    ----------
    groups
        For each process of the process group, in order, the global ranks that it named.

    Raises
    ------
    ConfigError
        When processes contradict each other.

    Examples
    --------
    >>> peers_of_groups([[0, 2], [1, 3], [0, 2], [1, 3]])
    ((0, 2), (1, 3))
    """
    peers = [tuple(sorted(group)) for group in groups]
    for rank, mine in enumerate(peers):
        for other in mine:
            if peers[other] != mine:
                raise ConfigError(
                    f"rank {rank} shares batches with {list(mine)}, and rank {other} with"
                    f" {list(peers[other])}",
                    fix="Give every process the group that it shares a batch with, itself among it",
                )
    return tuple(sorted(set(peers)))


def _everyones(mine: list[int]) -> list[list[int]]:
    everyones: list[list[int]] = [[]] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    return everyones


def _known(names: tuple[str, ...] | None, ranks: Any) -> list[int]:
    """The dimensions that are data-parallel by their names."""
    if names is None:
        if ranks.ndim == 1:
            return [0]
        raise ConfigError(
            f"the {ranks.ndim} dimensions of the mesh have no names",
            fix="Say which are data-parallel by their numbers: dp_dims=[0], or give"
            " mesh_dim_names to init_device_mesh",
        )
    for name in names:
        if name not in _DATA_PARALLEL and name not in _SHARED:
            raise ConfigError(
                f"dimension {name!r} of the mesh may be data-parallel or not",
                where="mesh of " + ", ".join(names),
                fix=f"Say which dimensions are, such as dp_dims=[{name!r}]. Known to be:"
                f" {', '.join(sorted(_DATA_PARALLEL))}; known to share batches:"
                f" {', '.join(sorted(_SHARED))}",
            )
    return [dim for dim, name in enumerate(names) if name in _DATA_PARALLEL]


def _dimension(dim: str | int, names: tuple[str, ...] | None, count: int) -> int:
    if isinstance(dim, str):
        if names is not None and dim in names:
            return names.index(dim)
    elif isinstance(dim, (int, np.integer)) and -count <= dim < count:  # pyright: ignore[reportUnnecessaryIsInstance]
        return int(dim) % count
    raise ConfigError(
        f"dp_dims names {dim!r}, and the mesh has no such dimension",
        fix=f"Use some of {', '.join(names)}" if names else f"Use numbers below {count}",
    )


def _named(mesh: DeviceMesh, shape: Sequence[int]) -> str:
    names = mesh.mesh_dim_names or ("?",) * len(shape)
    return ", ".join(f"{name}={size}" for name, size in zip(names, shape, strict=True))
