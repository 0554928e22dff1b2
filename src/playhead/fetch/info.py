"""What a batch says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead.plan.batch import MicroBatch

__all__ = ["BatchInfo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchInfo:
    """Where a batch stands in the run; what a batch holds under `"playhead"`.

    Examples
    --------
    >>> BatchInfo(step=12, slot=0, repeated=[False, True]).repeated
    [False, True]
    """

    step: int
    """Optimizer steps handed out before this one since the start of training."""
    slot: int
    """Place of the micro-batch in its step, from 0."""
    repeated: list[bool]
    """For each sample, whether a finite pass repeats it to fill its last step."""

    @classmethod
    def of(cls, micro_batch: MicroBatch) -> BatchInfo:
        """What a micro-batch says."""
        return cls(
            step=int(micro_batch.step),
            slot=int(micro_batch.slot),
            repeated=micro_batch.repeated.tolist(),
        )
