"""The loader: an iterable of batches whose whole state is a position."""

from __future__ import annotations

import operator
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, PositionError
from playhead.loader.agreement import agree_on_plan
from playhead.loader.bad_log import BadLog
from playhead.loader.batches import Batches
from playhead.loader.deliveries import Deliveries
from playhead.loader.ranks import has_process_group
from playhead.loader.report import Tally
from playhead.loader.seeds import resolve_seed
from playhead.loader.stream import Stream
from playhead.loader.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from playhead.loader.fusion import FusedPlanning, FusedRun
    from playhead.loader.fusion_position import FusedPosition
    from playhead.loader.ranks import Topology
    from playhead.loader.read_ahead import ReadAhead
    from playhead.loader.report import Report
    from playhead.loader.run import Planning, Run
    from playhead.loader.stream import Workers
    from playhead.plan import MicroBatch, Position
    from playhead.plan.resume import OnChange

__all__ = ["Loader"]

_LAST_PASS = 2**31 - 1


class Loader:
    """An iterable of batches that can be stopped anywhere and resumed exactly.

    Made by `playhead.dataloader`. A training loader is endless, and a second `iter()` goes on
    where the first one stopped. A finite loader starts its next pass with every `iter()`. Either
    way a new iterator ends the one before it.

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
    ) -> None:
        topology.batches_per_step(planning.micro_batches_per_step)
        # A position and a run are always those of the planning, one config's or several ones'.
        self._planning: Any = planning
        self._topology = topology
        self._asked_seed = seed
        self._drawn_seed = seed if isinstance(seed, int) else None
        self._fixed_step = fixed_step
        self._on_change: OnChange = on_change
        self._stream = Stream(fetch, workers)
        self._tally = Tally(len(planning.leaves))
        log = None if bad_samples is None else BadLog(bad_samples, topology.rank)
        self._deliveries = Deliveries(self._stream, self._tally, log)
        self._rows_dropped = dropped
        self._read_ahead = read_ahead
        if read_ahead is not None:
            weakref.finalize(self, read_ahead.stop)
        self._run: Run | FusedRun | None = None
        self._restored: Position | FusedPosition | None = None
        self._next_pass = self._delivered = self._steps = 0
        self._flowing = self._agreed = False
        # Held weakly: an iterator holds its loader, and a loader that is dropped ends its workers.
        self._iterator: weakref.ref[Batches] | None = None
        self.waits = Waits()

    @property
    def finite(self) -> bool:
        """Whether a pass ends."""
        return self._planning.finite

    @property
    def micro_batches_per_step(self) -> int:
        """Micro-batches that all ranks together train on in one optimizer step."""
        return self._planning.micro_batches_per_step

    @property
    def batches_per_step(self) -> int:
        """Batches that this rank is given for one optimizer step: its gradient accumulation."""
        return self._topology.batches_per_step(self.micro_batches_per_step)

    @property
    def rank(self) -> int:
        """Whose share of each step this is."""
        return self._topology.rank

    @property
    def world_size(self) -> int:
        """How many ranks share each step."""
        return self._topology.world_size

    @property
    def planning(self) -> Planning | FusedPlanning:
        """What the plan is a function of, but for the position."""
        return self._planning

    @property
    def fetch(self) -> Callable[[MicroBatch], Any]:
        """What makes a batch of a micro-batch: the same one, however often and wherever it runs."""
        return self._stream.fetch

    def micro_batches(self) -> Iterator[MicroBatch]:
        """The micro-batches that the next `iter()` of a fresh loader would begin with.

        Nothing is read or moved: this loader goes on as if nobody had asked.
        """
        position = self._fresh_position() if self._restored is None else self._restored
        run = self._planning.run(position, self._topology)
        try:
            yield from run.batches()
        finally:
            run.close()

    def __iter__(self) -> Iterator[Any]:
        if self._restored is not None:
            self._begin(self._restored)
            self._restored = None
        elif self._run is None or self.finite:
            self._begin(self._fresh_position())
        batches = Batches(self._is_live, self._next)
        self._iterator = weakref.ref(batches)
        return batches

    def __len__(self) -> int:
        """How many batches the running pass gives this rank; the next one, between passes.

        A pass that was resumed counts from where it was resumed.
        """
        if not self.finite:
            raise TypeError(
                "an endless loader has no length: train by steps, or set force_finite: true"
            )
        if self._restored is not None:
            return self._planning.steps_left(self._restored) * self.batches_per_step
        if self._run is not None and self._delivered < self._run.count():
            return self._run.count()
        return self._planning.steps_left(self._fresh_position()) * self.batches_per_step

    def set_epoch(self, epoch: int) -> None:
        """Choose the pass that the next `iter()` of a finite loader makes.

        Endless loaders go through their data in one order and ignore it; so does a loader whose
        restored state has not been iterated yet.

        Raises
        ------
        ConfigError
            When it is below 0, or beyond what a state can hold.
        """
        try:
            number = operator.index(epoch)
        except TypeError:
            number = -1
        if not 0 <= number <= _LAST_PASS:
            raise ConfigError(
                f"there is no pass {epoch!r}", fix=f"Use a whole number from 0 to {_LAST_PASS:,}"
            )
        if self._restored is None:
            self._next_pass = number

    def state_dict(self) -> dict[str, Any]:
        """The position after the last whole step that was handed out, as JSON types.

        The same on every rank. A state taken inside a step is the position at its start: the
        gradient of half a step was never applied.
        """
        if self._restored is not None:
            return self._restored.to_json()
        if self._run is None:
            if self._drawn_seed is None and self.world_size > 1:
                raise PositionError(
                    f"the seed {self._asked_seed!r} is drawn when all ranks begin to iterate",
                    fix="Save after the first batch, or give an integer seed",
                )
            return self._fresh_position().to_json()
        if not self._run.is_step_start(self._delivered):
            warnings.warn(
                "the state was taken inside a step and is the position at its start: the batches"
                " of this step will come again. Save after an optimizer step.",
                stacklevel=2,
            )
        return self._run.position_after(self._delivered).to_json()

    def position_after(self, batches: int) -> Position | FusedPosition:
        """The position after so many batches of the present pass, or since the last load.

        For frameworks that fetch ahead of what they train on: count the batches trained, and ask
        for the position after them.

        Raises
        ------
        PositionError
            When nothing was iterated yet, or that batch lies too far back or does not exist.
        """
        if self._run is None or self._restored is not None:
            raise PositionError("no batch has been asked for yet", fix="Iterate first")
        return self._run.position_after(batches)

    def next_position(self) -> Any:
        """The position of the batch that comes next; a `PositionError` inside a step."""
        if self._restored is not None:
            return self._restored
        run = self._under_way()
        if run is not None and not run.is_step_start(self._delivered):
            raise PositionError("batches cannot change inside a step", fix="Wait for its end")
        return self._fresh_position() if run is None else run.position_after(self._delivered)

    def rebatch(self, planning: Any) -> None:
        """Go on with other batching options, as a resume with them would; a live iterator too.

        Parameters
        ----------
        planning
            `Loader.planning` with other options.

        Raises
        ------
        PositionError
            Inside a step, of which some batches were handed out already.
        """
        if self._restored is not None or self._under_way() is not None:
            begin = self.next_position()
            self._restored, notes = planning.resume(begin, reseed=None, on_change="error")
            self._say(*notes)
        self._planning, self._agreed = planning, False

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
        TopologyError
            When the world size does not divide the step.
        """
        position = self._planning.position_of(state)
        planning = self._planning.with_step(self._step_of(position)).as_saved(position)
        new_seed: int | None = None
        if reseed:
            new_seed = resolve_seed(self._asked_seed, self._topology)
        elif isinstance(self._asked_seed, int) and position.latest_seed != self._asked_seed:
            raise PositionError(
                f"the state has seed {position.latest_seed} and the config has {self._asked_seed}",
                fix="Use the state's seed, or load with reseed=True to change it from the next"
                " window on",
            )
        position, notes = planning.resume(position, reseed=new_seed, on_change=self._on_change)
        self._planning = planning
        self._drawn_seed = position.latest_seed
        self._say(*notes)
        if self.finite and self._planning.steps_left(position) == 0:
            self._steps = position.step
            position = self._position_of_pass(position.pass_ + 1, position)
        self._restored = position
        self._agreed = False

    def report(self) -> Report:
        """What there is to say of the data, and of what this rank did with them so far."""
        if self._run is not None:
            self._tally.enter(self._run, self._delivered)
        kept = None if self._read_ahead is None else self._read_ahead.kept()
        return self._tally.report(
            self._planning, self._rows_dropped, self.waits, self.rank, self.world_size, kept=kept
        )

    def close(self) -> None:
        """End the workers; iterating again starts new ones."""
        self._stream.close()
        if self._read_ahead is not None:
            self._read_ahead.stop()
        self._flowing = False
        self._iterator = None

    def _step_of(self, position: Position | FusedPosition) -> int:
        """The present size of a step; the state's where none was asked for."""
        saved = position.micro_batches_per_step
        if self._fixed_step or saved == self.micro_batches_per_step:
            return self.micro_batches_per_step
        if saved % self._topology.world_size == 0:
            return saved
        self._say(
            f"the state has {saved} micro-batches a step, which {self._topology.world_size} ranks"
            f" cannot share: a step is now {self._topology.world_size}. To keep the step, use a"
            " world size that divides it, and set micro_batches_per_step in the config."
        )
        return self._topology.world_size

    def _fresh_position(self) -> Any:
        before = None if self._run is None else self._run.position_after(self._delivered)
        return self._position_of_pass(self._next_pass, before)

    def _position_of_pass(self, pass_: int, before: Position | FusedPosition | None) -> Any:
        if self._drawn_seed is None:
            self._drawn_seed = resolve_seed(self._asked_seed, self._topology)
        return self._planning.start(
            seed=self._drawn_seed, pass_=pass_, step=self._steps, before=before
        )

    def _begin(self, position: Position | FusedPosition) -> None:
        if not self._agreed and self._topology.world_size > 1 and has_process_group():
            agree_on_plan(self._planning, position)
        self._agreed = True
        if self._run is not None:
            self._tally.enter(self._run, self._delivered)
            self._run.close()
        self._steps = position.step
        self._run = self._planning.run(position, self._topology)
        self._next_pass = position.pass_ + 1 if self.finite else 0
        self._delivered = 0
        self._flowing = False

    def _say(self, *notes: str) -> None:
        for note in notes if self._topology.rank == 0 else ():
            warnings.warn(note, stacklevel=3)

    def _under_way(self) -> Run | FusedRun | None:
        """The run of a pass that was begun and has not ended."""
        run = self._run
        over = run is not None and self.finite and self._delivered >= run.count()
        return None if over else run

    def _is_live(self, batches: Iterator[Any]) -> bool:
        return self._iterator is not None and self._iterator() is batches

    def _next(self) -> Any:
        if self._restored is not None:
            # A state was loaded while this iterator was alive: it goes on from there.
            self._begin(self._restored)
            self._restored = None
        run = self._run
        assert run is not None
        if not self._flowing:
            self._deliveries.seek(run, self._delivered)
            self._flowing = True
        if self._read_ahead is not None:
            self._read_ahead.follow(run.windows_ahead(self._delivered))
        try:
            with self.waits.timed():
                batch = self._deliveries.next(run, self._delivered)
        except StopIteration:
            raise
        except BaseException:
            # Whoever goes on after an error gets the batch that failed, not the one after it.
            self._flowing = False
            raise
        self._delivered += 1
        if run.is_step_start(self._delivered):
            self._steps += 1
        run.forget_before(self._delivered)
        return batch
