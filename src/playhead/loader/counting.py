"""Counts what all ranks together have been given, step after step, out of the plan."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from playhead.loader.measures import LeafMeasures, Measures, RankMeasures
from playhead.plan.filters import leaf_facts, with_exclusions
from playhead.plan.opening import WINDOWS_OF_A_PASS
from playhead.plan.padding import Padding
from playhead.plan.passes import WindowPasses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.loader.fusion import FusedPlanning, FusedRun
    from playhead.loader.report import Tally
    from playhead.loader.run import Planning, Run
    from playhead.loader.waits import Waits
    from playhead.plan import LeafColumns, WindowPlan
    from playhead.plan.batch_columns import BatchColumns
    from playhead.plan.stats import StepStats

__all__ = ["StepCounter"]


class _Entered:
    """The window that a blend is in.

    Parameters
    ----------
    plan
        Its plan.
    leaves
        The leaves of the blend.
    step
        The step that was entered.
    """

    def __init__(self, plan: WindowPlan, leaves: Sequence[LeafColumns], step: int) -> None:
        self.plan = plan
        self._leaves = leaves
        here = plan.given >= 0
        self.samples: NDArray[np.int64] = np.zeros(len(leaves), dtype=np.int64)
        """Samples of each leaf since the start of the window; added to."""
        self.samples[plan.given[here]] = plan.stats.handed_out(step)[here]

    @cached_property
    def passes(self) -> WindowPasses:
        """Passes over the leaves; worked out when somebody asks."""
        return WindowPasses.of(self.plan, self._leaves)


class StepCounter:
    """Adds up steps that a loader has given.

    Parameters
    ----------
    planning
        What they are planned by.
    """

    def __init__(self, planning: Planning | FusedPlanning) -> None:
        self._names = tuple(leaf.name for leaf in planning.leaves)
        self._blends = tuple(_slices([len(part.leaves) for part in planning.parts.values()]))
        self._leaf_samples = np.zeros(len(self._names), dtype=np.int64)
        self._steps = self._samples = self._repeated = self._audio_us = self._tokens = 0
        self._padding_us = self._padding_tokens = Padding()
        self._entered: dict[int, _Entered] = {}
        self._dropped: Counter[str] = Counter()
        self._dropped_in: dict[tuple[int, ...], dict[str, int]] = {}
        self._target: tuple[object, NDArray[np.float64]] | None = None

    @property
    def dropped(self) -> dict[str, int]:
        """What filters and batching left out in the windows that began, by reason.

        A window counts once, however often it is entered.
        """
        return {reason: count for reason, count in self._dropped.items() if count}

    def count(self, run: Run | FusedRun, batches: int) -> None:
        """Count a batch: its window as begun, and its step if that ends with it.

        Parameters
        ----------
        run
            The run that it is of.
        batches
            How many batches of the run come up to it.
        """
        windows = run.windows_of_step(batches - 1)
        for part, plan, number in windows:
            if part not in self._entered or self._entered[part].plan is not plan:
                self._entered[part] = self._enter(run, part, plan, number)
        if run.is_step_start(batches):
            self._add([(part, plan, plan.stats.step(number)) for part, plan, number in windows])

    def _add(self, given: Sequence[tuple[int, WindowPlan, StepStats]]) -> None:
        for part, plan, stats in given:
            leaf = plan.given[stats.leaf]
            np.add.at(self._entered[part].samples, leaf, 1)
            np.add.at(self._leaf_samples[self._blends[part]], leaf, 1)
            samples = int(stats.batches.size.sum())
            self._samples += samples
            self._repeated += samples - len(leaf)
            self._audio_us += stats.length_us
            self._tokens += stats.tokens
        self._steps += 1
        batches = [stats.batches for _, _, stats in given]
        self._padding_us += _padding(batches, in_tokens=False)
        self._padding_tokens += _padding(batches, in_tokens=True)

    def measures(
        self, planning: Planning | FusedPlanning, tally: Tally, waits: Waits, *, step: int
    ) -> Measures:
        """Return all that was counted.

        Parameters
        ----------
        planning
            What steps are planned by now.
        tally
            What this rank handed out.
        waits
            What it waited.
        step
            Optimizer steps since the start of training.
        """
        windows = {
            name: self._entered[part].plan.position.window % WINDOWS_OF_A_PASS
            for part, name in enumerate(planning.parts)
            if part in self._entered
        }
        return Measures(
            seconds=waits.elapsed,
            step=step,
            windows=windows,
            steps=self._steps,
            samples=self._samples,
            repeated_samples=self._repeated,
            audio_us=self._audio_us,
            tokens=self._tokens,
            padding_us=self._padding_us,
            padding_tokens=self._padding_tokens,
            dropped=self.dropped,
            leaves=LeafMeasures(
                names=self._names,
                samples=self._leaf_samples.copy(),
                target=self._targets(planning),
                passes=self._passes(),
                blends=self._blends,
            ),
            rank=RankMeasures(
                batches=tally.batches,
                samples=tally.samples,
                repeated_batches=tally.repeated_batches,
                bad_samples=tally.bad_samples,
                waited=waits.seconds,
            ),
        )

    def _enter(self, run: Run | FusedRun, part: int, plan: WindowPlan, step: int) -> _Entered:
        leaves = list(run.planning.parts.values())[part].leaves
        place = part, plan.position.pass_, plan.position.window
        dropped = plan.stats.dropped
        self._dropped.update(dropped)
        self._dropped.subtract(self._dropped_in.get(place, {}))
        self._dropped_in[place] = dropped
        return _Entered(plan, leaves, step)

    def _passes(self) -> NDArray[np.float64] | None:
        if not self._entered:
            return None
        passes = np.zeros(len(self._names))
        for part, window in self._entered.items():
            passes[self._blends[part]] = window.passes.after(window.samples)
        return passes

    def _targets(self, planning: Planning | FusedPlanning) -> NDArray[np.float64]:
        """The shares that leaves are to have; worked out once for a planning."""
        if self._target is None or self._target[0] is not planning:
            shares = [_shares(part) for part in planning.parts.values()]
            self._target = planning, np.concatenate(shares)
        return self._target[1]


def _slices(counts: Sequence[int]) -> Iterator[slice]:
    first = 0
    for count in counts:
        yield slice(first, first + count)
        first += count


def _shares(part: Planning) -> NDArray[np.float64]:
    """The share of a blend that each of its leaves is to have."""
    if part.finite:
        shape, batching = with_exclusions(part.shape, part.leaves), part.batching
        facts = [
            leaf_facts(leaf, shape, batching, in_tokens=batching.in_tokens) for leaf in part.leaves
        ]
        amounts = np.array([one.accepted // one.copies for one in facts], dtype=np.float64)
    else:
        amounts = np.array([leaf.weight for leaf in part.leaves], dtype=np.float64)
    return amounts / max(float(amounts.sum()), 1.0)


def _padding(batches: Sequence[BatchColumns], *, in_tokens: bool) -> Padding:
    """The padding of what is measured in a unit; what blends have in one slot is one batch."""
    batches = [one for one in batches if one.batching.in_tokens == in_tokens]
    packed = [one for one in batches if one.batching.packed]
    total = sum((Padding.of(one) for one in packed), Padding())
    padded = [one for one in batches if not one.batching.packed]
    return total + _padded_together(padded) if padded else total


def _padded_together(batches: Sequence[BatchColumns]) -> Padding:
    if len(batches) == 1:
        return Padding.of(batches[0])
    size = np.sum([one.size for one in batches], axis=0)
    longest = np.max([one.longest for one in batches], axis=0)
    return Padding(float(sum(one.total.sum() for one in batches)), float((size * longest).sum()))
