"""What a loader has to say of its data and of this run, for people and for programs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.filters import refused_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from playhead.fetch.bad import BadSample
    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.run import Planning
    from playhead.loader.waits import Waits
    from playhead.plan import MicroBatch

__all__ = ["KeptReport", "LeafReport", "Report", "RunReport", "Tally", "WaitReport"]

_MOST_LEAVES = 100
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitReport:
    """How long the training step waited for batches."""

    batches: int
    """Batches that were waited for."""
    seconds: float
    """Wall seconds of waiting."""
    longest: float
    """The longest single wait, seconds."""
    share: float
    """Share of the time since the first wait, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptReport:
    """What all processes of this machine did in the folder of whole shards."""

    fetched_bytes: int
    """Bytes that were put there."""
    fetched_shards: int
    """Shards that were fetched to their end."""
    evicted_shards: int
    """Shards that had to make room."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafReport:
    """One source of samples."""

    name: str
    """Its name."""
    key: str
    """Its key."""
    rows: int
    """Rows of its index: samples, before filters."""
    share: float
    """Its share of the blend by weight, 0 to 1; a finite pass ignores it."""
    dropped: dict[str, int]
    """Rows that were left out when it was indexed, by reason."""
    refused: dict[str, int]
    """Samples that filters refuse in a pass, by reason."""
    samples: int
    """Samples that this rank handed out in this run, repeated ones included."""
    bad: dict[str, int]
    """Samples that this rank left out in this run because of their audio, by reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunReport:
    """What this rank did since the loader was made."""

    batches: int
    """Batches handed out."""
    samples: int
    """Samples in them."""
    repeated_batches: int
    """Those of them that stand in for one of which nothing could be read."""
    dropped: dict[str, int]
    """Draws that filters and batching dropped in the windows that were entered, by reason; of all
    ranks together."""
    bad: dict[str, int]
    """Samples left out because of their audio, by reason."""
    waits: WaitReport
    """How long was waited for batches."""
    kept: KeptReport | None = None
    """What became of whole shards; None where none are kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a loader has to say; `str()` is a table for people."""

    rank: int
    """Whose report it is."""
    world_size: int
    """How many ranks share each step."""
    leaves: tuple[LeafReport, ...]
    """The sources, in the order of the blend."""
    run: RunReport
    """What this rank did."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {**asdict(self), "leaves": [asdict(leaf) for leaf in self.leaves]}

    def __str__(self) -> str:
        shown = sorted(self.leaves, key=lambda leaf: -leaf.samples)[:_MOST_LEAVES]
        width = max([len("leaf"), *(len(leaf.name) for leaf in shown)])
        lines = [f"{'leaf':{width}}  {'rows':>12}  {'share':>7}  {'samples':>12}  {'bad':>7}"]
        for leaf in self.leaves if len(shown) == len(self.leaves) else shown:
            lines.append(
                f"{leaf.name:{width}}  {leaf.rows:12,}  {leaf.share:7.2%}  {leaf.samples:12,}"
                f"  {sum(leaf.bad.values()):7,}"
            )
            lines += _reasons("left out of the index", leaf.dropped)
            lines += _reasons("refused by filters in a pass", leaf.refused)
            lines += _reasons("bad audio", leaf.bad)
        if len(shown) < len(self.leaves):
            lines.append(f"and {len(self.leaves) - len(shown):,} more leaves")
        run, waits = self.run, self.run.waits
        lines.append(
            f"rank {self.rank} of {self.world_size}: {run.batches:,} batches with {run.samples:,}"
            f" samples; {run.repeated_batches:,} batches stand in for one that could not be read"
        )
        lines += _reasons("dropped in the windows so far", run.dropped)
        lines.append(
            f"  waited {waits.seconds:.2f} s for {waits.batches:,} batches, {waits.share:.1%} of"
            f" the time; {waits.longest:.2f} s at most"
        )
        if run.kept is not None:
            lines.append(
                f"  shards on this machine: {run.kept.fetched_shards:,} fetched"
                f" ({run.kept.fetched_bytes:,} bytes), {run.kept.evicted_shards:,} had to make room"
            )
        return "\n".join(lines)


def _reasons(title: str, counts: Mapping[str, int]) -> list[str]:
    if not counts:
        return []
    return [f"  {title}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items())]


@dataclass(slots=True)
class Tally:
    """What is counted while a loader hands out batches.

    Parameters
    ----------
    num_leaves
        How many leaves the blend has.
    """

    num_leaves: int
    batches: int = 0
    samples: int = 0
    repeated_batches: int = 0
    bad_samples: int = 0
    bad: dict[tuple[str, str], Counter[str]] = field(
        default_factory=dict[tuple[str, str], "Counter[str]"]
    )
    """By key and name of the leaf, by reason; parts of a fused loader may share keys."""
    _leaf_samples: Any = None

    def add(self, micro_batch: MicroBatch, bad: Iterable[BadSample], *, repeated: bool) -> None:
        """Count a batch.

        Parameters
        ----------
        micro_batch
            What it was made of.
        bad
            What was left out of the slot.
        repeated
            Whether it stands in for the batch of that slot.
        """
        self.batches += 1
        self.repeated_batches += repeated
        counted = np.bincount(micro_batch.leaf, minlength=self.num_leaves)
        self.samples += len(micro_batch.leaf)
        self._leaf_samples = counted if self._leaf_samples is None else self._leaf_samples + counted
        for one in bad:
            self.bad_samples += 1
            # Reasons of one kind differ by lengths and places.
            reason = _NUMBER.sub("N", one.reason)
            self.bad.setdefault((one.leaf, one.name), Counter())[reason] += 1

    def report(
        self,
        planning: Planning | FusedPlanning,
        rows_dropped: Sequence[Mapping[str, int]] | None,
        waits: Waits,
        rank: int,
        world_size: int,
        *,
        dropped: Mapping[str, int],
        kept: KeptReport | None = None,
    ) -> Report:
        """Put everything together; reads the lengths of all rows once.

        Parameters
        ----------
        planning
            The leaves and the filters.
        rows_dropped
            What was left out of the index of each leaf, by reason.
        waits
            What was waited.
        rank, world_size
            Whose report it is.
        dropped
            What filters and batching left out in the windows that began, by reason.
        kept
            What became of whole shards.
        """
        samples = (
            [0] * self.num_leaves if self._leaf_samples is None else self._leaf_samples.tolist()
        )
        leaves: list[LeafReport] = []
        for name, part in planning.parts.items():
            total = sum(leaf.weight for leaf in part.leaves) or 1
            for number, leaf in enumerate(part.leaves, len(leaves)):
                leaves.append(
                    LeafReport(
                        name=leaf.name,
                        key=leaf.key,
                        rows=leaf.num_rows,
                        share=planning.shares[name] * leaf.weight / total,
                        dropped={} if rows_dropped is None else dict(rows_dropped[number]),
                        refused=refused_rows(leaf, part.shape, part.batching),
                        samples=samples[number],
                        bad=dict(self.bad.get((leaf.key, leaf.name), {})),
                    )
                )
        return Report(
            rank=rank,
            world_size=world_size,
            leaves=tuple(leaves),
            run=RunReport(
                batches=self.batches,
                samples=self.samples,
                repeated_batches=self.repeated_batches,
                dropped=dict(dropped),
                bad=_summed(self.bad.values()),
                waits=WaitReport(
                    batches=waits.batches,
                    seconds=waits.seconds,
                    longest=waits.longest,
                    share=waits.share,
                ),
                kept=kept,
            ),
        )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for some in counts:
        total.update(some)
    return dict(total)
