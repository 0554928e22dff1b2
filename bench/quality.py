"""How even batches are, from their sizes and longest samples; the same for every loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["batch_quality"]


def batch_quality(
    count: NDArray[np.int64],
    longest: NDArray[np.float64],
    total: NDArray[np.float64],
    *,
    limit: float,
    quadratic: float,
) -> dict[str, float]:
    """Figures of the batches of all ranks.

    Parameters
    ----------
    count, longest, total
        Shape (steps, ranks): samples of a batch, its longest sample and the sum of its samples (s).
    limit
        What samples times longest effective length may be (s).
    quadratic
        Length that counts double (s).

    Returns
    -------
    dict[str, float]
        `padding_pct`, `over_limit_pct`, and the cost of the slowest rank over the mean of its step
        where cost is what the limit says (`imbalance_own`), linear in length, or more quadratic.
    """
    own = count * (longest + longest**2 / quadratic)
    above = (own > limit * (1 + 1e-9)) & (count > 1)
    costs = {
        "own": own,
        "linear": count * longest,
        "quadratic": count * (longest + longest**2 / 8.0),
    }
    return {
        "padding_pct": 100 * (1 - float(total.sum() / (count * longest).sum())),
        "over_limit_pct": 100 * float(above.mean()),
        "worst_over_limit_pct": max(0.0, 100 * float(np.where(above, own, 0).max() / limit - 1)),
        **{
            f"imbalance_{name}": float((cost.max(axis=1) / cost.mean(axis=1)).mean())
            for name, cost in costs.items()
        },
    }
