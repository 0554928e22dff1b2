"""Proving that a dataset makes the same batch whenever and wherever it is asked for it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from playhead.check.compare import first_difference
from playhead.check.facts import facts_of
from playhead.check.survey import Generator, Survey
from playhead.errors import ConfigError, PlanError, WorkerError
from playhead.fetch.bad import Holes
from playhead.loader.stream import Stream, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from playhead.check.facts import Facts
    from playhead.loader import Loader
    from playhead.plan import MicroBatch

__all__ = ["Difference", "Repeatability", "check_repeatable"]

AGAIN = "made again in this process, after other batches"
ELSEWHERE = "made in a fresh process, in another order"

_OUT_OF_REACH = (
    "What follows clocks, the network or the operating system's randomness (os.urandom, uuid4,"
    " secrets) is beyond this check where it happens to repeat."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A batch that came out differently."""

    batch: int
    """Which of the batches, from 0."""
    where: str
    """The place in it, such as `batch["audio"][3]`."""
    how: str
    """How it differs there from the batch that was made first."""
    when: str
    """What was different when it was made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeatability:
    """What a check found."""

    batches: int
    """How many batches were made, several times each."""
    workers: int
    """How many fresh processes made them too; 0 where none did."""
    differences: tuple[Difference, ...]
    """The first difference of every batch that differed; empty is the proof."""
    generators: tuple[Generator, ...]
    """The random generators that were found, and which of them are not seeded."""
    not_compared: tuple[str, ...]
    """Places in the batch that hold what cannot be compared, with the reason."""
    notes: tuple[str, ...]
    """What the check could not do, and what it can never do."""

    @property
    def repeatable(self) -> bool:
        """Whether everything that can be compared was the same, bit for bit."""
        return not self.differences

    @property
    def advice(self) -> str | None:
        """What to do about the differences; None where there are none."""
        if not self.differences:
            return None
        loose = [generator for generator in self.generators if generator.why_not_seeded]
        if loose:
            named = "; ".join(f"{item.path}: {item.why_not_seeded}" for item in loose)
            return (
                f"Not seeded before each batch: {named}. Keep a random.Random, numpy Generator or"
                " torch.Generator as an attribute of the dataset, or define set_rng(key) on it"
            )
        if all(difference.when == ELSEWHERE for difference in self.differences):
            return (
                "Only another process makes it differently: look for the order of a set, hash(),"
                " id(), process or worker numbers, environment variables, and state that the"
                " dataset gathered before it was sent there"
            )
        return (
            "Look for what the dataset keeps from call to call (counters, buffers, caches) and for"
            " clocks. Draw random numbers from the global generators of random, numpy or torch,"
            " from a generator that is an attribute of the dataset, or define set_rng(key) on it"
        )


class Recorded:
    """Makes batches and gives what they hold instead, which travels between processes."""

    def __init__(self, fetch: Callable[[MicroBatch], Any]) -> None:
        self._fetch = fetch

    def __call__(self, micro_batch: MicroBatch) -> Facts:
        """What the batch holds; of one that lacks samples whose audio is bad, what is left."""
        made = self._fetch(micro_batch)
        return facts_of(made.batch if isinstance(made, Holes) else made)


def check_repeatable(loader: Loader, batches: int = 3, *, workers: int = 1) -> Repeatability:
    """Find out whether a loader's dataset gives the same batch for the same micro-batch.

    The first batches of the loader's next pass are made in this process, made again in the opposite
    order, and made in fresh worker processes; all of a batch is compared, bit for bit. The loader
    itself does not move.

    Parameters
    ----------
    loader
        What `playhead.dataloader` returned.
    batches
        How many different batches to make; one alone shows less, for nothing comes between.
    workers
        How many fresh processes to compare with; 0 for none.

    Returns
    -------
    Repeatability
        `differences` names the place in the batch.

    Raises
    ------
    ConfigError
        If fewer than one batch, or fewer than zero workers, are asked for.
    PlanError
        If there is no data.
    PlayheadError, Exception
        What goes wrong while a batch is made, as it is.
    """
    if batches < 1 or workers < 0:
        raise ConfigError(
            f"{batches} batches and {workers} workers cannot be checked",
            fix="Use at least 1 batch and 0 workers",
        )
    chosen = list(islice(loader.micro_batches(), batches))
    if not chosen:
        raise PlanError("there is no batch to check", fix="Look at the filters of the config")
    notes = [_OUT_OF_REACH]
    if len(chosen) == 1:
        notes.append("There was one batch only: what batches do to each other was not seen.")
    made = Recorded(loader.fetch)
    survey = Survey(getattr(loader.fetch, "dataset", None))
    elsewhere: list[Facts] | Exception | None = None
    if workers:
        # Before this process has made anything, or forked processes would inherit traces of it.
        try:
            elsewhere = _in_fresh_processes(made, chosen, workers, notes)
        except Exception as error:  # noqa: BLE001 - raised below, if this process does not fail too
            elsewhere = error
    first = [made(micro_batch) for micro_batch in chosen]
    again = [made(micro_batch) for micro_batch in reversed(chosen)][::-1]
    if isinstance(elsewhere, Exception):
        raise elsewhere
    differences = list(_differences(first, again, AGAIN))
    if elsewhere is not None:
        differences += _differences(first, elsewhere, ELSEWHERE)
    return Repeatability(
        batches=len(chosen),
        workers=workers if elsewhere is not None else 0,
        differences=tuple(differences),
        generators=survey.result(),
        not_compared=_not_compared(first),
        notes=tuple(notes),
    )


def _in_fresh_processes(
    made: Recorded, chosen: Sequence[MicroBatch], workers: int, notes: list[str]
) -> list[Facts] | None:
    """What batches hold that other processes make, last batch first; None where none can."""
    try:
        pickle.dumps(made)
    except Exception as error:  # noqa: BLE001 - whatever a stranger's object raises
        reason = str(error).partition("\n")[0]
    else:
        try:
            return _made_by(made, chosen, Workers(num_workers=workers, start_method="spawn"))
        except WorkerError as error:
            reason = str(error).partition("\n")[0]
    notes.append(
        f"The dataset cannot be sent to a new process ({reason}), so that processes were forked"
        " from this one: they share what Python's hash() depends on, as the process of a resumed"
        " run will not. Define it in a module, and start under `if __name__ == '__main__':`."
    )
    return _made_by(made, chosen, Workers(num_workers=workers, start_method="fork"))


def _made_by(made: Recorded, chosen: Sequence[MicroBatch], workers: Workers) -> list[Facts]:
    stream = Stream(made, workers)
    try:
        stream.seek(lambda: iter(chosen[::-1]))
        return [stream.next() for _ in chosen][::-1]
    finally:
        stream.close()


def _differences(first: Iterable[Facts], other: Iterable[Facts], when: str) -> list[Difference]:
    found: list[Difference] = []
    for number, (one, two) in enumerate(zip(first, other, strict=True)):
        difference = first_difference(one, two)
        if difference is not None:
            where, how = difference
            found.append(Difference(batch=number, where=where, how=how, when=when))
    return found


def _not_compared(made: Iterable[Facts]) -> tuple[str, ...]:
    named = {
        path: f"{path}: {fact.kind} ({fact.shown})"
        for facts in made
        for path, fact in facts.items()
        if not fact.is_comparable
    }
    return tuple(named.values())
