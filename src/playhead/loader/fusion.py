"""Several configs trained on together: a plan of each, and whose turn it is."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.errors import PositionError
from playhead.loader.fusion_position import FusedPosition, seed_of_part
from playhead.loader.fusion_turns import Randomized, RoundRobin, Turns, Zip
from playhead.plan.keyed import key, text_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playhead.loader.fusion_turns import TurnRule
    from playhead.loader.ranks import Topology
    from playhead.loader.read_ahead import WindowAhead
    from playhead.loader.run import Planning, Run, WindowOfStep
    from playhead.plan import LeafColumns, MicroBatch
    from playhead.plan.resume import OnChange

__all__ = ["FusedPlanning", "FusedRun", "ending_notes", "fused", "joined"]

_JOINED = text_word("batch of several parts")
# What columns hold that are None where they say nothing.
_USUAL = {"speed": 1000, "start_us": 0, "span_us": -1, "text_window": 0, "by_shard": False}


@dataclass(frozen=True, kw_only=True, eq=False)
class FusedPlanning:
    """Everything that the plan of several configs is a function of, but for the position.

    It stands where a `Planning` of one config stands. All micro-batches of a step are of the same
    part or parts, and refer to the leaves of all parts, one part after another.
    """

    parts: Mapping[str, Planning]
    """The plans by name, in the order of names: that of a config decides nothing."""
    rule: TurnRule
    """How they take turns."""

    @cached_property
    def leaves(self) -> Sequence[LeafColumns]:
        """The columns of every leaf, part by part."""
        return tuple(leaf for part in self.parts.values() for leaf in part.leaves)

    @cached_property
    def first_leaves(self) -> tuple[int, ...]:
        """Number of the first leaf of each part."""
        counts = [len(part.leaves) for part in self.parts.values()]
        return tuple(np.cumsum([0, *counts[:-1]]).tolist())

    @property
    def shares(self) -> Mapping[str, float]:
        """What share of the steps each part has."""
        return dict(zip(self.parts, self.rule.shares(len(self.parts)), strict=True))

    @property
    def finite(self) -> bool:
        """Whether a pass ends."""
        return self.rule.ends_with([part.finite for part in self.parts.values()])

    @property
    def micro_batches_per_step(self) -> int:
        """Micro-batches of an optimizer step, over all ranks: the same in every part."""
        return next(iter(self.parts.values())).micro_batches_per_step

    def with_step(self, micro_batches: int) -> FusedPlanning:
        """The same with another number of micro-batches in a step."""
        parts = {name: part.with_step(micro_batches) for name, part in self.parts.items()}
        return dataclasses.replace(self, parts=parts)

    def as_saved(self, position: FusedPosition) -> FusedPlanning:
        """The same with the locality of a position's parts, where none was asked for."""
        parts = {
            name: part.as_saved(position.parts[name]) if name in position.parts else part
            for name, part in self.parts.items()
        }
        return dataclasses.replace(self, parts=parts)

    def position_of(self, state: Mapping[str, Any]) -> FusedPosition:
        """Read the position that a loader saved.

        Raises
        ------
        PositionError
            When it is none, or of a config of one blend.
        """
        return FusedPosition.from_json(state)

    def start(
        self, *, seed: int, pass_: int, step: int, before: FusedPosition | None = None
    ) -> FusedPosition:
        """The position at the start of a pass.

        Parameters
        ----------
        seed
            What everything random follows from.
        pass_
            Number of the pass.
        step
            Optimizer steps before it.
        before
            Where the run before stands, if there was one: parts without an end go on from there.
        """
        parts = {}
        for name, part in self.parts.items():
            old = None if before is None else before.parts.get(name)
            if old is not None and not part.finite:
                parts[name] = old
            else:
                done = 0 if old is None else old.step
                parts[name] = part.start(seed=seed_of_part(seed, name), pass_=pass_, step=done)
        return FusedPosition(seed=seed, step=step, begin=step if self.finite else 0, parts=parts)

    def resume(
        self, position: FusedPosition, *, reseed: int | None, on_change: OnChange
    ) -> tuple[FusedPosition, tuple[str, ...]]:
        """Go on from a position with the present parts, data and options.

        Parts that are new begin at their start; of those that are gone, progress is abandoned.

        Returns
        -------
        position
            Where to go on.
        notes
            What people should be told.

        Raises
        ------
        PositionError
            When none of the parts is in the position, or one of them cannot go on.
        """
        gone = [name for name in position.parts if name not in self.parts]
        if len(gone) == len(position.parts):
            raise PositionError(
                f"the state has the parts {', '.join(gone)}, and the config has"
                f" {', '.join(self.parts)}: there is nothing to go on with",
                fix="Load the state that this config saved, or give the parts their names back",
            )
        seed = position.seed if reseed is None else reseed
        notes = [
            f"the part {name} is gone: its progress, {position.parts[name].step:,} steps, is"
            " abandoned, and will not be in the next state"
            for name in gone
        ]
        parts = {}
        for name, part in self.parts.items():
            own_seed = seed_of_part(seed, name)
            if name not in position.parts:
                notes.append(f"the part {name} is new: it begins at its start")
                parts[name] = part.start(seed=own_seed, pass_=position.pass_, step=0)
                continue
            try:
                parts[name], said = part.resume(
                    position.parts[name],
                    reseed=None if reseed is None else own_seed,
                    on_change=on_change,
                )
            except PositionError as error:
                raise type(error)(f"part {name} cannot go on: {error}") from error
            notes += [f"part {name}: {note}" for note in said]
        return dataclasses.replace(position, seed=seed, parts=parts), tuple(notes)

    def steps_left(self, position: FusedPosition) -> int:
        """How many steps a finite pass still has."""
        return self.rule.length(
            [
                part.steps_left(position.parts[name]) if part.finite else None
                for name, part in self.parts.items()
            ]
        )

    def run(self, position: FusedPosition, topology: Topology) -> FusedRun:
        """What one rank hands out from a position on."""
        return FusedRun(self, position, topology)


class FusedRun:
    """What one rank hands out of several parts from a position on.

    It stands where the `Run` of one config stands, and has one for each part.

    Parameters
    ----------
    planning
        What the plan is a function of.
    start
        The position before batch 0.
    topology
        Whose share is handed out: slots rank, rank + world size, … of every step.
    """

    def __init__(self, planning: FusedPlanning, start: FusedPosition, topology: Topology) -> None:
        self.planning = planning
        self.start = start
        self._topology = topology
        self._per_step = topology.batches_per_step(planning.micro_batches_per_step)
        self._runs: list[Run] = [
            part.run(start.parts[name], topology) for name, part in planning.parts.items()
        ]
        self._finite = [part.finite for part in planning.parts.values()]
        self._candidates = planning.rule.candidates(len(self._runs))
        self._turns = Turns(len(self._runs), self._take)

    def batches(self, first: int = 0) -> Iterator[MicroBatch]:
        """The micro-batches of this rank from number `first` on."""
        rank, size = self._topology.rank, self._topology.world_size
        for batch in itertools.count(first):
            step, turn = divmod(batch, self._per_step)
            taken = self._turns.taken(step)
            if not taken:
                return
            yield self._micro_batch(step, rank + turn * size)
            before = self._turns.before(step)
            for part in taken:
                # Whoever waits for a window does not wait for the one after it.
                self._runs[part].plan_ahead(before[part])

    def has_batch(self, number: int) -> bool:
        """Whether there is a batch of that number."""
        return bool(self._turns.taken(number // self._per_step))

    def windows_ahead(self, batch: int) -> list[WindowAhead]:
        """The windows that the parts are in and those after them, as far as they are planned."""
        before = self._turns.before(batch // self._per_step)
        return [
            window
            for part, (run, steps) in enumerate(zip(self._runs, before, strict=True))
            for window in run.windows_ahead(steps * self._per_step, part)
        ]

    def neighbours(self, batch: int) -> Iterator[MicroBatch]:
        """The other micro-batches of the step of a batch, from the next slot on and around."""
        step, turn = divmod(batch, self._per_step)
        slot = self._topology.rank + turn * self._topology.world_size
        slots = self.planning.micro_batches_per_step
        for further in range(1, slots):
            yield self._micro_batch(step, (slot + further) % slots)

    def windows_of_step(self, batch: int) -> list[WindowOfStep]:
        """The windows of the step of a batch, one of each part that it is made of."""
        step = batch // self._per_step
        before = self._turns.before(step)
        return [
            window
            for part in self._turns.taken(step)
            for window in self._runs[part].windows_of_step(before[part] * self._per_step, part)
        ]

    def position_after(self, batches: int) -> FusedPosition:
        """The position after so many batches; inside a step, the position at its start.

        Raises
        ------
        PositionError
            When that is further back than any framework fetches ahead, or after the end.
        """
        step = batches // self._per_step
        before = self._turns.before(step)
        parts = {
            name: run.position_after(steps * self._per_step)
            for name, run, steps in zip(self.planning.parts, self._runs, before, strict=True)
        }
        return dataclasses.replace(self.start, step=self.start.step + step, parts=parts)

    def forget_before(self, batches: int) -> None:
        """Let go of what lies well before batch `batches`."""
        before = self._turns.before(batches // self._per_step)
        for run, steps in zip(self._runs, before, strict=True):
            run.forget_before(steps * self._per_step)
        kept = [run.first_kept for run in self._runs]
        self._turns.forget(
            lambda steps: all(
                done * self._per_step >= first for done, first in zip(steps, kept, strict=True)
            )
        )

    def is_step_start(self, batches: int) -> bool:
        """Whether so many batches are a whole number of steps."""
        return batches % self._per_step == 0

    def count(self) -> int:
        """How many batches a finite run hands out in all."""
        return self.planning.steps_left(self.start) * self._per_step

    def close(self) -> None:
        """Stop planning ahead."""
        for run in self._runs:
            run.close()

    def _take(self, step: int, before: tuple[int, ...]) -> tuple[int, ...]:
        """The parts of step number `step` of this run."""
        live = [
            part
            for part in self._candidates
            if not self._finite[part] or self._runs[part].has_batch(before[part] * self._per_step)
        ]
        start = self.start
        number = start.step - start.begin + step
        return self.planning.rule.taken(start.seed, start.pass_, number, live)

    def _micro_batch(self, step: int, slot: int) -> MicroBatch:
        before = self._turns.before(step)
        first_leaves = self.planning.first_leaves
        return joined(
            [
                (self._runs[part].micro_batch(before[part], slot), first_leaves[part])
                for part in self._turns.taken(step)
            ],
            step=self.start.step + step,
        )


def fused(parts: Mapping[str, Planning], fusion: str, weights: Sequence[int]) -> FusedPlanning:
    """Plan several configs together.

    Parameters
    ----------
    parts
        The plan of each by name, in the order of names.
    fusion
        `round_robin`, `randomized_round_robin` or `zip`.
    weights
        Weight of each part where turns are drawn at random.
    """
    rules: dict[str, TurnRule] = {
        "round_robin": RoundRobin(),
        "randomized_round_robin": Randomized(tuple(weights)),
        "zip": Zip(len(parts)),
    }
    return FusedPlanning(parts=parts, rule=rules[fusion])


def ending_notes(parts: Mapping[str, Planning], fusion: str) -> list[str]:
    """Say what follows where some parts end and others do not, in a sentence.

    Parameters
    ----------
    parts
        The plan of each by name.
    fusion
        How they take turns.
    """
    ending = [name for name, part in parts.items() if part.finite]
    if not ending or len(ending) == len(parts):
        return []
    others = ", ".join(name for name in parts if name not in ending)
    if fusion == "zip":
        said = f"a pass ends with {' or '.join(ending)}, though {others} would go on"
    else:
        said = f"after one pass over {' and '.join(ending)} only {others} is left"
    note = (
        f"parts that end beside parts that do not: {said}. A manifest of plain files that stands"
        " alone ends; in a mixture, or as an archive, it does not"
    )
    return [note]


def joined(parts: Sequence[tuple[MicroBatch, int]], *, step: int) -> MicroBatch:
    """Join micro-batches of one slot, one after another.

    Parameters
    ----------
    parts
        Each with the number that its first leaf has among all leaves.
    step
        The step that they are of.
    """
    batches = [
        dataclasses.replace(batch, leaf=batch.leaf + np.int32(first)) for batch, first in parts
    ]
    one = batches[0]
    if len(batches) == 1:
        return dataclasses.replace(one, step=step)
    columns = {
        field.name: _column([getattr(batch, field.name) for batch in batches], batches, field.name)
        for field in dataclasses.fields(one)
        if any(isinstance(getattr(batch, field.name), np.ndarray) for batch in batches)
    }
    own_key = key(one.key, _JOINED, *(batch.key for batch in batches[1:]))
    return dataclasses.replace(one, **columns, step=step, key=own_key)


def _column(columns: Sequence[Any], batches: Sequence[MicroBatch], name: str) -> Any:
    kind = next(column.dtype for column in columns if column is not None)
    return np.concatenate(
        [
            np.full(len(batch.row), _USUAL[name], kind) if column is None else column
            for column, batch in zip(columns, batches, strict=True)
        ]
    )
