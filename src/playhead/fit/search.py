"""The search for the batch sizes that fit: ask, write down, go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from playhead.errors import FitError
from playhead.fit.problem import Finished, Mix, Probe
from playhead.fit.record import MixRecord, ProbeRecord
from playhead.fit.search_plan import next_action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.bucket import Bucket
    from playhead.fit.journal import Journal
    from playhead.fit.prober import Prober
    from playhead.fit.problem import Problem

__all__ = ["Found", "FoundBucket", "Tell", "found_in", "run_search"]


class Tell(Protocol):
    """Somebody who is told of each try, before and after it."""

    def begin(self, action: Probe | Mix) -> None:
        """Hear what will be tried."""
        ...

    def end(self, record: ProbeRecord | MixRecord) -> None:
        """Hear what became of it; it is in the journal by then."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundBucket:
    """What was found for a bucket."""

    bucket: Bucket
    """The bucket."""
    batch_size: int
    """Largest size that fits; 0 where not even the smallest does."""
    allocated: int | None
    """Most that tensors hold at once with it (bytes); None where nobody knows."""
    reserved: int | None
    """Most that the allocator held at once with it (bytes); None where it was not measured."""
    is_measured: bool
    """Whether `allocated` was measured at this very size."""
    probes: int
    """Probes of this bucket."""
    seconds: float
    """How long they took."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a search found."""

    buckets: tuple[FoundBucket, ...]
    """Each bucket, in the order of the config."""
    is_verified: bool
    """Whether a mix of all buckets at these very sizes was clean, for as long as was asked."""
    probes: int
    """Probes of all buckets."""
    mixes: int
    """Mixes of all buckets."""
    seconds: float
    """How long all of them took."""
    notes: tuple[str, ...]
    """What people must know, one line each."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch size of each bucket."""
        return tuple(found.batch_size for found in self.buckets)


def run_search(problem: Problem, prober: Prober, journal: Journal, tell: Tell) -> Found:
    """Find the batch sizes that fit.

    Parameters
    ----------
    problem
        What is asked.
    prober
        The device.
    journal
        What is known already, and where every answer goes before the search goes on.
    tell
        Who is told of each try.

    Raises
    ------
    FitError
        If not one bucket takes a batch, or no try ever gives an answer.
    """
    assert problem.budget == prober.budget

    def predict(bucket: int, batch_size: int) -> int | None:
        key = bucket, batch_size
        if key not in journal.predictions:
            journal.keep_prediction(*key, prober.predict(*key))
        return journal.predictions[key]

    while True:
        action = next_action(problem, journal.records, predict)
        if isinstance(action, Finished):
            break
        tell.begin(action)
        record = (
            prober.probe(action.bucket, action.batch_size)
            if isinstance(action, Probe)
            else prober.mix(action.sizes, action.steps, action.seed)
        )
        journal.append(record)
        tell.end(record)
    if not any(action.sizes):
        raise _nothing(journal.records)
    return found_in(problem, action, journal.records, journal.predictions)


def _nothing(records: Sequence[ProbeRecord | MixRecord]) -> FitError:
    """What to say where no bucket takes a batch."""
    last = next((f": {record.reason}" for record in reversed(records) if record.reason), "")
    if all(record.status == "lost" for record in records):
        return FitError(f"no try gave an answer{last}", fix="Correct the model")
    return FitError(
        f"no bucket takes even the smallest batch{last}",
        fix="Use a smaller model, shorter buckets, a lower precision or more memory",
    )


def found_in(
    problem: Problem,
    answer: Finished,
    records: Sequence[ProbeRecord | MixRecord],
    predictions: dict[tuple[int, int], int | None],
) -> Found:
    """Put together what records say of an answer.

    Parameters
    ----------
    problem
        What was asked.
    answer
        What the search ended with.
    records
        All records.
    predictions
        What was predicted (bytes), by bucket and batch size.
    """
    probes = [record for record in records if isinstance(record, ProbeRecord)]
    mixes = [record for record in records if isinstance(record, MixRecord)]
    return Found(
        buckets=tuple(
            _found_bucket(bucket, number, answer.sizes[number], records, predictions)
            for number, bucket in enumerate(problem.buckets)
        ),
        is_verified=any(
            mix.status == "ok"
            and mix.sizes == answer.sizes
            and mix.steps >= problem.verify_steps
            and mix.budget <= problem.budget
            for mix in mixes
        ),
        probes=len(probes),
        mixes=len(mixes),
        seconds=sum(record.seconds for record in records),
        notes=answer.notes,
    )


def _found_bucket(
    bucket: Bucket,
    number: int,
    size: int,
    records: Sequence[ProbeRecord | MixRecord],
    predictions: dict[tuple[int, int], int | None],
) -> FoundBucket:
    own = [r for r in records if isinstance(r, ProbeRecord) and r.bucket == number]
    mixes = [r for r in records if isinstance(r, MixRecord)]
    at_size = [probe for probe in own if probe.batch_size == size and probe.status == "ok"]
    allocated = [probe.allocated for probe in at_size if probe.allocated]
    allocated += [
        mix.allocated[number]
        for mix in mixes
        if mix.allocated and mix.sizes[number] == size and mix.allocated[number]
    ]
    reserved = [probe.reserved for probe in at_size if probe.reserved]
    return FoundBucket(
        bucket=bucket,
        batch_size=size,
        allocated=max(allocated) if allocated else predictions.get((number, size)),
        reserved=max(reserved) if reserved else None,
        is_measured=bool(allocated),
        probes=len(own),
        seconds=sum(probe.seconds for probe in own),
    )
