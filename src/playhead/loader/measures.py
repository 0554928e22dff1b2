"""What a loader has given so far, in figures; two moments of it make those of an interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from playhead.plan.padding import Padding

__all__ = ["LeafMeasures", "Measures", "RankMeasures"]

_US_PER_HOUR = 3_600_000_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LeafMeasures:
    """What each source has given, over all ranks; arrays have shape (L,), in declared order."""

    names: tuple[str, ...]
    """What people call them; of several blends `blend/source`."""
    samples: NDArray[np.int64]
    """Samples, but for repeated ones."""
    target: NDArray[np.float64]
    """Share of its blend that each is to have: by weight; in a pass that ends, that of its samples
    after the filters. 0 to 1."""
    passes: NDArray[np.float64] | None
    """How often each was gone through since the start of training: 2.5 is two passes and a half.
    Rows that filters refused count. None before the first step."""
    blends: tuple[slice, ...]
    """Which of them belong to each blend: shares are those within one."""

    @property
    def observed(self) -> NDArray[np.float64]:
        """Share of the samples of its blend that each has given, 0 to 1; 0 where there are none."""
        shares = np.zeros(len(self.samples))
        for blend in self.blends:
            shares[blend] = self.samples[blend] / max(int(self.samples[blend].sum()), 1)
        return shares

    @property
    def drift(self) -> NDArray[np.float64]:
        """Observed minus targeted share, as in `playhead inspect`; 0 where no blend gave any."""
        drift = self.observed - self.target
        for blend in self.blends:
            if not self.samples[blend].any():
                drift[blend] = 0.0
        return drift

    @property
    def misplaced(self) -> float:
        """Share of the samples that are of another source of their blend than they should be."""
        samples = [int(self.samples[blend].sum()) for blend in self.blends]
        away = [float(np.abs(self.drift[blend]).sum()) / 2 for blend in self.blends]
        return float(np.dot(samples, away)) / max(sum(samples), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class RankMeasures:
    """What this rank was given, as it was handed out."""

    batches: int
    """Batches."""
    samples: int
    """Samples in them: those that were left out are not."""
    repeated_batches: int
    """Batches that stand in for one of which nothing could be read."""
    bad_samples: int
    """Samples that were left out because of their audio."""
    waited: float
    """Wall seconds that training waited for batches."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Measures:
    """What a loader has given since it was made, or in the interval between two moments.

    All but `rank` is of all ranks together, and the same on each: every rank knows what the others
    are to be given. It is counted in whole steps, and as planned: lengths are those of the index,
    and samples that cannot be read are counted.
    """

    seconds: float
    """Wall seconds since the first batch was asked for."""
    step: int
    """Optimizer steps since the start of training."""
    windows: Mapping[str, int]
    """Number of the window of the last step by blend, whose name is empty where there is one; from
    0 in every pass that ends."""
    steps: int
    """Optimizer steps that were counted."""
    samples: int
    """Samples in them."""
    repeated_samples: int
    """Those of them that fill up the last step of a pass."""
    audio_us: int
    """Audio of all samples, as they are trained on (µs)."""
    tokens: int
    """Tokens of all samples, as batches count them; 0 where nothing counts tokens."""
    padding_us: Padding
    """Padding of batches that are measured in seconds (µs)."""
    padding_tokens: Padding
    """Padding of batches that are measured in tokens."""
    dropped: Mapping[str, int]
    """Samples that filters and batching left out in the windows that began, by reason."""
    leaves: LeafMeasures
    """What each source has given."""
    rank: RankMeasures
    """What this rank was given."""

    @property
    def hours(self) -> float:
        """Hours of audio."""
        return self.audio_us / _US_PER_HOUR

    def since(self, earlier: Measures) -> Measures:
        """Return what was counted after an earlier moment.

        What says where training stands (`step`, `windows`, `leaves.passes`) is as it is now.

        Parameters
        ----------
        earlier
            What the same loader said then.
        """
        counts = {
            name: getattr(self, name) - getattr(earlier, name)
            for name in (
                "seconds", "steps", "samples", "repeated_samples", "audio_us", "tokens",
                "padding_us", "padding_tokens",
            )
        }  # fmt: skip
        dropped = {name: n - earlier.dropped.get(name, 0) for name, n in self.dropped.items()}
        mine, before = self.rank, earlier.rank
        return replace(
            self,
            **counts,
            dropped={name: count for name, count in dropped.items() if count},
            leaves=replace(self.leaves, samples=self.leaves.samples - earlier.leaves.samples),
            rank=RankMeasures(
                batches=mine.batches - before.batches,
                samples=mine.samples - before.samples,
                repeated_batches=mine.repeated_batches - before.repeated_batches,
                bad_samples=mine.bad_samples - before.bad_samples,
                waited=mine.waited - before.waited,
            ),
        )
