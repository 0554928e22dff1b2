"""Playhead: planning, whose every rank plans for all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from columns import mapped_leaf

from meter import Settings, cpu_seconds, main
from playhead.plan import Batching, Shape, plan_window, start

if TYPE_CHECKING:
    from playhead.plan import LeafColumns


def measure(settings: Settings) -> dict[str, float]:
    figures: dict[str, float] = {}
    for ranks, rows, limit, windows in (
        (1, 1_000_000, 120, 10),
        (64, 1_000_000, 660, 3),
        (1024, 10_000_000, 660, 3),
    ):
        leaf = mapped_leaf(settings.data, rows)
        batching = Batching(micro_batches_per_step=ranks, batch_duration_us=limit * 1_000_000)
        figures |= _planned(leaf, batching, windows)
    return figures


def _planned(leaf: LeafColumns, batching: Batching, windows: int) -> dict[str, float]:
    """Plan some windows, and hand out what rank 0 gets of them."""
    leaves, shape, ranks = [leaf], Shape(), batching.micro_batches_per_step
    position = start(leaves, shape, batching, seed=1)
    samples = own = steps = 0
    begin = cpu_seconds()
    for _ in range(windows):
        plan = plan_window(position, leaves, shape, batching)
        own += sum(len(plan.micro_batch(step, 0).row) for step in range(plan.num_steps))
        steps += plan.num_steps
        samples += position.window_draws
        position = plan.position_at(plan.num_steps)
    cpu = cpu_seconds() - begin
    return {
        f"plan_{ranks}_samples_per_s": samples / cpu,
        f"plan_{ranks}_own_samples_per_s": own / cpu,
        f"plan_{ranks}_s_per_window": cpu / windows,
        f"plan_{ranks}_ms_per_step": 1000 * cpu / steps,
    }


if __name__ == "__main__":
    main(measure)
