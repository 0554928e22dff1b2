"""What a search does next: a pure function of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.fit.problem import Finished, Probe
from playhead.fit.record import ProbeRecord
from playhead.fit.sizes import multiples, never_rising

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.problem import Action, Predict, Problem
    from playhead.fit.record import MixRecord

__all__ = ["next_action"]


def next_action(
    problem: Problem,
    records: Sequence[ProbeRecord | MixRecord],
    predict: Predict,  # noqa: ARG001  (the search proper uses it)
) -> Action:
    """Return what to try next, or the answer.

    Parameters
    ----------
    problem
        What is asked.
    records
        All that is known, in the order in which it came.
    predict
        What is predicted.
    """
    answers: list[int] = []
    for bucket in range(len(problem.buckets)):
        own = [r for r in records if isinstance(r, ProbeRecord) and r.bucket == bucket]
        fits = max((r.batch_size for r in own if r.status == "ok"), default=0)
        fails = min((r.batch_size for r in own if r.status != "ok"), default=None)
        if fails is None and fits < problem.max_batch_size:
            size = min(max(fits * 2, problem.start_batch_size), problem.max_batch_size)
            return Probe(bucket=bucket, batch_size=size)
        if fails is not None and fails - fits > max(1, problem.threshold * fails):
            return Probe(bucket=bucket, batch_size=(fits + fails) // 2)
        answers.append(fits)
    bounds = [bucket.bound for bucket in problem.buckets]
    return Finished(sizes=never_rising(bounds, multiples(answers, problem.multiple_of)))
