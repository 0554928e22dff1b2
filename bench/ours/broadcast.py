"""Two tensor-parallel ranks: both read each batch, or one reads and sends it over gloo.

A batch is 600 s of audio, 38 MB of float32.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from configs import tarred
from torch.distributed.device_mesh import init_device_mesh

import playhead
from meter import Settings, cpu_seconds, main
from playhead.loader.peer_group import open_peer_group
from playhead.local_ranks import run_ranks

_RANKS, _SECONDS, _RATE = 2, 600, 16_000
_DEADLINE = 400


def measure(settings: Settings) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        batches = 4 if settings.quick else 12
        arguments = [__file__, "rank", str(settings.data), str(batches), str(out)]
        run_ranks(
            "broadcast", _RANKS, lambda _: arguments, Path(folder), deadline_seconds=_DEADLINE
        )
        figures: dict[str, float] = json.loads(out.read_text())
    return {
        **figures,
        "cpu_ratio": figures["each_cpu_s"] / figures["one_cpu_s"],
        "wall_ratio": figures["each_wall_s"] / figures["one_wall_s"],
    }


def as_rank(data: Path, batches: int, out: Path) -> None:
    """Measure as one of the ranks; the first writes the figures."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (1, _RANKS), mesh_dim_names=("dp", "tp"))
    config = {**tarred(data), "batch_duration": _SECONDS, "num_workers": 1, "shuffle": True}
    figures: dict[str, float] = {}
    for way, broadcast in (("each", False), ("one", True)):
        loader = playhead.dataloader(config, mesh=mesh, broadcast=broadcast)
        turns = iter(loader)
        for _ in range(3):
            next(turns)
        dist.barrier()
        cpu, wall = cpu_seconds(), time.perf_counter()
        for _ in range(batches):
            next(turns)
        dist.barrier()
        wall = time.perf_counter() - wall
        spent = torch.tensor(cpu_seconds() - cpu, dtype=torch.float64)
        dist.all_reduce(spent)
        figures[f"{way}_cpu_s"] = spent.item() / batches
        figures[f"{way}_wall_s"] = wall / batches
        loader.close()
    figures["send_s"] = _sending(batches)
    if dist.get_rank() == 0:
        out.write_text(json.dumps(figures))
    dist.destroy_process_group()


def _sending(batches: int) -> float:
    """Wall seconds until the other rank has a batch that lies ready."""
    peers = open_peer_group((tuple(range(_RANKS)),))
    assert peers is not None
    batch = {
        "audio": torch.zeros(40, _SECONDS * _RATE // 40),
        "audio_lens": torch.zeros(40, dtype=torch.int64),
        "texts": ["what was said"] * 40,
    }
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(batches):
        if peers.is_first:
            peers.send(batch)
        else:
            peers.receive()
    dist.barrier()
    return (time.perf_counter() - begin) / batches


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        as_rank(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(measure)
