"""Run by a Python that has Lhotse 2: makes states of its loaders, and says what was read.

`lhotse_states.py FOLDER` writes `FOLDER/cases.json`: of each case its state, what was handed out of
each source, and the config that names the sources.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch
from lhotse import CutSet
from lhotse.dataset.dataloading import make_worker_init_fn
from lhotse.dataset.iterable_dataset import IterableDatasetWrapper
from lhotse.dataset.sampling import (
    DynamicBucketingSampler,
    DynamicCutSampler,
    RoundRobinSampler,
)
from lhotse.index_pack import (
    IndexPackCollectionSpec,
    index_pack_collection_key,
    write_index_pack,
)
from lhotse.indexing import create_jsonl_index
from lhotse.lazy import LazyIteratorChain
from lhotse.packed_lazy import LazyPackedManifestIterator

warnings.filterwarnings("ignore")
from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: E402

ROWS = {"a": 100, "b": 37, "c": 11}


class Ids(torch.utils.data.Dataset):
    def __getitem__(self, cuts):
        return [cut.id for cut in cuts]


def make(folder: Path) -> dict[str, Path]:
    files = {}
    for name, count in ROWS.items():
        rng = random.Random(name)
        files[name] = folder / f"{name}.jsonl"
        with files[name].open("w") as file:
            for number in range(count):
                seconds = round(rng.uniform(1, 10), 3)
                recording = {
                    "id": f"{name}-{number}",
                    "sources": [{"type": "file", "channels": [0], "source": "none.wav"}],
                    "sampling_rate": 16000,
                    "num_samples": round(seconds * 16000),
                    "duration": seconds,
                    "channel_ids": [0],
                }
                cut = {
                    "id": f"{name}-{number}",
                    "start": 0,
                    "duration": seconds,
                    "channel": 0,
                    "recording": recording,
                    "type": "MonoCut",
                }
                file.write(json.dumps(cut) + "\n")
        create_jsonl_index(files[name])
    return files


def read(sampler, steps, *, workers=0, rank=0, ranks=1, loader_state=None):
    """Batches of a loader as NeMo makes it for one rank, and its state after them."""
    start = make_worker_init_fn(rank=rank, world_size=ranks, seed=0)
    if workers == 0:
        start(0)
    loader = StatefulDataLoader(
        IterableDatasetWrapper(Ids(), sampler),
        batch_size=None,
        num_workers=workers,
        worker_init_fn=start,
    )
    if loader_state is not None:
        loader.load_state_dict(loader_state)
    ids = []
    for step, batch in enumerate(loader):
        ids += batch
        if step + 1 == steps:
            break
    return ids, copy.deepcopy(loader.state_dict())


def counted(ids):
    return Counter(one.partition("-")[0] for one in ids)


def per_rank(states):
    entries = [
        {"dp_rank": rank, "dp_world_size": len(states), "state": state}
        for rank, state in enumerate(states)
    ]
    return {"loops": {"fit_loop": {"state_dict": {"train_dataloader_per_rank": entries}}}}


def main(folder: Path) -> None:
    files = make(folder)
    cases = []

    def opened(name):
        return CutSet.from_file(files[name], indexed=True)

    def config(*names, **more):
        return [{"type": "lhotse", "cuts_path": str(files[name]), **more} for name in names]

    def add(name, ids, state, sources, **facts):
        cases.append(
            {"name": name, "read": counted(ids), "state": state, "config": sources, **facts}
        )

    def cut_sampler(cuts, **more):
        return DynamicCutSampler(cuts, max_duration=20, rank=0, world_size=1, **more)

    def mixed(weights=(0.6, 0.3, 0.1)):
        parts = [opened(name).repeat() for name in ROWS]
        return CutSet.mux(*parts, weights=list(weights), seed=0)

    ids, state = read(cut_sampler(opened("a")), 6, workers=2)
    add("a file, two workers", ids, state, config("a"))

    ids, state = read(cut_sampler(opened("c").repeat()), 40, workers=2)
    add("a file several times over", ids, state, config("c"))

    ids, states = [], []
    for rank in range(2):
        more, state = read(cut_sampler(mixed()), 50, workers=2, rank=rank, ranks=2)
        ids += more
        states.append(state)
    add("a mixture, two ranks with two workers", ids, per_rank(states), config(*ROWS))

    sampler = DynamicBucketingSampler(
        mixed(), max_duration=20, num_buckets=3, buffer_size=20, duration_bins=[3.0, 6.0]
    )
    ids, state = read(sampler, 40, workers=2)
    add("buckets", ids, state, config(*ROWS), has_buffers=True)

    ids, state = read(cut_sampler(mixed(), shuffle=True, seed=1), 40)
    add("a buffer that is shuffled", ids, state, config(*ROWS), has_buffers=True)

    def chain():
        return (opened("a") + opened("b") + opened("c")).repeat()

    for steps in (10, 45, 70, 130):
        ids, state = read(cut_sampler(chain()), steps, workers=2)
        add(f"files one after another, {steps} steps", ids, state, config(*ROWS))
        resumed, state = read(cut_sampler(chain()), 3, workers=2, loader_state=state)
        add(f"the same, resumed after {steps}", ids + resumed, state, config(*ROWS))

    entry = {"type": "nemo", "manifest_filepath": [str(files[name]) for name in ROWS]}
    ids, state = read(cut_sampler(chain()), 70, workers=2)
    add("files one after another as one source", ids, state, [entry], is_one=True)

    def shuffled():
        parts = [opened(name) for name in ROWS]
        return CutSet(LazyIteratorChain(*parts, shuffle_iters=True, seed=3))

    ids, state = read(cut_sampler(shuffled().repeat()), 70, workers=2)
    add("files shuffled together", ids, state, [entry], is_one=True)

    ids, state = read(cut_sampler(shuffled()), 1000)
    add("files shuffled together, to the end", ids, state, [entry], is_one=True)

    finite = CutSet.mux(opened("a"), opened("b"), weights=[0.3, 0.7], seed=0)
    ids, state = read(cut_sampler(finite), 1000)
    add("a mixture to its end", ids, state, config("a", "b"))

    spec = str(folder / "{a,b,c}.jsonl")
    key = index_pack_collection_key("manifest", "jsonl", spec)
    pack = folder / "nemo.idxpack"
    write_index_pack(
        pack,
        [
            IndexPackCollectionSpec(
                role="manifest",
                kind="jsonl",
                source_spec=spec,
                paths=[str(files[name]) for name in ROWS],
            )
        ],
    )
    packed = [{"type": "nemo", "manifest_filepath": spec, "indexed": True, "index_pack": str(pack)}]
    for shuffle in (False, True):
        for steps in (10, 60, 150):
            cuts = CutSet(LazyPackedManifestIterator(pack, key, shuffle_shards=shuffle, seed=1))
            ids, state = read(cut_sampler(cuts.repeat()), steps, workers=2)
            name = f"a pack, {'shuffled' if shuffle else 'in order'}, {steps} steps"
            add(name, ids, state, packed, is_one=True, matched=key.hex())

    streams = [folder / "streams" / f"{name}.jsonl" for name in ("a", "c")]
    streams[0].parent.mkdir()
    for stream in streams:
        stream.write_bytes((folder / stream.name).read_bytes())
    cuts = CutSet.mux(*(CutSet.from_jsonl_lazy(one).repeat() for one in streams), seed=0)
    ids, state = read(cut_sampler(cuts), 30)
    add("streams", ids, state, config("a", "c"))

    sampler = RoundRobinSampler(cut_sampler(opened("a")), cut_sampler(opened("b")))
    ids, state = read(sampler, 9)
    add("samplers that take turns", ids, state, config("a", "b"))

    ids, states = [], []
    for rank in range(2):
        sampler = DynamicCutSampler(opened("a"), max_duration=20, rank=rank, world_size=2)
        loader = StatefulDataLoader(Ids(), sampler=sampler, batch_size=None)
        for _, batch in zip(range(6), loader, strict=False):
            ids += batch
        states.append(loader.state_dict())
    add("an order of their own, two ranks", ids, per_rank(states), config("a"))

    (folder / "cases.json").write_text(json.dumps(cases, default=list))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
