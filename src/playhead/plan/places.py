"""Which draw of its pass a sample comes of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.draw import draw_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan.draw import Source
    from playhead.plan.items import Items

__all__ = ["Places"]


class Places:
    """The draws of a window, to be looked up; all of them are made again.

    Parameters
    ----------
    source
        The leaves.
    taken
        Draws of each leaf since the start of the chain, shape (L,).
    """

    def __init__(self, source: Source, taken: NDArray[np.int64]) -> None:
        self._roster = source.roster
        drawn = draw_rows(source, np.zeros_like(taken), taken)
        self._pass, self._row = drawn.pass_, drawn.row
        ends = np.empty_like(taken)
        sequence = self._roster.sequence
        ends[sequence] = np.cumsum(taken[sequence])
        self._begins, self._ends = ends - taken, ends

    def of(self, items: Items) -> NDArray[np.int64]:
        """Return the place of each sample's draw in its pass, counted from 0, shape (M,).

        Parameters
        ----------
        items
            Samples of the window; leaves are numbers of the roster.
        """
        places = np.empty(len(items), dtype=np.int64)
        for leaf in np.unique(items.leaf).tolist():
            mine = np.flatnonzero(items.leaf == leaf)
            places[mine] = self._of_leaf(leaf, items.pass_[mine], items.row[mine])
        return places

    def _of_leaf(
        self, leaf: int, pass_: NDArray[np.int64], row: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        draws = slice(int(self._begins[leaf]), int(self._ends[leaf]))
        passes, rows = self._pass[draws], self._row[draws]
        size = int(rows.max()) + 1
        known = passes * size + rows
        order = np.argsort(known, kind="stable")
        draw = order[np.searchsorted(known[order], pass_ * size + row)]
        roster = self._roster
        left = int(roster.rows[leaf] - roster.done[leaf])
        later = (draw - left) % max(int(roster.next_rows[leaf]), 1)
        return np.where(draw < left, int(roster.done[leaf]) + draw, later)
