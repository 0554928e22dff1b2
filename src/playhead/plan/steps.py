"""Batches dealt into steps whose micro-batches are alike in length and in cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["deal_in_order", "deal_keyed"]

_STEPS_PER_BLOCK = 4
# With fewer steps than this, blocks would mix lengths that differ too much.
_FEW_STEPS = 50


def _by_length(
    effort: NDArray[np.int64], cost: NDArray[np.int64], per_step: int
) -> NDArray[np.int64]:
    """Batches from long to short, and by cost inside blocks of a few steps.

    By cost alone, batches of few long and of many short samples would share a step, and ranks
    would wait as soon as the true cost is not the model's; by length alone, costs differ more.
    """
    order = np.argsort(-effort, kind="stable")
    steps = len(order) // per_step
    block = per_step * (1 if steps < _FEW_STEPS else _STEPS_PER_BLOCK)
    number = np.arange(len(order)) // block
    return order[np.lexsort((-cost[order], number))]


def deal_keyed(
    effort: NDArray[np.int64],
    cost: NDArray[np.int64],
    per_step: int,
    step_key: int,
    slot_key: int,
) -> NDArray[np.int64]:
    """Deal batches into steps, in keyed order.

    Parameters
    ----------
    effort
        Effective length of the longest sample of each batch, or what else makes batches alike,
        shape (K,).
    cost
        What each batch counts against the limit, shape (K,).
    per_step
        Micro-batches of a step, G; divides K.
    step_key, slot_key
        Keys of the orders of steps and of slots.

    Returns
    -------
    NDArray[np.int64]
        Batches in the order that they are handed out, shape (K,): step after step, slot after slot.
    """
    dealt = _by_length(effort, cost, per_step).reshape(-1, per_step)
    steps = np.argsort(stream(step_key, np.arange(len(dealt))), kind="stable")
    places = stream(slot_key, np.arange(dealt.size)).reshape(dealt.shape)
    slots = np.argsort(places, axis=1, kind="stable")
    return np.take_along_axis(dealt, slots, axis=1)[steps].ravel()


def deal_in_order(
    effort: NDArray[np.int64],
    cost: NDArray[np.int64],
    per_step: int,
    earliest: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Deal batches into steps, and hand them out by the earliest sample that they hold.

    Parameters
    ----------
    effort, cost, per_step
        As for `deal_keyed`.
    earliest
        Place in declared order of the first sample of each batch, shape (K,).
    """
    dealt = _by_length(effort, cost, per_step).reshape(-1, per_step)
    first = earliest[dealt]
    slots = np.argsort(first, axis=1, kind="stable")
    steps = np.argsort(first.min(axis=1), kind="stable") if len(dealt) else np.arange(0)
    return np.take_along_axis(dealt, slots, axis=1)[steps].ravel()
