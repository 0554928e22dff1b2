"""States of NeMo's and Lhotse's loaders, made by hand as they write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "chain",
    "indexed",
    "mixture",
    "nemo_sources",
    "packed",
    "per_rank",
    "repeated",
    "sampler",
    "workers",
    "write_records",
]


def indexed(position: int, shard: int | None = 0, shards: int | None = 1, **more: Any) -> Any:
    """A file read row by row."""
    return {"position": position, "shard_id": shard, "num_shards": shards, **more}


def packed(
    position: int = 0,
    shard: int | None = 0,
    shards: int | None = 1,
    *,
    passes: int = 0,
    seed: int | None = 1,
    file: int = 0,
    in_file: int | None = 0,
) -> Any:
    """A collection of a pack, shuffled where it has a seed."""
    return {
        "current_iter_idx": file,
        "num_iters": passes,
        "iter_order": None,
        "global_position": position,
        "global_seed": seed,
        "global_shard_id": shard,
        "global_num_shards": shards,
        "packed_current_position": in_file,
    }


def chain(*states: Any, current: int = 0, order: Sequence[int] | None = None, **more: Any) -> Any:
    """Files that follow each other."""
    return {
        "current_iter_idx": current,
        "num_iters": 0,
        "iter_order": list(range(len(states))) if order is None else list(order),
        "global_position": 0,
        "global_seed": None,
        "global_shard_id": None,
        "global_num_shards": None,
        "inner_states": list(states),
        **more,
    }


def mixture(*states: Any, exhausted: Sequence[bool] | None = None) -> Any:
    """A mixture of sources."""
    return {
        "rng_state": [3, list(range(625)), None],
        "exhausted": [False] * len(states) if exhausted is None else list(exhausted),
        "inner_states": list(states),
    }


def repeated(state: Any, epoch: int) -> Any:
    """A source over and over again."""
    return {"current_epoch": epoch, "source": state}


def sampler(*cuts: Any, epoch: int = 0, world_size: int = 1, rank: int = 0, **more: Any) -> Any:
    """A sampler over what the graphs give."""
    return {
        "epoch": epoch,
        "world_size": world_size,
        "rank": rank,
        "seed": 0,
        "shuffle": False,
        "diagnostics": {"current_epoch": epoch, "stats_per_epoch": {"0": {"kept_cuts": 1}}},
        "cuts_state": [{"_type": "Graph", "_state": cut} for cut in cuts],
        **more,
    }


def workers(*samplers: Any) -> Any:
    """A loader with a worker for each sampler."""
    snapshots = {
        f"worker_{number}": {
            "worker_id": number,
            "dataset_state": None,
            "fetcher_state": {
                "dataset_iter_state": {"epoch": 0, "sampler_state": one},
                "fetcher_ended": False,
            },
        }
        for number, one in enumerate(samplers)
    }
    main = {"_num_workers": len(samplers), "_sampler_iter_state": None}
    return {"_snapshot": {"_main_snapshot": main, "_worker_snapshots": snapshots}}


def per_rank(*states: Any, size: int | None = None) -> Any:
    """A checkpoint of Lightning with the loaders of all ranks, as NeMo gathers them."""
    entries = [
        {"dp_rank": rank, "dp_world_size": size or len(states), "state": state}
        for rank, state in enumerate(states)
    ]
    return {"epoch": 0, "data": {"train_dataloader_per_rank": entries}}


def write_records(path: Path, count: int) -> Path:
    """A manifest of so many rows, of which there is only the `.idx`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.idx").write_bytes(bytes(8 * (count + 1)))
    return path


def nemo_sources(folder: Path, counts: Sequence[int], **more: Any) -> list[dict[str, Any]]:
    """A blend of manifests with so many rows each."""
    return [
        {
            "type": "nemo",
            "manifest_filepath": str(write_records(folder / f"m{number}.jsonl", count)),
            "corpus": f"corpus-{number}",
            "weight": number + 1,
            **more,
        }
        for number, count in enumerate(counts)
    ]
