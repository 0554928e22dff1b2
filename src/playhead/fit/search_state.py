"""Where a search stands: what was asked, what the records say, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.fit.problem import Finished
from playhead.fit.sizes import never_rising, takes_all_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.evidence import Channel, Evidence
    from playhead.fit.memory_model import MemoryModel
    from playhead.fit.problem import Problem

__all__ = ["EXACT", "FIRST_ROOM", "State"]

EXACT = 0.0015
"""Peaks are known to about this share where they were measured."""
FIRST_ROOM = 0.10
"""Room (share of the peak) that first sizes leave for what the allocator needs."""

# No size above the answer by more than this is left untried.
_TOLERANCE = 0.0085
# So near a size must have been measured for its peak to be known that well.
_NEAR = 0.06
# A search ends after two tries for each bucket, but not before so many; after one where an answer
# for another budget is known.
_FEWEST_TRIES = 40


@dataclass(frozen=True, slots=True)
class State:
    """Where a search stands."""

    problem: Problem
    """What is asked."""
    model: MemoryModel | None
    """What is known of peaks; None as long as nothing is."""
    evidence: Evidence
    """What the records say."""
    runs: int
    """Runs so far, with this budget."""
    elsewhere: tuple[float | None, ...]
    """What the allocator needed in each bucket where an answer was found with another budget."""

    @property
    def known(self) -> MemoryModel:
        """What is known of peaks."""
        assert self.model is not None
        return self.model

    @property
    def channels(self) -> Sequence[Channel]:
        """Bounds of each bucket, of the kind that the answer is about."""
        is_mixed = self.problem.verify_steps and self.model is not None
        return self.evidence.mixed if is_mixed else self.evidence.alone

    @property
    def tries(self) -> int:
        """After how many runs the search ends as soon as its answer will do."""
        count = len(self.problem.buckets)
        is_known = any(waste is not None for waste in self.elsewhere)
        return count if is_known else max(_FEWEST_TRIES, 2 * count)

    @property
    def is_late(self) -> bool:
        """Whether the search ends as soon as its answer will do."""
        return self.runs >= self.tries

    def room(self, bucket: int, size: int) -> float:
        """Return what is left over the tensors, as a share of them."""
        return self.problem.budget / self.known.peak(bucket, size) - 1

    def down(self, size: float) -> int:
        """Return the largest size that may be an answer and is not above."""
        step = self.problem.multiple_of
        return min(self.problem.largest, int(size) // step * step)

    def with_room(self, bucket: int, room: float) -> int:
        """Return the largest size that leaves so much room."""
        most = self.problem.budget / (1 + max(0.0, room))
        return self.down(self.known.largest(bucket, most, limit=self.problem.max_batch_size))

    def first(self, bucket: int) -> int:
        """Return a size for a bucket of which nobody knows what the allocator needs."""
        # Where nearly all memory is taken whatever the size, that room would leave none for it.
        fixed = self.known.peak(bucket, 0)
        most = max(self.problem.budget / (1 + FIRST_ROOM), (self.problem.budget + fixed) / 2)
        return self.down(self.known.largest(bucket, most, limit=self.problem.max_batch_size))

    def fails(self, channel: Channel) -> int:
        """Return the smallest size that is not to be tried any more."""
        above = self.problem.largest + self.problem.multiple_of
        return above if channel.fails is None else min(above, channel.fails)

    def next_size(self, fits: int) -> int:
        """Return a size above one that fits, such that this is near enough if it does not."""
        above = self.down(int(fits / (1 - _TOLERANCE)) + 1)
        return max(fits + self.problem.multiple_of, above)

    def is_settled(self, bucket: int, channel: Channel, least: float) -> bool:
        """Whether nothing far enough above what fits is left to try.

        Parameters
        ----------
        bucket, channel
            The bucket and its bounds.
        least
            What the allocator needs at least, as a share.
        """
        size = self.next_size(self.down(channel.fits))
        if size >= self.fails(channel):
            return True
        return self.known.is_near(bucket, size, _NEAR) and self.room(bucket, size) < least - EXACT

    def is_zero(self, bucket: int) -> bool:
        """Whether not even the smallest size fits: it failed, or did for a shorter bucket."""
        step = self.problem.multiple_of
        bound = self.problem.buckets[bucket].bound
        own = self.channels[bucket].fails
        if self.problem.largest < step or (own is not None and own <= step):
            return True
        return any(
            channel.fails is not None
            and channel.fails <= step
            and takes_all_of(bound, self.problem.buckets[other].bound)
            for other, channel in enumerate(self.evidence.alone[:bucket])
        )

    def fits_alone(self, bucket: int) -> bool:
        """Whether the smallest size of a bucket, or of one that takes all its samples, fitted."""
        bound = self.problem.buckets[bucket].bound
        return any(
            channel.fits and takes_all_of(other.bound, bound)
            for other, channel in zip(self.problem.buckets, self.evidence.alone, strict=True)
        )

    def repaired(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Lower sizes until none rises with length."""
        return never_rising([bucket.bound for bucket in self.problem.buckets], sizes)

    def finished(self, *notes: str) -> Finished:
        """Return what is known to fit as the answer, and what people must know of it."""
        found = [
            0 if self.is_zero(bucket) else self.down(channel.fits)
            for bucket, channel in enumerate(self.channels)
        ]
        sizes = self.repaired(found)
        notes = (*self.evidence.notes, *notes)
        for bucket, size, fits in zip(self.problem.buckets, sizes, found, strict=True):
            if not size:
                notes += (f"bucket {bucket.bound}: not even {self.problem.multiple_of} fits",)
            elif size < fits:
                notes += (f"bucket {bucket.bound}: {fits} fits, but sizes do not rise: {size}",)
        capped = sum(size == self.problem.largest > 0 for size in sizes)
        if capped:
            most = self.problem.largest
            notes += (
                f"buckets of the largest size that is allowed, {most}: {capped}; more may fit",
            )
        if not self.problem.verify_steps:
            notes += ("no mix was tried: training mixes shapes, and may need a little more",)
        return Finished(sizes=sizes, notes=notes)
