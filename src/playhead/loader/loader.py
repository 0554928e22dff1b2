"""The loader: an iterable of batches whose whole state is a position."""

from __future__ import annotations

import inspect
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from playhead.loader.askers import refuse_to_be_taken_apart, refuse_to_guess
from playhead.loader.bad_log import BadLog
from playhead.loader.batches import Batches
from playhead.loader.counting import StepCounter
from playhead.loader.course import Course
from playhead.loader.deliveries import Deliveries
from playhead.loader.report import Tally
from playhead.loader.shared_deliveries import SharedDeliveries
from playhead.loader.stream import Stream
from playhead.loader.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.fusion_position import FusedPosition
    from playhead.loader.measures import Measures
    from playhead.loader.peer_group import PeerGroup
    from playhead.loader.ranks import Topology
    from playhead.loader.read_ahead import ReadAhead
    from playhead.loader.report import Report
    from playhead.loader.run import Planning
    from playhead.loader.stream import Workers
    from playhead.plan import MicroBatch, Position
    from playhead.plan.resume import OnChange

__all__ = ["Loader"]


class Loader:
    """An iterable of batches that can be stopped anywhere and resumed exactly.

    Made by `playhead.dataloader`. A training loader is endless, and a second `iter()` goes on
    where the first one stopped. A finite loader starts its next pass with every `iter()`, unless
    nobody took a batch of the one that was begun. Either way a new iterator ends the one before it.

    Parameters
    ----------
    planning
        What the plan is a function of: a config's, or that of several which are fused.
    fetch
        What makes a batch of a micro-batch.
    topology
        Whose share of each step this loader hands out.
    workers
        How batches are made.
    seed
        An integer, `randomized` or `trng`.
    fixed_step
        Whether `planning.micro_batches_per_step` was asked for, or follows the world size.
    on_change
        What a leaf whose data changed means on resume: `error`, or `restart_pass`.
    bad_samples
        The file that lists the samples which were left out; None keeps no list.
    dropped
        For each leaf the rows that were left out of its index, by reason; for `report`.
    read_ahead
        What fetches shards before they are needed; None where none are kept.
    course
        How it goes through its data.
    broadcast
        Those to whom the first of them sends what it reads; None where each process reads.
    """

    def __init__(
        self,
        *,
        planning: Planning | FusedPlanning,
        fetch: Callable[[MicroBatch], Any],
        topology: Topology,
        workers: Workers,
        seed: int | str,
        fixed_step: bool = False,
        on_change: OnChange = "error",
        bad_samples: str | None = None,
        dropped: Sequence[Mapping[str, int]] | None = None,
        read_ahead: ReadAhead | None = None,
        course: type[Course] = Course,
        broadcast: PeerGroup | None = None,
    ) -> None:
        topology.batches_per_step(planning.micro_batches_per_step)
        self._topology = topology
        self._stream = Stream(fetch, workers)
        self._tally = Tally(len(planning.leaves))
        self._counter = StepCounter(planning)
        log = None
        if bad_samples is not None and topology.is_first:
            log = BadLog(bad_samples, topology.rank)
        deliveries = Deliveries(self._stream, log, read_ahead)
        self._deliveries = (
            deliveries if broadcast is None else SharedDeliveries(deliveries, broadcast)
        )
        self._rows_dropped = dropped
        self._read_ahead = read_ahead
        if read_ahead is not None:
            weakref.finalize(self, read_ahead.stop)
        self._course = course(
            planning,
            topology,
            seed=seed,
            fixed_step=fixed_step,
            on_change=on_change,
            count=self._counter.count,
        )
        # Held weakly: an iterator holds its loader, and a loader that is dropped ends its workers.
        self._iterator: weakref.ref[Batches] | None = None
        self.waits = Waits()

    @property
    def finite(self) -> bool:
        """Whether a pass ends."""
        return self._course.finite

    @property
    def micro_batches_per_step(self) -> int:
        """Micro-batches that all ranks together train on in one optimizer step."""
        return self.planning.micro_batches_per_step

    @property
    def batches_per_step(self) -> int:
        """Batches that this rank is given for one optimizer step: its gradient accumulation."""
        return self._course.batches_per_step

    @property
    def rank(self) -> int:
        """Whose share of each step this is; processes that share their batches have the same."""
        return self._topology.rank

    @property
    def world_size(self) -> int:
        """How many ranks share each step."""
        return self._topology.world_size

    @property
    def course(self) -> Course:
        """Where it stands, for adapters that make its batches themselves instead of iterating."""
        return self._course

    @property
    def planning(self) -> Planning | FusedPlanning:
        """What the plan is a function of, but for the position."""
        return self._course.planning

    @property
    def fetch(self) -> Callable[[MicroBatch], Any]:
        """What makes a batch of a micro-batch: the same one, however often and wherever it runs."""
        return self._stream.fetch

    def micro_batches(self) -> Iterator[MicroBatch]:
        """The micro-batches that the next `iter()` of a fresh loader would begin with.

        Nothing is read or moved: this loader goes on as if nobody had asked.
        """
        run = self._course.planning.run(self._course.start(), self._topology)
        try:
            yield from run.batches()
        finally:
            run.close()

    def __iter__(self) -> Iterator[Any]:
        self._course.set_out()
        batches = Batches(self._is_live, self._next)
        self._iterator = weakref.ref(batches, self._stream.rest)
        return batches

    def __len__(self) -> int:
        """How many batches the running pass gives this rank; the next one, between passes.

        A pass that was resumed counts from where it was resumed.
        """
        if not self.finite:
            raise TypeError(
                "an endless loader has no length: train by steps, or set force_finite: true"
            )
        return self._course.length()

    @property
    def pass_ended(self) -> bool:
        """Whether the last batch of a finite pass was handed out, and nothing after it."""
        return self._course.pass_ended

    def set_epoch(self, epoch: int) -> None:
        """Choose the pass that the next `iter()` of a finite loader makes.

        Endless loaders go through their data in one order and ignore it; so does a loader whose
        restored state has not been iterated yet.

        Raises
        ------
        ConfigError
            When it is below 0, or beyond what a state can hold.
        """
        self._course.choose_pass(epoch)

    def leave_pass(self) -> None:
        """Leave the rest of the running pass of a finite loader: what comes next is the next pass.

        For frameworks that cut epochs short: a state that is taken now is the start of the next
        pass, as if `iter()` had begun it. Between passes, and for endless loaders, it does nothing.
        """
        self._course.leave_pass()

    def state_dict(self) -> dict[str, Any]:
        """The position after the last whole step that was handed out, as JSON types.

        The same on every rank. A state taken inside a step is the position at its start: the
        gradient of half a step was never applied.

        Raises
        ------
        PositionError
            When `torch.distributed.checkpoint` asks: see `playhead.integrations.dcp`. When
            Lightning asks, which fetches ahead of training, and nobody follows training. Or when
            ranks have not agreed on a seed yet.
        """
        here = inspect.currentframe()
        asker = None if here is None else here.f_back
        refuse_to_be_taken_apart(asker)
        if not self.follows_training:
            refuse_to_guess(asker)
        if self.batches_into_step:
            warnings.warn(
                "the state was taken inside a step and is the position at its start: the batches"
                " of this step will come again. Save after an optimizer step.",
                stacklevel=2,
            )
        return self._course.state().to_json()

    @property
    def has_position(self) -> bool:
        """Whether `state_dict` has something to say: not before all ranks have drawn a seed."""
        return self._course.has_position

    def follow_training(self) -> None:
        """Let states be those after the last batch that was trained on, not that was handed out.

        For frameworks that fetch batches ahead of training: whoever trains says so with
        `mark_trained`. Batches that were handed out and not trained on come again with the next
        `iter()` of an endless loader.
        """
        self._course.follow_training()

    def mark_trained(self, batches: int = 1) -> None:
        """Count batches as trained on, in the order in which they were handed out.

        Raises
        ------
        PositionError
            When nobody follows training, or fewer were handed out.
        """
        self._course.mark_trained(batches)

    @property
    def follows_training(self) -> bool:
        """Whether states count what was trained on, rather than what was handed out."""
        return self._course.follows_training

    @property
    def batches_ahead(self) -> int:
        """Batches that were handed out and not trained on; 0 where nobody follows training."""
        return self._course.batches_ahead

    @property
    def batches_into_step(self) -> int:
        """Batches beyond the last whole step, that a state taken now leaves out."""
        return self._course.batches_into_step

    def position_after(self, batches: int) -> Position | FusedPosition:
        """The position after so many batches of the present pass, or since the last load.

        For frameworks that fetch ahead of what they train on: count the batches trained, and ask
        for the position after them. Where somebody follows training, an `iter()` of an endless
        loader that goes back to what was trained on counts anew.

        Raises
        ------
        PositionError
            When nothing was iterated yet, or that batch lies too far back or does not exist.
        """
        return self._course.position_after(batches)

    def next_position(self) -> Any:
        """The position of the batch that comes next; a `PositionError` inside a step."""
        return self._course.next_position()

    def rebatch(self, planning: Any) -> None:
        """Go on with other batching options, as a resume with them would; a live iterator too.

        Parameters
        ----------
        planning
            `Loader.planning` with other options.

        Raises
        ------
        PositionError
            Inside a step, of which some batches were handed out already, and ahead of training.
        """
        self._say(*self._course.rebatch(planning))

    def load_state_dict(self, state: Mapping[str, Any], *, reseed: bool = False) -> None:
        """Go on from a state; a live iterator goes on from there too.

        Parameters
        ----------
        state
            What `state_dict` gave, on any number of ranks.
        reseed
            Take the config's seed from the next window on, where the state has another.

        Raises
        ------
        PositionError
            When the state is not one of ours, of another version, of changed data or another seed.
            When Lightning loads it, and nobody follows training.
        TopologyError
            When the world size does not divide the step.
        """
        here = inspect.currentframe()
        if not self.follows_training:
            refuse_to_guess(None if here is None else here.f_back)
        self._say(*self._course.load(state, reseed=reseed))

    def report(self) -> Report:
        """What there is to say of the data, and of what this rank did with them so far."""
        return self._tally.report(
            self.planning,
            self._rows_dropped,
            self.waits,
            self.rank,
            self.world_size,
            dropped=self._counter.dropped,
            kept=None if self._read_ahead is None else self._read_ahead.kept(),
        )

    def measures(self) -> Measures:
        """What was given since the loader was made, in figures; cheap enough to ask every step.

        Of all ranks without asking them, in whole steps: of those that were handed out, or where
        somebody follows training those that were trained on.
        """
        step = self._course.step
        return self._counter.measures(self.planning, self._tally, self.waits, step=step)

    def close(self) -> None:
        """End the workers; iterating again starts new ones."""
        self._deliveries.close()
        self._iterator = None

    def _say(self, *notes: str) -> None:
        for note in notes if self._topology.is_speaker else ():
            warnings.warn(note, stacklevel=3)

    def _is_live(self, batches: Iterator[Any]) -> bool:
        return self._iterator is not None and self._iterator() is batches

    def _next(self) -> Any:
        course = self._course
        # A state may have been loaded while this iterator was alive: it goes on from there.
        course.follow_restored()
        run, number = course.run, course.delivered
        assert run is not None
        with self.waits.timed():
            batch, micro_batch, bad, repeated = self._deliveries.next(run, number)
        self._tally.add(micro_batch, bad, repeated=repeated)
        course.hand_out()
        return batch
