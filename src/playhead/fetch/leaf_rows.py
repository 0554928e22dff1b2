"""The rows that one leaf has in a micro-batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack

__all__ = ["LeafRows"]


class LeafRows(NamedTuple):
    """The rows of one leaf in a batch; arrays have shape (K,)."""

    leaf: Leaf
    """The leaf."""
    pack: LeafPack
    """Its columns."""
    at: NDArray[np.int64]
    """The place of each among all rows of the batch."""
    rows: NDArray[np.int64]
    """Which they are."""
    by_shard: bool
    """Whether any is of a pass that goes from shard to shard."""
