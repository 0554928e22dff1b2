"""Samples that come more than once in a run, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.validate.answer import MOST_EXAMPLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.validate.reading import Run

__all__ = ["Repeats", "find_repeats"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Repeats:
    """Samples that come more than once, by where they come; each is in one of three."""

    run: Run
    """The run."""
    on_ranks: NDArray[np.int64]
    """Those that come on several ranks."""
    on_workers: NDArray[np.int64]
    """Those that come from several workers of one rank."""
    in_worker: NDArray[np.int64]
    """Those that come from one worker."""
    ranks_beyond_the_first: int
    """Ranks that they come on, added up, but for one of each."""
    which: NDArray[np.int64]
    """Which sample it is, each time that one comes; ascending."""
    batches: NDArray[np.int64]
    """The batch that it then comes in."""

    @property
    def samples(self) -> int:
        """How many samples come more than once."""
        return len(self.on_ranks) + len(self.on_workers) + len(self.in_worker)

    def examples(self, samples: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Some of these samples, by name, and where they come."""
        some = samples[:MOST_EXAMPLES]
        return [
            {"sample": name, "came": self._places(sample)}
            for name, sample in zip(self.run.names(some), some, strict=True)
        ]

    def _places(self, sample: np.int64) -> list[dict[str, int]]:
        batches = self.batches[self.which == sample][:MOST_EXAMPLES]
        workers = self.run.worker
        return [
            {**self.run.place_of(int(batch)), "worker": int(workers[batch])} for batch in batches
        ]


def find_repeats(run: Run) -> Repeats:
    """Find the samples that come more than once."""
    ordered = np.sort(run.samples)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    sightings = np.flatnonzero(np.isin(run.samples, twice)) if len(twice) else twice
    which, batches = run.samples[sightings], run.batch_of_sample[sightings]
    # Batches go rank by rank, so that the ranks of one sample ascend.
    order = np.lexsort((batches, which))
    which, batches = which[order], batches[order]
    starts = np.searchsorted(which, twice)
    ranks = 1 + _changes(run.rank[batches], starts)
    workers = run.worker[batches]
    by_worker = np.lexsort((workers, which))
    several_ranks = ranks > 1
    several_workers = ~several_ranks & (_changes(workers[by_worker], starts) > 0)
    return Repeats(
        run=run,
        on_ranks=twice[several_ranks],
        on_workers=twice[several_workers],
        in_worker=twice[~several_ranks & ~several_workers],
        ranks_beyond_the_first=int(np.sum(ranks - 1)),
        which=which,
        batches=batches,
    )


def _changes(values: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often the value changes inside each group, from where the groups start."""
    changed = np.zeros(len(values), np.int64)
    changed[1:] = values[1:] != values[:-1]
    changed[starts] = 0
    return np.add.reduceat(changed, starts) if len(starts) else starts
