"""Searches of simulated devices, and what there is to say of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.fit.problem import Finished, Mix, Probe, Problem
from playhead.fit.search_plan import next_action
from playhead.fit.sizes import never_rising
from support.simulated_device import SimulatedDevice

if TYPE_CHECKING:
    from playhead.fit.record import MixRecord, ProbeRecord
    from support.simulated_device import SimulatedModel

STEPS = 200


@dataclass
class Quiet:
    """Somebody who is told and says nothing, and stops the search after some tries."""

    stop_after: int | None = None
    tries: int = 0

    def begin(self, action: Probe | Mix) -> None:
        if self.tries == self.stop_after:
            raise KeyboardInterrupt
        self.tries += 1

    def end(self, record: ProbeRecord | MixRecord) -> None:
        pass


def problem_of(model: SimulatedModel, **more) -> Problem:
    options = {"max_batch_size": model.max_batch_size, "verify_steps": STEPS, "seed": 5, **more}
    return Problem(buckets=model.buckets, budget=model.budget, **options)


def search(model, records=(), device=None, **options):
    """Search without a journal; return the answer and all records."""
    problem = problem_of(model, **options)
    device = device or SimulatedDevice(model)
    records = [*records]
    predictions = {}

    def predict(bucket, size):
        if (bucket, size) not in predictions:
            predictions[bucket, size] = device.predict(bucket, size)
        return predictions[bucket, size]

    while not isinstance(action := next_action(problem, records, predict), Finished):
        if isinstance(action, Probe):
            records.append(device.probe(action.bucket, action.batch_size))
        else:
            records.append(device.mix(action.sizes, action.steps, action.seed))
        assert len(records) < 1000
    return action, records


def largest(model, sizes, *, mixed=True):
    """The largest sizes that fit in a mix with the others, or alone, and that do not rise."""
    best = [
        model.largest_in_mix(sizes, bucket) if mixed else model.largest_alone(bucket)
        for bucket in range(len(sizes))
    ]
    return never_rising([bucket.bound for bucket in model.buckets], best)


def short_of(sizes, best):
    """How far each size is below the best, as a share; more than 0.01 is too far."""
    return [1 - size / top if top else 0.0 for size, top in zip(sizes, best, strict=True)]
