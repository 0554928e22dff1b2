"""Leaves, packs and micro-batches by hand, to fetch without a plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from playhead.blend.leaf import Leaf, LeafOptions
from playhead.fetch import FetchSpec
from playhead.formats import Place
from playhead.index.build import open_leaves
from playhead.plan.batch import MicroBatch

PLACE = Place(leaf="train", shard="/data/manifest.json", row=7, byte=123)


def leaf_of(type_: str, *, tags: dict | None = None, options: dict | None = None, **paths) -> Leaf:
    """A leaf whose paths are given by role."""
    lists = {
        role: tuple(str(p) for p in ([value] if isinstance(value, (str, Path)) else value))
        for role, value in paths.items()
    }
    key = "-".join([type_, *(str(abs(hash(lists[role])) % 10**6) for role in lists)])[:24]
    return Leaf(
        key=key,
        name="train",
        type=type_,
        weight=1,
        paths=lists,
        tags=tags or {},
        options=LeafOptions(**(options or {})),
    )


def spec_of(leaves: list[Leaf], folder: Path, **options) -> FetchSpec:
    """What a fetcher needs; packs are built in `folder`."""
    packs = open_leaves(leaves, auto_index=True, pack_dir=str(folder / "packs"))
    return FetchSpec(leaves=tuple(leaves), packs=tuple(pack.ref for pack in packs), **options)


def micro_batch(
    rows, leaf=0, *, key: int = 1, step: int = 0, slot: int = 0, repeated=None
) -> MicroBatch:
    """A micro-batch of rows of one leaf, or of one for each row."""
    rows = np.asarray(rows, np.int64)
    return MicroBatch(
        leaf=np.broadcast_to(np.asarray(leaf, np.int32), rows.shape).copy(),
        pass_=np.zeros(len(rows), np.int64),
        row=rows,
        part=np.zeros(len(rows), np.int32),
        repeated=np.zeros(len(rows), bool) if repeated is None else np.asarray(repeated, bool),
        step=step,
        slot=slot,
        key=key,
        sample_keys=np.arange(len(rows), dtype=np.uint64),
    )
