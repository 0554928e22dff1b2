"""Batches on their way to the trainer: what they lack is written down, filled in and counted."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import AudioError
from playhead.fetch.bad import Holes, without
from playhead.fetch.info import as_stand_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from playhead.fetch.bad import BadSample
    from playhead.loader.bad_log import BadLog
    from playhead.loader.fusion import FusedRun
    from playhead.loader.read_ahead import ReadAhead
    from playhead.loader.run import Run
    from playhead.loader.stream import Stream
    from playhead.plan import MicroBatch

__all__ = ["Deliveries", "Delivery", "StandIn", "find_stand_in"]

_MOST_NAMED = 5


class Delivery(NamedTuple):
    """A batch for the trainer, and what there is to count of it."""

    batch: Any
    """The batch."""
    micro_batch: MicroBatch
    """What is in it."""
    bad: tuple[BadSample, ...] = ()
    """What was left out of its slot."""
    repeated: bool = False
    """Whether it stands in for the batch of its slot."""


class StandIn(NamedTuple):
    """A neighbour's batch in place of one of which nothing can be read."""

    batch: Any
    """The batch, which says that it is repeated."""
    micro_batch: MicroBatch
    """What is in it."""


class Deliveries:
    """Takes the batches of runs out of a stream, in order.

    Parameters
    ----------
    stream
        Where they come from.
    bad_log
        Where bad samples are written down; None for nowhere.
    read_ahead
        What fetches shards before they are needed; None where none are kept.
    """

    def __init__(
        self, stream: Stream, bad_log: BadLog | None, read_ahead: ReadAhead | None
    ) -> None:
        self._stream = stream
        self._bad_log = bad_log
        self._read_ahead = read_ahead
        self._in_flight: deque[MicroBatch] = deque()
        self._flowing: Run | FusedRun | None = None
        self._due = 0

    def next(self, run: Run | FusedRun, batch: int) -> Delivery:
        """Batch number `batch` of a run; a neighbour's where it is void.

        What is in flight is the batch after the one before; any other is sought.

        Raises
        ------
        StopIteration
            At the end of the run.
        AudioError
            If nothing of the whole step can be read.
        Exception
            Whatever making it raises.
        """
        # An interrupt may come when a batch was taken and nobody has counted it yet.
        if self._flowing is not run or self._due != batch:
            self._seek(run, batch)
        self._due = batch + 1
        if self._read_ahead is not None:
            self._read_ahead.follow(run.windows_ahead(batch))
        try:
            return self._take(run, batch)
        except StopIteration:
            self._due = batch
            raise
        except BaseException:
            # Whoever goes on after an error gets the batch that failed, not the one after it.
            self.turn_back()
            raise

    def turn_back(self) -> None:
        """Let the next batch be made anew, whatever is in flight."""
        self._flowing = None

    def close(self) -> None:
        """End the workers, and what fetches shards."""
        self._stream.close()
        if self._read_ahead is not None:
            self._read_ahead.stop()
        self.turn_back()

    def _seek(self, run: Run | FusedRun, batch: int) -> None:
        self._in_flight = noted = deque()
        workers, ahead = self._stream.workers, None
        if not workers.persistent:
            ahead = sum(1 for _ in islice(run.batches(batch), workers.num_workers))
        self._stream.seek(lambda: _noted(run.batches(batch), noted), ahead)
        self._flowing = run

    def _take(self, run: Run | FusedRun, batch: int) -> Delivery:
        made = self._stream.next()
        micro_batch = self._in_flight.popleft()
        if not self._in_flight:
            # Workers have a further one in hand unless this is the last. Who counts batches never
            # asks for the end.
            self._stream.rest()
        if not isinstance(made, Holes):
            return Delivery(made, micro_batch)
        self._write_down(made.bad)
        if not made.empty:
            return Delivery(made.batch, without(micro_batch, made.places), made.bad)
        stand_in = find_stand_in(
            micro_batch,
            made.bad,
            run.neighbours(batch),
            self._stream.make_here,
            self._write_down,
        )
        return Delivery(stand_in.batch, stand_in.micro_batch, made.bad, repeated=True)

    def _write_down(self, bad: Iterable[BadSample]) -> None:
        if self._bad_log is not None:
            self._bad_log.add(bad)


def _noted(micro_batches: Iterator[MicroBatch], noted: deque[MicroBatch]) -> Iterator[MicroBatch]:
    """Pass micro-batches on, and remember them until their batches come back."""
    for micro_batch in micro_batches:
        noted.append(micro_batch)
        yield micro_batch


def find_stand_in(
    micro_batch: MicroBatch,
    bad: tuple[BadSample, ...],
    neighbours: Iterable[MicroBatch],
    make: Callable[[MicroBatch], Any],
    write_down: Callable[[Iterable[BadSample]], None],
) -> StandIn:
    """Make the batch of the first neighbour of which something can be read.

    Neighbours have nearly the same cost, and it depends on nothing but the data which one it is.

    Parameters
    ----------
    micro_batch
        That of which nothing can be read.
    bad
        Its samples.
    neighbours
        The other micro-batches of its step, from the next slot on.
    make
        Makes the batch of one.
    write_down
        Told about the samples of all of them where none is left. Elsewhere that is left to those
        whose turn they are.

    Raises
    ------
    AudioError
        If nothing of the whole step can be read; it names the samples.
    """
    found = list(bad)
    for neighbour in neighbours:
        made = make(neighbour)
        left = neighbour
        if isinstance(made, Holes):
            found += made.bad
            if made.empty:
                continue
            left = without(neighbour, made.places)
            made = made.batch
        return StandIn(as_stand_in(made, slot=micro_batch.slot, dropped=len(bad)), left)
    write_down(found)
    named = "; ".join(
        f"{one.id} ({one.member or one.shard}): {one.reason}" for one in found[:_MOST_NAMED]
    )
    if len(found) > _MOST_NAMED:
        named += f"; and {len(found) - _MOST_NAMED} more"
    raise AudioError(
        f"no sample of step {micro_batch.step} can be read: {named}",
        where=f"leaf {found[0].name}, {found[0].shard}, row {found[0].row} counted from 0",
        fix="If a disk is at fault, start again when it is back. If the data are, restore them. To"
        " get past them, use larger batches or more micro_batches_per_step, and leave them out of"
        " the next windows with `playhead index CONFIG --exclude`",
    )
