"""What the records say of each bucket: what fits, what does not, what was lost.

A size that fitted fits with any larger budget, and with any budget not below what the allocator
held; one that did not fit does not with any smaller budget, nor does one whose tensors alone were
above it. A mix says of the bucket in whose step memory ran out that its size is too large, and of
all buckets, once it is clean, that their sizes fit together.

Two kinds of answers are not taken at their word. No answer (a crash, a hang) says nothing of
memory: after three of them a size is avoided as if it were too large, which is noted. Running out
of memory where something as large had fitted, or where far less was needed than there is, may have
been somebody else's doing: it counts once it has happened twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from playhead.fit.record import ProbeRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.fit.memory_model import MemoryModel, Points
    from playhead.fit.problem import Problem
    from playhead.fit.record import MixRecord

__all__ = [
    "CLOSE",
    "LOST_LIMIT",
    "Channel",
    "Evidence",
    "Usual",
    "gather",
    "measured_peaks",
    "usual_waste",
]

LOST_LIMIT = 3
"""Runs without an answer after which a size is avoided."""
CLOSE = 0.03
"""What the allocator needs is known well where both bounds of it are so near."""
# A bucket is thought to need what most others do, and at least so much more.
_MARGIN = 0.004

# The allocator seldom needs more than this over what tensors hold, alone and in a mix.
_MOST_WASTE, _MOST_WASTE_MIXED = 0.06, 0.12
# Peaks are known well enough to say so where a size was measured that differs by less.
_NEAR = 0.15


@dataclass(slots=True)
class Channel:
    """Bounds of one bucket, from runs of one kind."""

    fits: int = 0
    """Largest size that fits with this budget."""
    fails: int | None = None
    """Smallest size that does not; None where none is known."""
    cleared: list[int] = field(default_factory=list)
    """Sizes that fitted with this budget, in the order in which they did."""
    failures: int = 0
    """How often memory ran out at the smallest size that fails."""
    waste_most: float = 1.0
    """What the allocator needs over the tensors at most, as a share, with any budget."""
    waste_least: float = 0.0
    """What it needs at least."""

    def fit(self, size: int) -> None:
        """Hear of a size that fits."""
        self.fits = max(self.fits, size)
        self.cleared.append(size)

    def fail(self, size: int, times: int = 0) -> None:
        """Hear of a size that does not fit, and so takes back that it or a larger one did."""
        if self.fails is None or size < self.fails:
            self.fails, self.failures = size, times
        if self.fits >= size:
            self.fits = max((cleared for cleared in self.cleared if cleared < size), default=0)


@dataclass(frozen=True, slots=True)
class Usual:
    """What the allocator needs in the buckets where that is known, as a share."""

    least: float
    """At least so much in most of them."""
    most: float | None
    """At most so much in nearly all of them; None where it is not known well in any."""
    worst: float
    """At least so much in the worst of them."""


@dataclass(slots=True)
class Evidence:
    """What the records say."""

    alone: list[Channel]
    """Bounds of each bucket in a process of its own."""
    mixed: list[Channel]
    """Bounds of each bucket in mixes."""
    clean: set[tuple[int, ...]] = field(default_factory=set)
    """Sizes of mixes that were clean with this budget."""
    answers: int = 0
    """Runs that gave an answer."""
    lost: int = 0
    """Runs that gave none."""
    notes: list[str] = field(default_factory=list)
    """What people must know."""


def measured_peaks(records: Sequence[ProbeRecord | MixRecord]) -> Points:
    """Return the peaks of tensors (bytes) that were measured, by bucket and batch size."""
    points: Points = {}
    for record in records:
        if isinstance(record, ProbeRecord):
            found = [(record.bucket, record.batch_size, record.allocated)]
        else:
            peaks = record.allocated or (0,) * len(record.sizes)
            found = list(zip(range(len(peaks)), record.sizes, peaks, strict=True))
        for bucket, size, allocated in found:
            if allocated and size:
                own = points.setdefault(bucket, {})
                own[size] = max(own.get(size, 0.0), float(allocated))
    return points


def usual_waste(channels: Sequence[Channel]) -> Usual:
    """Return what the allocator needs in most buckets.

    Parameters
    ----------
    channels
        Bounds of each bucket.
    """
    known = [channel for channel in channels if channel.waste_least > 0]
    least = [channel.waste_least for channel in known]
    well = [
        (channel.waste_least + channel.waste_most) / 2
        for channel in known
        if channel.waste_most - channel.waste_least < CLOSE
    ]
    most = None
    if well:
        centre = median(well)
        most = centre + max(_MARGIN, *(abs(waste - centre) for waste in well))
    return Usual(median(least) if least else 0.0, most, max(least, default=0.0))


def gather(
    problem: Problem, records: Sequence[ProbeRecord | MixRecord], model: MemoryModel | None
) -> Evidence:
    """Put together what the records say.

    Parameters
    ----------
    problem
        What is asked.
    records
        All records.
    model
        What is known of peaks; None as long as nothing is.
    """
    count = len(problem.buckets)
    found = Evidence([Channel() for _ in range(count)], [Channel() for _ in range(count)])
    found.lost = sum(record.status == "lost" for record in records)
    found.answers = len(records) - found.lost
    _take_probes(problem, [r for r in records if isinstance(r, ProbeRecord)], model, found)
    _take_mixes(problem, [r for r in records if not isinstance(r, ProbeRecord)], model, found)
    for alone, mixed in zip(found.alone, found.mixed, strict=True):
        # What does not fit alone does not fit in a mix; what did there once, only failed once.
        if alone.fails is not None and (alone.failures != 1 or mixed.fits < alone.fails):
            mixed.fail(alone.fails, alone.failures)
        mixed.waste_least = max(mixed.waste_least, min(alone.waste_least, mixed.waste_most))
    found.clean = {
        sizes
        for sizes in found.clean
        if all(size <= channel.fits for size, channel in zip(sizes, found.mixed, strict=True))
    }
    return found


def _take_probes(
    problem: Problem, probes: Sequence[ProbeRecord], model: MemoryModel | None, found: Evidence
) -> None:
    for probe in probes:
        if probe.status == "ok":
            _take_fitting(problem, probe, found.alone[probe.bucket])
    lost = Counter((p.bucket, p.batch_size) for p in probes if p.status == "lost")
    for (bucket, size), times in lost.items():
        _take_lost(problem, found, bucket, size, times)
    ran_out = Counter((p.bucket, p.batch_size, p.budget) for p in probes if p.status == "oom")
    _take_failures(problem, found.alone, ran_out, model, _MOST_WASTE)


def _take_fitting(problem: Problem, probe: ProbeRecord, channel: Channel) -> None:
    held = probe.budget if probe.reserved is None else min(probe.budget, probe.reserved)
    if held <= problem.budget:
        channel.fit(probe.batch_size)
    if probe.allocated:
        channel.waste_most = min(channel.waste_most, held / probe.allocated - 1)
        if probe.allocated > problem.budget:
            channel.fail(probe.batch_size)


def _take_mixes(
    problem: Problem, mixes: Sequence[MixRecord], model: MemoryModel | None, found: Evidence
) -> None:
    for mix in mixes:
        if mix.status == "ok" and mix.steps >= problem.verify_steps:
            _take_clean(problem, mix, found)
    lost = Counter((mix.sizes, mix.failed) for mix in mixes if mix.status == "lost")
    for (sizes, failed), times in lost.items():
        for bucket, size in enumerate(sizes):
            # Where nobody knows in whose step it was, it was one that no clean mix had.
            if failed == bucket or (failed is None and size > found.mixed[bucket].fits):
                _take_lost(problem, found, bucket, size, times)
    ran_out = Counter(
        (mix.failed, mix.sizes[mix.failed], mix.budget)
        for mix in mixes
        if mix.status == "oom" and mix.failed is not None
    )
    _take_failures(problem, found.mixed, ran_out, model, _MOST_WASTE_MIXED)


def _take_clean(problem: Problem, mix: MixRecord, found: Evidence) -> None:
    if mix.budget <= problem.budget:
        found.clean.add(mix.sizes)
    for bucket, size in enumerate(mix.sizes):
        channel = found.mixed[bucket]
        if mix.budget <= problem.budget:
            channel.fit(size)
        if size and mix.allocated and mix.allocated[bucket]:
            waste = mix.budget / mix.allocated[bucket] - 1
            channel.waste_most = min(channel.waste_most, waste)


def _take_lost(problem: Problem, found: Evidence, bucket: int, size: int, times: int) -> None:
    if times < LOST_LIMIT:
        return
    found.alone[bucket].fail(size)
    found.mixed[bucket].fail(size)
    found.notes.append(
        f"bucket {problem.buckets[bucket].bound}: {size} and more are avoided, after {times} tries"
        " that gave no answer"
    )


def _take_failures(
    problem: Problem,
    channels: Sequence[Channel],
    ran_out: Mapping[tuple[int, int, int], int],
    model: MemoryModel | None,
    most_waste: float,
) -> None:
    """Take in where memory ran out: bucket, size and budget, and how often."""
    for (bucket, size, budget), times in ran_out.items():
        channel = channels[bucket]
        waste, is_measured = _waste(model, bucket, size, budget)
        is_odd = channel.fits >= size or (waste is not None and waste > most_waste)
        if is_odd and times < 2:
            continue
        if budget >= problem.budget:
            channel.fail(size, times)
        if waste is not None and is_measured:
            channel.waste_least = max(channel.waste_least, min(waste, channel.waste_most))


def _waste(
    model: MemoryModel | None, bucket: int, size: int, budget: int
) -> tuple[float | None, bool]:
    """What was left over the tensors where memory ran out, and whether those were measured."""
    if model is None:
        return None, False
    is_measured = model.is_near(bucket, size, _NEAR)
    is_known = is_measured or model.is_predicted or model.is_near(bucket, size - 1, _NEAR)
    if not is_known:
        return None, False
    return budget / model.peak(bucket, size) - 1, is_measured
