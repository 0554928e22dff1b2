"""In which order the steps of a mix come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import Purpose, key
from playhead.plan.permute import permute

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["mixed_order"]


def mixed_order(sizes: Sequence[int], steps: int, seed: int) -> tuple[int, ...]:
    """Return the buckets of the steps of a mix, one after the other.

    All buckets come once, then all once more in another order, and so on. The very first is the
    longest: what does not fit beside what the optimizer holds should show early.

    Parameters
    ----------
    sizes
        Batch size of each bucket, shortest first; 0 leaves a bucket out.
    steps
        How many steps there are.
    seed
        What the orders are drawn from.

    Examples
    --------
    >>> mixed_order([8, 0, 4, 2], 5, seed=1)
    (3, 2, 0, 0, 2)
    """
    taken = np.flatnonzero(np.asarray(sizes))
    if not len(taken) or not steps:
        return ()
    order: list[int] = []
    for turn in range(-(-steps // len(taken))):
        shuffled = taken[permute(np.arange(len(taken)), len(taken), key(seed, Purpose.STEPS, turn))]
        order += shuffled.tolist()
    order.insert(0, order.pop(order.index(int(taken[-1]))))
    return tuple(order[:steps])
