"""What a search does next: a pure function of the records.

A few buckets are probed first, each once or twice near its answer, until the peaks of all are known
well enough (`playhead.fit.memory_model`, `playhead.fit.search_probes`). Then all go up together in
mixes until nothing one hundredth above the sizes is left to try, and the sizes are those of a clean
mix (`playhead.fit.search_mixes`); or, without mixes, each in probes of its own. After two tries for
each bucket the search ends with what is known to fit, once that is a clean mix, or within the
threshold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from playhead.fit.evidence import gather, measured_peaks, usual_waste
from playhead.fit.memory_model import memory_model
from playhead.fit.problem import Finished
from playhead.fit.search_mixes import next_mix
from playhead.fit.search_probes import bisect, explore, next_probe
from playhead.fit.search_state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.problem import Action, Predict, Problem
    from playhead.fit.record import MixRecord, ProbeRecord

__all__ = ["next_action"]

# A model of which nothing is ever heard is given up after so many tries.
_LOST_LIMIT = 6
# And a search that has no answer by the time that it should have, after so many times as long.
_MOST_TRIES = 2


def next_action(
    problem: Problem, records: Sequence[ProbeRecord | MixRecord], predict: Predict
) -> Action:
    """Return what to try next, or the answer.

    Parameters
    ----------
    problem
        What is asked.
    records
        All that is known, in the order in which it came, with whatever budget.
    predict
        What is predicted.
    """
    with_others = sorted({record.budget for record in records} - {problem.budget})
    elsewhere: tuple[float | None, ...] = (None,) * len(problem.buckets)
    for budget in sorted(with_others, key=lambda other: abs(other - problem.budget))[:1]:
        elsewhere = _needed_with(replace(problem, budget=budget), records, predict)
    return _plan(problem, records, predict, elsewhere)[0]


def _needed_with(
    problem: Problem, records: Sequence[ProbeRecord | MixRecord], predict: Predict
) -> tuple[float | None, ...]:
    """What the allocator needed in each bucket with another budget, once that has an answer."""
    unknown = (None,) * len(problem.buckets)
    own = [record for record in records if record.budget == problem.budget]
    action, state = _plan(problem, own, predict, unknown)
    if not isinstance(action, Finished) or state.model is None:
        return unknown
    most = usual_waste(state.channels).most
    return tuple(
        None
        if not 0 < size < problem.largest
        else min(state.room(bucket, size), 1.0 if most is None else max(most, channel.waste_least))
        for bucket, (size, channel) in enumerate(zip(action.sizes, state.channels, strict=True))
    )


def _plan(
    problem: Problem,
    records: Sequence[ProbeRecord | MixRecord],
    predict: Predict,
    elsewhere: tuple[float | None, ...],
) -> tuple[Action, State]:
    model = memory_model(problem, measured_peaks(records), predict)
    evidence = gather(problem, records, model)
    runs = sum(record.budget == problem.budget for record in records)
    state = State(problem, model, evidence, runs, elsewhere)
    return _action(state), state


def _action(state: State) -> Action:
    problem, evidence, runs = state.problem, state.evidence, state.runs
    if not evidence.answers and evidence.lost >= _LOST_LIMIT:
        return Finished(sizes=(0,) * len(problem.buckets), notes=("no try gave an answer",))
    is_silent = state.model is None and any(channel.fits for channel in evidence.alone)
    # Without peaks it takes as many tries as bisecting takes, which ends by itself.
    if runs >= _MOST_TRIES * state.tries and not is_silent:
        return state.finished(f"ended after {runs} tries: sizes may be far too small")
    probe = explore(state)
    if probe is not None:
        return probe
    if state.model is None:
        return bisect(state)
    return next_mix(state) if problem.verify_steps else next_probe(state)
