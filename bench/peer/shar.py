"""Lhotse: decoded audio from an indexed Shar, with a dataset as people write it."""

from __future__ import annotations

from lhotse import CutSet
from lhotse.dataset.dataloading import make_worker_init_fn
from lhotse.dataset.iterable_dataset import IterableDatasetWrapper
from samplers import bucketing
from torch.utils.data import DataLoader

from meter import Settings, main
from speech import LhotseSpeech
from streaming import stream_rates


def measure(settings: Settings) -> dict[str, float]:
    count = 15 if settings.quick else 40
    figures: dict[str, float] = {}
    for workers in (0, 2):
        # Indexes that are not there yet are made here, before anything is counted.
        cuts = CutSet.from_shar(in_dir=settings.data / "shar", indexed=True, shuffle_shards=True)
        sampler = bucketing(cuts.repeat(), buffer_size=500 if settings.quick else 2_000)
        loader = DataLoader(
            IterableDatasetWrapper(LhotseSpeech(), sampler),
            batch_size=None,
            num_workers=workers,
            worker_init_fn=make_worker_init_fn(rank=0, world_size=1, seed=0),
        )
        cpu, wall = stream_rates(iter(loader), count)
        figures[f"shar_{workers}_cpu"] = cpu
        figures[f"shar_{workers}_wall"] = wall
    return figures


if __name__ == "__main__":
    main(measure)
