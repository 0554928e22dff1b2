"""What a step trains on and why, out of the windows that it lies in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.plan.effort import Effort
from playhead.plan.opening import WINDOWS_OF_A_PASS
from playhead.report.buckets import limit_text
from playhead.report.step import StepBatch, StepLeaf, StepSample, StepWindow
from playhead.report.step_rows import StepRows
from playhead.report.units import in_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.loader.part import Part
    from playhead.plan import MicroBatch
    from playhead.plan.batch_columns import BatchColumns
    from playhead.plan.batching import Batching
    from playhead.plan.items import Items
    from playhead.plan.progress import LeafProgress
    from playhead.report.finding import FoundWindow

__all__ = ["StepOfBlend"]

_US = 1_000_000


class StepOfBlend:
    """What a step has of one blend, and why.

    Parameters
    ----------
    found
        Where the step lies.
    part
        The blend, opened.
    world_size
        How many ranks share a step.
    """

    def __init__(self, found: FoundWindow, part: Part, world_size: int) -> None:
        self._found = found
        self._part = part
        self._world_size = world_size
        self._rows = StepRows(part)

    @property
    def window(self) -> StepWindow:
        """The window that it lies in."""
        plan, position = self._found.plan, self._found.plan.position
        return StepWindow(
            part=self._found.part,
            seed=position.seed,
            number=position.window % WINDOWS_OF_A_PASS,
            step=self._found.step,
            steps=plan.num_steps,
            order=position.order_of_passes,
            shuffle=position.shape.shuffle,
        )

    def leaves(self, batches: Sequence[StepBatch]) -> list[StepLeaf]:
        """Return the sources of some of its micro-batches."""
        counts = Counter(sample.key for batch in batches for sample in batch.samples)
        leaves = self._part.planning.leaves
        draws = self._found.plan.stats.draws
        weights = sum(leaf.weight for leaf in leaves) or 1
        draws_of_window = sum(draws.values())
        return [
            StepLeaf(
                name=leaf.name,
                key=leaf.key,
                part=self._found.part,
                weight=leaf.weight / weights,
                quota=draws[leaf.key],
                draws_of_window=draws_of_window,
                samples=counts[leaf.key],
            )
            for leaf in leaves
            if counts[leaf.key]
        ]

    def batch(self, slot: int, *, read_ids: bool) -> StepBatch:
        """Return the micro-batch of a slot.

        Parameters
        ----------
        slot
            The slot.
        read_ids
            Read what rows call their samples.

        Raises
        ------
        PlayheadError, OSError
            If rows cannot be read.
        """
        plan, step = self._found.plan, self._found.step
        batches = plan.stats.batches
        place = step * self._part.planning.micro_batches_per_step + slot
        micro_batch = plan.micro_batch(step, slot)
        ids = self._rows.ids(micro_batch) if read_ids else [None] * len(micro_batch.row)
        return StepBatch(
            slot=slot,
            rank=slot % self._world_size,
            part=self._found.part,
            **_measures(batches.chosen(slice(place, place + 1))),
            cut_number=int(plan.cut_numbers[step, slot]),
            batches_of_window=len(batches),
            key=f"{micro_batch.key:016x}",
            samples=tuple(self._samples(micro_batch, ids)),
        )

    def _samples(self, micro_batch: MicroBatch, ids: Sequence[str | None]) -> list[StepSample]:
        plan, leaves = self._found.plan, self._part.planning.leaves
        position, batching = plan.position, self._part.planning.batching
        items = plan.items(self._found.step, micro_batch.slot)
        places = plan.places(self._found.step, micro_batch.slot).tolist()
        tokens = items.tokens if items.size is None else items.size
        efforts = _efforts(items, batching).tolist()
        samples: list[StepSample] = []
        for at, number in enumerate(items.leaf.tolist()):
            leaf = leaves[number]
            progress = position.leaves[position.moved.get(leaf.key, leaf.key)]
            where = self._rows.place(number, int(items.row[at]))
            pass_number, length = int(items.pass_[at]), int(items.length[at])
            span = _at(micro_batch.span_us, at, -1)
            samples.append(
                StepSample(
                    leaf=leaf.name,
                    key=leaf.key,
                    pass_number=pass_number,
                    place=places[at],
                    rows_of_pass=_rows_of_pass(progress, pass_number),
                    row=int(items.row[at]),
                    part=int(micro_batch.part[at]),
                    repeated=bool(micro_batch.repeated[at]),
                    seconds=None if length < 0 or leaf.kind == "text" else length / _US,
                    tokens=None if tokens is None else int(tokens[at]),
                    cost=efforts[at],
                    speed=_at(micro_batch.speed, at, 1000) / 1000,
                    start=_at(micro_batch.start_us, at, 0) / _US,
                    window=None if span < 0 else span / _US,
                    text_window=_at(micro_batch.text_window, at, 0) or None,
                    manifest=where.manifest,
                    manifest_byte=where.manifest_byte,
                    archive=where.archive,
                    archive_byte=where.archive_byte,
                    id=ids[at],
                )
            )
        return samples


def _measures(one: BatchColumns) -> dict[str, Any]:
    """What there is to say of the size of a batch."""
    batching = one.batching
    in_tokens, limit = batching.in_tokens, Effort.of(batching).limit
    bucket, size = _bucket(one)
    return {
        "unit": "tokens" if in_tokens else "seconds",
        "bucket": bucket,
        "size": size,
        "limit": limit_text(batching),
        "cost": None if limit is None else int(one.cost[0]) / limit,
        "fill": float(one.fill[0]),
        "longest": in_unit(int(one.longest[0]), in_tokens=in_tokens),
        "total": in_unit(int(one.total[0]), in_tokens=in_tokens),
        "padding": one.padding,
    }


def _bucket(one: BatchColumns) -> tuple[tuple[float, ...] | None, int | None]:
    """The bound of a batch's bucket, and the samples that the config gives it."""
    batching = one.batching
    if batching.bins is None or not batching.bucketing:
        return None, None
    number = int(one.bins[0])
    if number >= len(batching.bins):
        return None, None
    bound = [in_unit(batching.bins[number], in_tokens=batching.in_tokens)]
    if batching.bins_tokens is not None:
        bound.append(float(batching.bins_tokens[number]))
    return tuple(bound), batching.sizes[number] if one.has_fixed_sizes else None


def _efforts(items: Items, batching: Batching) -> NDArray[np.float64]:
    """What each sample counts by itself, in seconds or tokens."""
    effort = Effort.of(batching)
    counted = effort(items.lengths(in_tokens=batching.in_tokens)).astype(np.float64)
    if not batching.in_tokens:
        return counted / _US
    return counted / (batching.quadratic or 1) if effort.exact else counted


def _rows_of_pass(progress: LeafProgress, pass_number: int) -> int:
    return progress.rows if pass_number == progress.pass_ else progress.next_rows


def _at(column: NDArray[Any] | None, at: int, usual: int) -> int:
    return usual if column is None else int(column[at])
