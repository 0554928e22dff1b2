"""The unit that the plan hands out: references to the rows of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MicroBatch"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MicroBatch:
    """The rows that one rank trains on in one forward pass; every array has shape (B,)."""

    leaf: NDArray[np.int32]
    """Index of the leaf in the list that the plan was given."""
    pass_: NDArray[np.int64]
    """How often the leaf had been drawn from end to end before this draw."""
    row: NDArray[np.int64]
    """Row of the leaf's columns."""
    part: NDArray[np.int32]
    """Part of the row where a row gives several items; 0 otherwise."""
    repeated: NDArray[np.bool_]
    """True where a finite pass repeats a sample to fill its last step."""
    step: int
    """Optimizer steps handed out before this one since the start of training."""
    slot: int
    """Place in the step, 0 ≤ slot < micro-batches per step."""
    key: int
    """64-bit key of this batch: seeds dataset code."""
    sample_keys: NDArray[np.uint64]
    """64-bit key of each sample, from (seed, leaf, pass, row, part): seeds its augmentation."""
    speed: NDArray[np.int16] | None = None
    """Speed of each sample in thousandths: 900, 1000 or 1100; None where all are 1000."""
    start_us: NDArray[np.int64] | None = None
    """Where each begins in its row, once its speed is changed (µs); None where all begin at 0."""
    span_us: NDArray[np.int64] | None = None
    """Length of each before padding (µs), -1 where it is the whole row; None where all are."""
    text_window: NDArray[np.int32] | None = None
    """Tokens of the windows that each one's row is cut into, of which it is one; 0 where the row is
    whole; None where all are."""
    by_shard: NDArray[np.bool_] | None = None
    """Whether each comes of a pass that goes from shard to shard; None where none does."""
