"""The reads that a micro-batch takes, as the fetcher makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.fetch.access_mode import AccessMode
from playhead.storage.access import merge_gap
from playhead.storage.get_batch import served_by_aistore
from playhead.storage.near_ranges import near_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fetch import FetchSpec
    from playhead.fetch.asking import Asked, Asking
    from playhead.plan import MicroBatch

__all__ = ["Reads", "reads_of"]


class Reads(NamedTuple):
    """What micro-batches read, one or several on average; files that are kept whole left out."""

    requests: float
    """Reads: ranges, near ones merged, and files of one sample."""
    num_bytes: float
    """Bytes of the ranges, with what lies between merged ones."""
    files: float
    """Different files with many samples, kept ones too."""
    unknown: float
    """Of the requests those for files whose bytes are not known."""

    @staticmethod
    def mean_of(reads: Sequence[Reads]) -> Reads:
        """Return the mean of several."""
        if not reads:
            return Reads(0.0, 0.0, 0.0, 0.0)
        return Reads(*np.mean(np.array(reads), axis=0).tolist())


def reads_of(asking: Asking, micro_batch: MicroBatch, spec: FetchSpec) -> Reads:
    """Return what reading a micro-batch takes.

    Parameters
    ----------
    asking
        Says what micro-batches need.
    micro_batch
        The micro-batch.
    spec
        What its batch is made from.

    Raises
    ------
    PlayheadError, OSError
        If a server has to be asked whether it gives parts of files, and cannot be.
    """
    with_audio = not spec.metadata_only
    asked = asking.of(micro_batch, with_audio=with_audio)
    requests = num_bytes = 0
    together = False
    files: set[str] = set()
    for one in asked.ranges.by_file():
        files.add(one.path)
        if one.kept:
            continue
        blocks = near_together(one.ranges(), merge_gap(one.path))
        num_bytes += sum(block.span.size for block in blocks)
        if spec.access is AccessMode.BATCH and served_by_aistore(one.path):
            together = True
        else:
            requests += len(blocks)
    named = asked.named.sizes
    num_bytes += sum(size for size in named if size > 0)
    if spec.access is AccessMode.BATCH:
        together = together or bool(named)
    else:
        requests += len(named)
    stretches = _stretches(asked, files)
    requests += len(stretches) + together
    unknown = _files_of_one_sample(asked) if with_audio else 0
    return Reads(requests + unknown, num_bytes + sum(stretches), len(files), unknown)


def _stretches(asked: Asked, files: set[str]) -> list[int]:
    """Bytes of the stretches of tables that are read as one; passes by shards read each once."""
    sizes: list[int] = []
    for group in asked.tables:
        groups = group.pack.groups
        assert groups is not None
        files.update(group.pack.shards.uris[one] for one in np.unique(group.pack.shard[group.rows]))
        if not group.by_shard:
            sizes += groups.num_bytes[np.unique(groups.of_row[group.rows])].tolist()
    return sizes


def _files_of_one_sample(asked: Asked) -> int:
    """Files that the dataset opens by itself, one a row."""
    return sum(
        int(np.count_nonzero(group.pack.tar[group.rows] < 0))
        for group in asked.groups
        if group.leaf.kind == "cut" and not group.pack.entry.fields and group.pack.groups is None
    )
