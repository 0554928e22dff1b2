"""How often leaves have been gone through, anywhere in a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.window import WindowPlan

__all__ = ["WindowPasses"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WindowPasses:
    """Passes over the leaves of a blend before a window, and what the window adds to them.

    Every array has shape (L,), in the order of the leaves that the plan was given. Of a leaf that
    joins with the next window all are 0.
    """

    pass_: NDArray[np.int64]
    """Pass that each leaf was in when the window began."""
    done: NDArray[np.int64]
    """Rows of it that had been drawn."""
    rows: NDArray[np.int64]
    """Rows that it is over."""
    next_rows: NDArray[np.int64]
    """Rows that later passes are over."""
    draws: NDArray[np.int64]
    """Rows that the window draws."""
    samples: NDArray[np.int64]
    """Samples that are left of them to be handed out, in all of the window."""

    @classmethod
    def of(cls, plan: WindowPlan, leaves: Sequence[LeafColumns]) -> WindowPasses:
        """Return those of a window.

        Parameters
        ----------
        plan
            The window.
        leaves
            The leaves that the plan was given.
        """
        position = plan.position
        number = {position.moved.get(leaf.key, leaf.key): at for at, leaf in enumerate(leaves)}
        given = np.array([number.get(key, -1) for key in position.leaves], dtype=np.int64)
        here = given >= 0

        def of_leaves(column: NDArray[np.int64]) -> NDArray[np.int64]:
            out = np.zeros(len(leaves), dtype=np.int64)
            out[given[here]] = column[here]
            return out

        roster = plan.roster
        return cls(
            pass_=of_leaves(roster.pass_),
            done=of_leaves(roster.done),
            rows=of_leaves(roster.rows),
            next_rows=of_leaves(roster.next_rows),
            draws=of_leaves(plan.stats.taken),
            samples=of_leaves(plan.stats.given),
        )

    def after(self, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """Passes of each leaf once so many samples of the window were handed out.

        Rows that filters refused are spread evenly over the samples of the window.

        Parameters
        ----------
        samples
            Of each leaf since the start of the window, shape (L,).
        """
        drawn = self.draws * (samples / np.maximum(self.samples, 1))
        of_pass = np.minimum(drawn, self.rows - self.done)
        return (
            self.pass_
            + (self.done + of_pass) / np.maximum(self.rows, 1)
            + (drawn - of_pass) / np.maximum(self.next_rows, 1)
        )
