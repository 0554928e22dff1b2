"""What a search asks of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.record import MixRecord, ProbeRecord

__all__ = ["Prober"]


class Prober(Protocol):
    """A device with a model on it that takes batches of the longest samples of a bucket."""

    @property
    def budget(self) -> int:
        """Most that the allocator may hold (bytes)."""
        ...

    def predict(self, bucket: int, batch_size: int) -> int | None:
        """Return what tensors will hold at most (bytes) in a step; None where nothing says it."""
        ...

    def probe(self, bucket: int, batch_size: int) -> ProbeRecord:
        """Do some steps with batches of one size of one bucket, and say what became of them."""
        ...

    def mix(self, sizes: Sequence[int], steps: int, seed: int) -> MixRecord:
        """Do steps over a shuffled mix of all buckets at these sizes; 0 leaves a bucket out."""
        ...
