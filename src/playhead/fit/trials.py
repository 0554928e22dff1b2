"""The batches of a rehearsal: the worst of what a loader would hand out next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.fetch.bad import chosen
from playhead.loader.fusion import FusedPlanning, joined
from playhead.loader.fusion_turns import Zip
from playhead.plan.bins import batch_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.loader import Loader
    from playhead.loader.run import Planning
    from playhead.plan import Batching, MicroBatch, WindowPlan
    from playhead.plan.stats import Costly

__all__ = ["Trial", "Trials"]

# Where nothing of a batch can be read, the next one of its kind is tried.
_CANDIDATES = 3
_US = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A batch to try."""

    part: str
    """The part of the config whose sizes it is about."""
    worst: Costly
    """What is known of it; `samples` with those that fill it up."""
    candidates: Sequence[MicroBatch]
    """It, and those to take in its place where nothing of it can be read."""
    bucket: str
    """Its bucket, for people."""


class Trials:
    """The worst batches that a loader would hand out next, with some planning.

    Parameters
    ----------
    loader
        Whose position is looked at; it does not move.
    planning
        Its planning, or one with other options.

    Attributes
    ----------
    parts
        The parts of the planning by name.
    are_together
        Whether batches of all parts are trained on together.
    untried
        Buckets without a sample in what comes next.
    """

    def __init__(self, loader: Loader, planning: Any) -> None:
        self.parts: Mapping[str, Planning] = planning.parts
        self.untried: list[str] = []
        is_fused = isinstance(planning, FusedPlanning)
        position, _ = planning.resume(loader.next_position(), reseed=None, on_change="error")
        self._positions = position.parts if is_fused else {"": position}
        firsts = planning.first_leaves if is_fused else (0,)
        self._first_leaves = dict(zip(self.parts, firsts, strict=True))
        self.are_together = is_fused and isinstance(planning.rule, Zip)
        self._kinds = {name: self._of_part(name) for name in self.parts}

    def __iter__(self) -> Iterator[Trial]:
        for name, kinds in self._kinds.items():
            for kind in kinds:
                yield Trial(
                    part=name,
                    worst=kind[0][0],
                    candidates=[self._whole(name, batch) for _, batch in kind],
                    bucket=_named(self.parts[name].batching, kind[0][0].bin),
                )

    def _of_part(self, name: str) -> list[list[tuple[Costly, MicroBatch]]]:
        """The worst batches of each kind, from the longest bucket on."""
        planning = self.parts[name]
        plan = planning.window(self._positions[name])
        kinds = self._of_window(planning.batching, plan)
        if plan.first_step and not plan.is_end:
            # What is left of a window says little of the buckets that it is through with.
            after = planning.window(plan.position_at(plan.num_steps))
            kinds += self._of_window(planning.batching, after)
        if plan.stats.has_fixed_sizes:
            by_bin: dict[int, list[tuple[Costly, MicroBatch]]] = {}
            for kind in kinds:
                number = kind[0][0].bin or 0
                if number not in by_bin or kind[0][0].cost > by_bin[number][0][0].cost:
                    by_bin[number] = kind
            numbers = range(len(planning.batching.sizes))
            part = f" of part {name}" if name else ""
            self.untried += [
                f"{_named(planning.batching, number)}{part}"
                for number in numbers
                if number not in by_bin
            ]
            kinds = [by_bin[number] for number in sorted(by_bin, reverse=True)]
        return kinds

    def _of_window(
        self, batching: Batching, plan: WindowPlan
    ) -> list[list[tuple[Costly, MicroBatch]]]:
        return [
            [_filled(batching, plan, one) for one in kind]
            for kind in plan.stats.costliest(plan.first_step, _CANDIDATES)
        ]

    def _whole(self, name: str, batch: MicroBatch) -> MicroBatch:
        """A batch of a part as the dataset gets it, with what it is trained on together with."""
        batches: list[tuple[MicroBatch, int]] = []
        for other, first in self._first_leaves.items():
            if other == name:
                batches.append((batch, first))
            elif self.are_together and self._kinds[other]:
                worst = max(self._kinds[other], key=lambda kind: kind[0][0].cost)
                batches.append((worst[0][1], first))
        return joined(batches, step=batch.step)


def _filled(batching: Batching, plan: WindowPlan, one: Costly) -> tuple[Costly, MicroBatch]:
    """A batch, filled up with its own samples where its bucket takes more of them."""
    batch = plan.micro_batch(one.step, one.slot)
    if one.bin is None or one.samples >= (size := batch_sizes(batching)[one.bin]):
        return one, batch
    whole = one.filled(size)
    return whole, chosen(batch, np.arange(size) % one.samples)


def _named(batching: Batching, number: int | None) -> str:
    """The bucket with a number as a config has it."""
    if number is None or batching.bins is None:
        return "without fixed sizes"
    unit = 1 if batching.in_tokens else _US
    # Every digit that a bound has: whole µs up to hours, whole tokens.
    length = f"{batching.bins[number] / unit:.10g}"
    tokens = batching.bins_tokens
    return length if tokens is None else f"[{length}, {tokens[number]}]"
