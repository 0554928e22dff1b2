"""Playhead: padding, batches above the limit and the slowest rank."""

from __future__ import annotations

import numpy as np
from columns import mapped_leaf

from meter import Settings, main
from playhead.plan import Batching, Shape, plan_window, start
from quality import batch_quality

_LIMIT, _QUADRATIC = 660, 30


def measure(settings: Settings) -> dict[str, float]:
    ranks = 16 if settings.quick else 64
    leaf, shape = mapped_leaf(settings.data, 1_000_000), Shape()
    batching = Batching(
        micro_batches_per_step=ranks,
        batch_duration_us=_LIMIT * 1_000_000,
        quadratic_duration_us=_QUADRATIC * 1_000_000,
    )
    plan = plan_window(start([leaf], shape, batching, seed=1), [leaf], shape, batching)
    size = (plan.num_steps, ranks)
    count = np.zeros(size, np.int64)
    longest, total = np.zeros(size), np.zeros(size)
    for step, slot in np.ndindex(size):
        lengths = leaf.duration_us[plan.micro_batch(step, slot).row] / 1e6
        count[step, slot] = len(lengths)
        longest[step, slot] = lengths.max()
        total[step, slot] = lengths.sum()
    return batch_quality(count, longest, total, limit=_LIMIT, quadratic=_QUADRATIC)


if __name__ == "__main__":
    main(measure)
