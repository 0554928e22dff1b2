"""Where a loader stands in its data: the pass it goes through, and how far."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, PositionError
from playhead.loader.agreement import agree_on_plan
from playhead.loader.ranks import check_shares, has_process_group
from playhead.loader.restoring import restore
from playhead.loader.seeds import resolve_seed
from playhead.loader.trained import Trained

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playhead.loader.fusion import FusedPlanning, FusedRun
    from playhead.loader.ranks import Topology
    from playhead.loader.run import Planning, Run
    from playhead.loader.trained import Place
    from playhead.plan.resume import OnChange

__all__ = ["Course"]

_LAST_PASS = 2**31 - 1


class Course:
    """The way of a loader through its data; what is fetched on it is no matter here.

    Parameters
    ----------
    planning
        What the plan is a function of.
    topology
        Whose share of each step is handed out.
    seed
        An integer, `randomized` or `trng`.
    fixed_step
        Whether `planning.micro_batches_per_step` was asked for, or follows the world size.
    on_change
        What a leaf whose data changed means on resume: `error`, or `restart_pass`.
    count
        Told of every batch that states go beyond from then on: its run, and how many of that
        run's batches come up to it.
    """

    def __init__(
        self,
        planning: Planning | FusedPlanning,
        topology: Topology,
        *,
        seed: int | str,
        fixed_step: bool,
        on_change: OnChange,
        count: Callable[[Run | FusedRun, int], None],
    ) -> None:
        # A position and a run are always those of the planning, one config's or several ones'.
        self.planning: Any = planning
        self.run: Run | FusedRun | None = None
        self.delivered = 0
        self._topology = topology
        self._asked_seed = seed
        self._drawn_seed = seed if isinstance(seed, int) else None
        self._fixed_step = fixed_step
        self._on_change: OnChange = on_change
        self._count = count
        self._restored: Any = None
        self._trained: Trained | None = None
        self._run_length: int | None = None
        self._next_pass = self._steps = 0
        self._chose_pass = self._agreed = False

    @property
    def finite(self) -> bool:
        """Whether a pass ends."""
        return self.planning.finite

    @property
    def batches_per_step(self) -> int:
        """Batches of this rank in one optimizer step."""
        return self._topology.batches_per_step(self.planning.micro_batches_per_step)

    @property
    def is_restored(self) -> bool:
        """Whether a state was loaded from which nobody has gone on yet."""
        return self._restored is not None

    @property
    def has_position(self) -> bool:
        """Whether there is a position: not before the first batch where ranks draw a seed then."""
        return self._drawn_seed is not None or self._topology.is_alone

    @property
    def has_begun(self) -> bool:
        """Whether it left the beginning of the data, or was told where to begin."""
        return self.run is not None or self.is_restored

    @property
    def batches_ahead(self) -> int:
        """Batches that were handed out and not trained on; 0 where nobody follows training."""
        return 0 if self._trained is None else self._trained.ahead

    @property
    def batches_into_step(self) -> int:
        """Batches beyond the last whole step, up to where a state goes that is taken now."""
        reached = None if self.is_restored else self._reached()
        return 0 if reached is None else reached[1] % self.batches_per_step

    @property
    def step(self) -> int:
        """Optimizer steps since the start of training, as a state has it that is taken now."""
        if self.is_restored:
            return self._restored.step
        reached = self._reached()
        if reached is None:
            return 0
        run, batches = reached
        return run.start.step + batches // self.batches_per_step

    @property
    def pass_ended(self) -> bool:
        """Whether the last batch of a pass was handed out, and nothing after it."""
        return self.run is not None and not self.is_restored and self._under_way() is None

    def length(self) -> int:
        """How many batches the running finite pass gives this rank; the next one, between them."""
        if self.is_restored:
            return self.planning.steps_left(self._restored) * self.batches_per_step
        run = self._under_way()
        if run is not None:
            if self._run_length is None:
                self._run_length = run.count()
            return self._run_length
        return self.planning.steps_left(self.fresh_position()) * self.batches_per_step

    def length_of_first(self) -> int:
        """How many batches the first of finite passes gives this rank, wherever this stands."""
        return self.planning.steps_left(self._position_of_pass(0, None)) * self.batches_per_step

    def choose_pass(self, number: int) -> None:
        """Choose the pass that comes next; see `Loader.set_epoch`."""
        try:
            pass_ = operator.index(number)
        except TypeError:
            pass_ = -1
        if not 0 <= pass_ <= _LAST_PASS:
            raise ConfigError(
                f"there is no pass {number!r}", fix=f"Use a whole number from 0 to {_LAST_PASS:,}"
            )
        if not self.is_restored:
            self._next_pass = pass_
            self._chose_pass = True

    def leave_pass(self) -> None:
        """Go on with the next pass; see `Loader.leave_pass`."""
        if not self.finite or self.is_restored or not self.delivered:
            return
        if self._under_way() is None and not self.batches_ahead:
            return
        position = self._reached_position()
        self._steps = position.step
        self._restored = self._position_of_pass(self._next_pass, position)
        if self._trained is not None:
            self._trained.restart()

    def set_out(self) -> None:
        """Begin what a new iterator is to hand out."""
        if self._under_way() is not None:
            # The last batches of a pass that came to its end may still be trained on.
            self.leave_pass()
        if self.is_restored:
            self.follow_restored()
        elif self.run is None or (self.finite and not self._is_begun()):
            self._begin(self.fresh_position())
        elif self._trained is not None and self._trained.ahead and not self.finite:
            self._begin(self._reached_position())
            self._trained.restart()

    def follow_restored(self) -> None:
        """Go on from a state that was loaded, if one was."""
        if self.is_restored:
            self._begin(self._restored)
            self._restored = None

    def hand_out(self) -> None:
        """Count a batch of the run as handed out."""
        run = self.run
        assert run is not None
        self.delivered += 1
        if run.is_step_start(self.delivered):
            self._steps += 1
        needed = self.delivered
        if self._trained is None:
            self._count(run, self.delivered)
        else:
            self._trained.hand_out(run, self.delivered)
            reached = self._reached()
            needed = reached[1] if reached is not None and reached[0] is run else 0
        run.forget_before(needed)

    def follow_training(self) -> None:
        """Let states go as far as training; see `Loader.follow_training`."""
        if self._trained is None:
            self._trained = Trained(None if self.run is None else (self.run, self.delivered))

    def mark_trained(self, batches: int) -> None:
        """Count batches as trained on; see `Loader.mark_trained`."""
        if self._trained is None:
            raise PositionError(
                "batches are marked as trained on, and nobody follows training",
                fix="Call follow_training() before the first batch",
            )
        for place in self._trained.mark(batches):
            self._count(*place)

    @property
    def follows_training(self) -> bool:
        """Whether states go as far as training, rather than as far as batches were handed out."""
        return self._trained is not None

    def start(self) -> Any:
        """The position that the next `iter()` of a fresh loader begins with."""
        return self._restored if self.is_restored else self.fresh_position()

    def state(self) -> Any:
        """The position that a state holds which is taken now.

        Raises
        ------
        PositionError
            Where ranks have not agreed on a seed yet.
        """
        if self.is_restored:
            return self._restored
        if self.run is not None:
            return self._reached_position()
        if not self.has_position:
            raise PositionError(
                f"the seed {self._asked_seed!r} is drawn when all ranks begin to iterate",
                fix="Save after the first batch, or give an integer seed",
            )
        return self.fresh_position()

    def position_after(self, batches: int) -> Any:
        """The position after so many batches of the run; see `Loader.position_after`."""
        if self.run is None or self.is_restored:
            raise PositionError("no batch has been asked for yet", fix="Iterate first")
        return self.run.position_after(batches)

    def next_position(self) -> Any:
        """The position of the batch that comes next; a `PositionError` inside a step."""
        if self.is_restored:
            return self._restored
        run = self._under_way()
        if run is not None and not run.is_step_start(self.delivered):
            raise PositionError("batches cannot change inside a step", fix="Wait for its end")
        return self.fresh_position() if run is None else run.position_after(self.delivered)

    def fresh_position(self) -> Any:
        """The position at the start of the next pass."""
        before = None if self.run is None else self.run.position_after(self.delivered)
        return self._position_of_pass(self._next_pass, before)

    def rebatch(self, planning: Any) -> tuple[str, ...]:
        """Go on with other batching options, and return what people should be told of it.

        Raises
        ------
        PositionError
            Inside a step, of which some batches were handed out already, and ahead of training.
        """
        if self.batches_ahead:
            raise PositionError(
                f"batches cannot change while {self.batches_ahead} that were handed out are not"
                " trained on",
                fix="Train on them first",
            )
        notes: tuple[str, ...] = ()
        if self.is_restored or self._under_way() is not None:
            begin = self.next_position()
            self._restored, notes = planning.resume(begin, reseed=None, on_change="error")
        self.planning, self._agreed = planning, False
        if self._trained is not None:
            self._trained.restart()
        return notes

    def load(self, state: Mapping[str, Any], *, reseed: bool) -> tuple[str, ...]:
        """Go on from a state; see `Loader.load_state_dict`. Returns what people should be told."""
        self.planning, position, notes = restore(
            state,
            self.planning,
            self._topology,
            asked_seed=self._asked_seed,
            reseed=reseed,
            fixed_step=self._fixed_step,
            on_change=self._on_change,
        )
        self._drawn_seed = position.latest_seed
        if self.finite and self.planning.steps_left(position) == 0:
            self._steps = position.step
            position = self._position_of_pass(position.pass_ + 1, position)
        self._restored = position
        self._agreed = False
        if self._trained is not None:
            self._trained.restart()
        return notes

    def _begin(self, position: Any) -> None:
        if not self._agreed and not self._topology.is_alone and has_process_group():
            check_shares(self._topology)
            agree_on_plan(self.planning, position)
        self._agreed = True
        if self.run is not None:
            self.run.close()
        self._steps = position.step
        self._chose_pass = False
        self.run = self.planning.run(position, self._topology)
        self._run_length = None
        self._next_pass = position.pass_ + 1 if self.finite else 0
        self.delivered = 0

    def _position_of_pass(self, pass_: int, before: Any) -> Any:
        if self._drawn_seed is None:
            self._drawn_seed = resolve_seed(self._asked_seed, self._topology)
        return self.planning.start(
            seed=self._drawn_seed, pass_=pass_, step=self._steps, before=before
        )

    def _reached(self) -> Place | None:
        if self._trained is not None and self._trained.place is not None:
            return self._trained.place
        return None if self.run is None else (self.run, self.delivered)

    def _reached_position(self) -> Any:
        reached = self._reached()
        assert reached is not None, "nothing was handed out"
        run, batches = reached
        return run.position_after(batches)

    def _is_begun(self) -> bool:
        """Whether a pass was begun, and nobody has asked for a batch of it or for another pass."""
        return self.run is not None and not self.delivered and not self._chose_pass

    def _under_way(self) -> Run | FusedRun | None:
        """The run of a pass that was begun and has not ended."""
        run = self.run
        over = run is not None and self.finite and not run.has_batch(self.delivered)
        return None if over else run
