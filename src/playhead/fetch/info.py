"""What a batch says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.plan.batch import MicroBatch

__all__ = ["BatchInfo", "as_stand_in"]


class BatchInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where a batch stands in the run; what a batch holds under `"playhead"`.

    Frameworks that move batches to a device look into containers and dataclasses, and some refuse
    those that are frozen; they leave this one as it is.

    Examples
    --------
    >>> info = BatchInfo(step=12, slot=0, repeated=[False, True])
    >>> info.repeated
    [False, True]
    >>> info.fresh
    [0]
    """

    step: int
    """Optimizer steps handed out before this one since the start of training."""
    slot: int
    """Place of the micro-batch in its step, from 0."""
    repeated: list[bool]
    """For each sample, whether it was or will be trained on elsewhere in the pass: a finite pass
    fills its last step with some, and a batch of which nothing could be read is another's."""
    dropped: int = 0
    """Samples of this slot that were left out because their audio cannot be read."""
    declared: list[tuple[int, int, int]] = []
    """For each sample where it stands in the data: number of its source in the config, row of that,
    and part of the row. Sorted by it, samples are in the order of their manifests."""

    @property
    def fresh(self) -> list[int]:
        """Rows of the batch that count: all but repeated ones, which are evaluated elsewhere."""
        return [row for row, repeated in enumerate(self.repeated) if not repeated]

    @classmethod
    def of(
        cls,
        micro_batch: MicroBatch,
        *,
        dropped: int = 0,
        members: Sequence[tuple[int, ...]] | None = None,
    ) -> BatchInfo:
        """What a micro-batch says.

        Parameters
        ----------
        micro_batch
            What the batch was made of.
        dropped
            How many samples are not among it any more.
        members
            For each sample of the batch, the places in the micro-batch that it was joined from;
            None where every one is its own.
        """
        repeated: list[bool] = micro_batch.repeated.tolist()
        columns = micro_batch.leaf, micro_batch.row, micro_batch.part
        declared = list(zip(*(column.tolist() for column in columns), strict=True))
        if members is not None:
            repeated = [any(repeated[place] for place in places) for places in members]
            declared = [declared[places[0]] for places in members]
        return cls(
            step=int(micro_batch.step),
            slot=int(micro_batch.slot),
            repeated=repeated,
            dropped=dropped,
            declared=declared,
        )


def as_stand_in(batch: Any, *, slot: int, dropped: int) -> Any:
    """Mark a batch as standing in for that of another slot, where a batch says where it stands.

    Parameters
    ----------
    batch
        The batch of its neighbour.
    slot
        The slot that it stands in.
    dropped
        How many samples of that slot could not be read.
    """
    info = batch.get("playhead") if isinstance(batch, dict) else None
    if isinstance(info, BatchInfo):
        batch["playhead"] = msgspec.structs.replace(
            info, slot=slot, repeated=[True] * len(info.repeated), dropped=dropped
        )
    return batch
