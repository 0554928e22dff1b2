"""The samples of a blend that its filters accept, with what each of them weighs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.plan.filters import with_exclusions
from playhead.plan.pass_items import leaf_items
from playhead.plan.quotas import systematic
from playhead.plan.refusals import shape_questions, without
from playhead.plan.reshape import SPEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.plan.columns import LeafColumns
    from playhead.plan.items import Items
    from playhead.plan.refusals import Question
    from playhead.plan.settings import Shape

__all__ = ["Block", "Tally", "accepted_samples"]


class Block(NamedTuple):
    """Some accepted samples of one leaf."""

    items: Items
    """The samples."""
    weight: float
    """What each of them weighs."""


@dataclass(kw_only=True, slots=True)
class Tally:
    """How many samples were accepted, and how many refused."""

    accepted: int = 0
    """Samples that nothing refuses; where speed is perturbed, the mean over the speeds."""
    weighed: int = 0
    """Those of them that weigh something."""
    refused: dict[str, int] = field(default_factory=dict[str, int])
    """Samples that are refused, by reason."""
    nothing_of: list[str] = field(default_factory=list[str])
    """Names of the leaves that have a weight, and of which nothing is accepted."""
    copies: int = 1
    """How often each row was looked at: once per speed."""

    def mean(self, count: int) -> int:
        """Return the mean over the speeds of a number of samples."""
        return (2 * count + self.copies) // (2 * self.copies)


def accepted_samples(
    leaves: Sequence[LeafColumns],
    shape: Shape,
    tally: Tally,
    *,
    columns: Sequence[str] = (),
    limits: Sequence[Question] = (),
    num_examples: int | None = None,
) -> Iterator[Block]:
    """Give the samples that training may meet, block by block; every row is looked at once.

    A sample weighs what a draw is likely to be it: in a blend without end the weight of its leaf by
    the leaf's rows, where passes end the same for all. Leaves of which nothing is drawn are left
    out.

    Parameters
    ----------
    leaves
        The leaves of the blend.
    shape
        What becomes of their rows, and the filters.
    tally
        Counts what is accepted and what is refused; it is complete when all blocks were given.
    columns
        Columns of tokens that the samples are to have.
    limits
        What else refuses samples, after the filters.
    num_examples
        How many rows weigh something, spread evenly over all draws: the samples of others weigh
        nothing; None weighs all.
    """
    shape = with_exclusions(shape, leaves)
    drawn = [leaf for leaf in leaves if leaf.num_rows and (shape.finite or leaf.weight)]
    draws = [leaf.num_rows if shape.finite else leaf.weight for leaf in drawn]
    total = sum(draws)
    tally.copies = copies = len(SPEEDS) if shape.perturb_speed else 1
    weighing = (
        [leaf.num_rows for leaf in drawn]
        if num_examples is None or not total
        else systematic(draws, num_examples, total // 2).tolist()
    )
    questions = [*shape_questions(shape), *limits]
    refused: dict[str, int] = {}
    accepted = weighed = 0
    for leaf, share, most in zip(drawn, draws, weighing, strict=True):
        rows = min(most, leaf.num_rows)
        each = share / (total if not shape.finite else 1) / max(rows, 1) / copies
        before = accepted
        for items in leaf_items(leaf, shape, None, columns):
            kept = without(items, questions, refused)
            accepted += len(kept)
            if rows == leaf.num_rows:
                weighed += len(kept)
                yield Block(kept, each)
                continue
            chosen = _is_chosen(kept.row, rows, leaf.num_rows)
            weighed += int(np.count_nonzero(chosen))
            yield Block(kept.chosen(chosen), each)
            yield Block(kept.chosen(~chosen), 0.0)
        if accepted == before:
            tally.nothing_of.append(leaf.name)
    tally.accepted, tally.weighed = tally.mean(accepted), tally.mean(weighed)
    tally.refused = {reason: tally.mean(count) for reason, count in refused.items() if count}


def _is_chosen(row: NDArray[np.int64], chosen: int, rows: int) -> NDArray[np.bool_]:
    """Which rows are among so many that are spread evenly over all, shape (M,)."""
    return (row + 1) * chosen // rows > row * chosen // rows
