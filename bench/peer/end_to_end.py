"""Lhotse: decoded audio from Shar archives and plain files, with a dataset as people write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lhotse import CutSet
from lhotse.dataset.dataloading import make_worker_init_fn
from lhotse.dataset.iterable_dataset import IterableDatasetWrapper
from samplers import bucketing, cut_set
from torch.utils.data import DataLoader

from meter import Settings, main
from speech import LhotseSpeech
from streaming import stream_rates

if TYPE_CHECKING:
    from pathlib import Path


def shar(folder: Path, workers: int) -> CutSet:
    return CutSet.from_shar(
        in_dir=folder, indexed=False, shuffle_shards=True, split_for_dataloading=workers > 0
    ).repeat()


def measure(settings: Settings) -> dict[str, float]:
    count = 15 if settings.quick else 30
    figures: dict[str, float] = {}
    for workers in (0, 2):
        sources = {
            "tarred": shar(settings.data / "shar", workers),
            "files": cut_set(settings.data / "wav/cuts.jsonl", indexed=False),
        }
        for name, cuts in sources.items():
            sampler = bucketing(cuts, buffer_size=500 if settings.quick else 2_000)
            loader = DataLoader(
                IterableDatasetWrapper(LhotseSpeech(), sampler),
                batch_size=None,
                num_workers=workers,
                worker_init_fn=make_worker_init_fn(rank=0, world_size=1, seed=0),
            )
            cpu, wall = stream_rates(iter(loader), count)
            figures[f"{name}_{workers}_cpu"] = cpu
            figures[f"{name}_{workers}_wall"] = wall
    return figures


if __name__ == "__main__":
    main(measure)
