"""Which states of a run of NeMo or Lhotse 2 are of the same source."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.inspect.nemo_state import buffered_items, leaves_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.inspect.nemo_samplers import SamplerState
    from playhead.inspect.nemo_state import LeafState

__all__ = ["Partition", "Sources", "gather"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """How far one process has read one source."""

    leaf: LeafState
    """Where it stands."""
    sampler: SamplerState
    """The sampler that reads it."""

    @property
    def path(self) -> str:
        """Where its state stands in the checkpoint."""
        return f"{self.sampler.path}.{self.leaf.path}" if self.sampler.path else self.leaf.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The states of a checkpoint, source by source."""

    partitions: tuple[tuple[Partition, ...], ...]
    """Of each source, in the order of the states, those of all processes."""
    buffered: int
    """Items that were read and wait in buffers."""
    notes: tuple[str, ...]
    """What people should know."""


def gather(samplers: Sequence[SamplerState], declared: int | None) -> Sources:
    """Put the states of all processes together, source by source.

    The place of a state among those of its process is the number of its source. Files that follow
    each other are one source where that makes as many as the config has, and one each elsewhere.

    Parameters
    ----------
    samplers
        The samplers of all processes.
    declared
        How many sources the config has; None where there is no config.
    """
    leaves = [leaves_of(sampler) for sampler in samplers]
    if declared is not None and max(map(len, leaves), default=0) != declared:
        joined = [leaves_of(sampler, joined=True) for sampler in samplers]
        if max(map(len, joined), default=0) == declared:
            leaves = joined
    sources: defaultdict[int, list[Partition]] = defaultdict(list)
    first: dict[tuple[object, ...], LeafState] = {}
    buffered, differing, has_copies = 0, 0, False
    for sampler, own in zip(samplers, leaves, strict=True):
        is_new = False
        for number, leaf in enumerate(own):
            key = (sampler.rank, sampler.worker, leaf.path, leaf.shard_id, leaf.num_shards)
            known = first.setdefault(key, leaf)
            if known is leaf:
                sources[number].append(Partition(leaf=leaf, sampler=sampler))
                is_new = True
            elif known != leaf:
                differing += 1
        # Ranks that all read everything have the same in their buffers.
        is_copy = sampler.readers > 1 and has_copies
        has_copies = has_copies or sampler.readers > 1
        buffered += buffered_items(sampler) if is_new and not is_copy else 0
    return Sources(
        partitions=tuple(tuple(sources[number]) for number in range(len(sources))),
        buffered=buffered,
        notes=tuple(_notes(leaves, differing)),
    )


def _notes(leaves: Sequence[Sequence[LeafState]], differing: int) -> list[str]:
    notes: list[str] = []
    if differing:
        notes.append(
            "a source has several states of one rank and worker, and they differ"
            f" ({differing:,} times): the first of each counts"
        )
    counts = sorted({len(own) for own in leaves})
    if len(counts) > 1:
        listed = ", ".join(map(str, counts))
        notes.append(f"not all processes have states of as many sources: {listed}")
    epochs = {
        leaf.sampler_epoch
        for own in leaves
        for leaf in own
        if leaf.state_type != "unknown" and leaf.epoch == 0 and leaf.sampler_epoch
    }
    if epochs:
        notes.append(
            f"the trainer is at epoch {max(epochs)}, and sources do not count those: what they read"
            " in the epochs before is not in the figures"
        )
    return notes
