"""The micro-batches that take the most memory: few of them, and none like another."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.plan import WindowPlan

__all__ = ["Bulk", "Worst", "worst_of", "worst_of_window"]

_MOST = 10


class Bulk(NamedTuple):
    """What the memory of a micro-batch depends on."""

    weight: float
    """What it counts against the limit, times its longest second length where bins have two."""
    padded: float
    """Samples times the longest; the sum of all where batches are packed (µs, or tokens)."""
    longest: int
    """Its longest sample (µs, or tokens)."""
    samples: int
    """How many samples it has."""


class Worst(NamedTuple):
    """A micro-batch that takes much memory."""

    step: int
    """Its step, counted from the start of the windows."""
    slot: int
    """Its slot."""
    bulk: Bulk
    """What it is."""
    cost: int
    """What it counts against the limit, in the unit of `Effort`."""
    tokens: int | None
    """Most tokens of a sample; None where nothing counts them."""
    leaves: tuple[int, ...]
    """Leaves of its samples, the largest share first."""


def worst_of(found: Sequence[Worst]) -> tuple[Worst, ...]:
    """Return ten of the micro-batches of several windows, those of the most weight first.

    Among them are the one with the most weight, the one that is padded to the most, the one with
    the longest sample and the one with the most samples. Of those with equally many samples the
    one with the most weight stands for all, unless there are fewer than ten such numbers.

    Parameters
    ----------
    found
        What `worst_of_window` gave, window after window.
    """
    columns = np.array([one.bulk for one in found], dtype=np.float64).reshape(-1, 4)
    chosen = [found[place] for place in _preferred(*columns.T)[:_MOST]]
    return tuple(sorted(chosen, key=lambda one: (-one.bulk.weight, one.step, one.slot)))


def worst_of_window(plan: WindowPlan, first_step: int) -> list[Worst]:
    """Return the micro-batches of a window that may be among the ten of all windows.

    Parameters
    ----------
    plan
        The window.
    first_step
        Its first step that is looked at, counted from the start of the windows.
    """
    per_step = len(plan.stats.batches) // plan.num_steps if plan.num_steps else 1
    begin = plan.first_step * per_step
    batches = plan.stats.batches.chosen(slice(begin, None))
    columns = (
        batches.cost * batches.second.astype(np.float64),
        batches.linear,
        batches.longest,
        batches.size,
    )
    worst: list[Worst] = []
    for place in _preferred(*columns):
        step, slot = divmod(place, per_step)
        items = plan.items(plan.first_step + step, slot)
        tokens = items.tokens if items.size is None else items.size
        counts = np.bincount(items.leaf)
        order = np.argsort(-counts, kind="stable")
        weight, padded, longest, samples = (column[place].item() for column in columns)
        worst.append(
            Worst(
                step=first_step + step,
                slot=slot,
                bulk=Bulk(weight, padded, longest, samples),
                cost=int(batches.cost[place]),
                tokens=None if tokens is None else int(tokens.max()),
                leaves=tuple(order[counts[order] > 0].tolist()),
            )
        )
    return worst


def _preferred(
    weight: NDArray[Any], padded: NDArray[Any], longest: NDArray[Any], samples: NDArray[Any]
) -> list[int]:
    """Places of some batches: the extremes, then the worst of each number, then the others."""
    order = np.argsort(-weight, kind="stable")
    if not len(order):
        return []
    extremes = [order[column[order].argmax()] for column in (weight, padded, longest, samples)]
    _, firsts = np.unique(samples[order], return_index=True)
    of_numbers = order[np.sort(firsts)[:_MOST]]
    return list(dict.fromkeys(map(int, chain(extremes, of_numbers, order[:_MOST]))))
