"""Rules for resumable training elsewhere that have no meaning here, and why not."""

from __future__ import annotations

from typing import Final

__all__ = ["UNNECESSARY"]

UNNECESSARY: Final[dict[int, tuple[str, str]]] = {
    1: ("extra_fields on indexed entries", "lines are found by the number of their row"),
    2: ("slice_length on indexed entries", "slices are chosen by key, and resume"),
    5: ("gzip needs a seekable index", "the rows of compressed manifests are in the pack"),
    8: ("types that cannot be indexed", "every type is indexed, texts and simulators too"),
    9: ("indexed and streaming entries mixed", "there is one kind of entry"),
    15: ("one pack for a whole mixture", "a pack holds any number of leaves, each by itself"),
    17: ("more than 10,000 loose sidecars", "only packs are mapped while training"),
    18: ("tarred rows without a sampling rate", "the index looks at the headers of such rows"),
    23: ("tarred and plain entries mixed", "one loader draws from both"),
    25: ("max_open_streams", "nothing streams: every sample is read by itself"),
    26: ("one manifest for several tars", "rows find their archive by shard_id"),
    28: ("use_stateful_dataloader", "every loader has a state_dict"),
    30: ("force_map_dataset", "there is one kind of dataset"),
    31: ("both force flags", "there is one kind of dataset"),
    32: ("shard_seed", "seed decides everything"),
    34: ("concurrent_bucketing", "there is no buffer that a thread fills"),
    36: ("bucket_buffer_size", "there is no buffer: whole windows are planned"),
    40: (
        "shuffle_buffer_size and random truncation",
        "whole leaves are permuted, and offsets are drawn by the sample's key",
    ),
    42: ("another seed for each job", "the seed is in the checkpoint"),
    43: ("num_workers or the world size changes", "neither enters what is trained on"),
    47: ("LHOTSE_USE_WORKER_PARTITION", "no iterator of Lhotse's is used"),
    49: ("indexing in containers for GPUs", "indexing needs no GPU, and names a worker that dies"),
}
"""Number of a rule to what it is about, and why Playhead makes it unnecessary."""
