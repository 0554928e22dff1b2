"""`StatefulDataLoader` of torchdata over the micro-batches of a loader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils.data import Dataset, Sampler

from playhead.errors import ConfigError, MissingExtraError, PositionError
from playhead.loader.worker_exit import end_in_order

try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError as error:
    raise MissingExtraError(
        "playhead.integrations.torchdata needs torchdata, which is not installed",
        fix="Run `pip install 'playhead[torchdata]'`",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.loader import Loader
    from playhead.plan import MicroBatch

__all__ = ["MicroBatchSampler", "MicroBatches", "position_of", "stateful_dataloader"]

_KEYS = {"position", "batches", "ranks"}
# Names of torchdata in its states: of one process at the top, of several in a snapshot.
_SAMPLER, _FINISHED, _YIELDED = "_index_sampler_state", "_iterator_finished", "_num_yielded"
_SNAPSHOT, _OF_MAIN, _STEP = "_snapshot", "_main_snapshot", "_snapshot_step"
_SINCE = "_steps_since_snapshot"


class MicroBatches(Dataset[Any]):
    """A map from micro-batches to batches.

    Parameters
    ----------
    fetch
        What makes a batch: `Loader.fetch`.
    """

    def __init__(self, fetch: Callable[[MicroBatch], Any]) -> None:
        self._fetch = fetch

    def __getitem__(self, index: MicroBatch) -> Any:
        return self._fetch(index)


class MicroBatchSampler(Sampler["MicroBatch"]):
    """The micro-batches of one rank in order, with a state that says where one is among them.

    Its state is the position of the loader, how many batches of the running step this rank was
    given since, and how many ranks share a step. torchdata asks for it after each micro-batch that
    it sends to a worker, and keeps it until the batch of that is handed out.

    Parameters
    ----------
    loader
        A loader that nobody iterates; it goes where this sampler goes.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._skipped = 0
        # The position of a step is made once, not for each of its batches.
        self._of_step: tuple[Any, int, dict[str, Any]] | None = None

    def __iter__(self) -> Iterator[MicroBatch]:
        course = self._loader.course
        course.set_out()
        run = course.run
        assert run is not None
        for _ in range(self._skipped):
            course.hand_out()
        self._skipped = 0
        for micro_batch in run.batches(course.delivered):
            if course.is_restored or course.run is not run:
                # A state was loaded: an iterator of before has nothing more to give.
                return
            course.hand_out()
            yield micro_batch

    def __len__(self) -> int:
        """How many micro-batches the running pass gives this rank; the next one, between passes."""
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Choose the pass that comes next, of a loader that is finite; see `Loader.set_epoch`."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where this is, as JSON types; `position` is None where no seed has been drawn yet."""
        loader, course = self._loader, self._loader.course
        into = self._skipped or course.batches_into_step
        state: dict[str, Any] = {"batches": into, "ranks": loader.world_size, "position": None}
        if not course.has_position:
            return state
        step = course.delivered - into
        known = self._of_step
        if known is None or course.is_restored or known[:2] != (course.run, step):
            known = self._of_step = course.run, step, course.state().to_json()
        return {**state, "position": known[2]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where a sampler was.

        Raises
        ------
        PositionError
            When it is no state of a sampler, one from inside a step of other ranks, or one that the
            loader cannot go on from.
        """
        if not isinstance(state_dict, Mapping) or not state_dict.keys() >= _KEYS:  # pyright: ignore[reportUnnecessaryIsInstance]  # a state comes from anywhere
            raise _unknown()
        into, ranks = int(state_dict["batches"]), int(state_dict["ranks"])
        if into and ranks != self._loader.world_size:
            raise PositionError(
                f"this state was taken {into} batches into a step that {ranks} ranks shared, and"
                f" now there are {self._loader.world_size}",
                fix="Save after a whole step, or load position_of(state) into the loader: the step"
                " is made again",
            )
        if state_dict["position"] is not None:
            self._loader.load_state_dict(state_dict["position"])
        elif self._loader.course.has_begun:
            raise PositionError(
                "this state was taken before the first batch, with its seed yet to be drawn, and"
                " the loader has begun",
                fix="Load it into a StatefulDataLoader over a loader that nobody has iterated",
            )
        self._skipped = into

    def turn_back(self, state: Mapping[str, Any], *, handed_out: int) -> None:
        """Let the next iterator go on after what a state says, or of a finite loader, a pass later.

        Parameters
        ----------
        state
            A state of this sampler.
        handed_out
            Batches that the iterator before handed out: of a pass of which there are none, it is
            not left.
        """
        self.load_state_dict(state)
        if self._loader.finite and handed_out:
            self._skipped = 0
            course = self._loader.course
            course.follow_restored()
            course.choose_pass(course.fresh_position().pass_)
            course.set_out()


class _OverMicroBatches(StatefulDataLoader[Any]):
    """A `StatefulDataLoader` whose state may be loaded with other workers and on other ranks."""

    sampler: MicroBatchSampler

    def __iter__(self) -> Any:
        if self._iterator is not None and not self._initial_iter_for_state_dict:
            state = self.state_dict()
            if not state[_FINISHED]:
                # Micro-batches that were sent to workers and did not come back are not lost.
                handed_out = state.get(_YIELDED) or state.get(_SNAPSHOT, {}).get(_STEP, 0)
                self.sampler.turn_back(_of_sampler(state), handed_out=handed_out)
                super().load_state_dict({})
        return super().__iter__()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state, of any number of workers and ranks; from the start of its step."""
        found = _of_sampler(state_dict)
        if found["batches"]:
            warnings.warn(
                "the state was taken inside a step, and training goes on at its start: the batches"
                " of this step come again. Save after an optimizer step.",
                stacklevel=2,
            )
        # Workers have no state, and what was in flight is sent again.
        super().load_state_dict({})
        self.sampler.load_state_dict({**found, "batches": 0})


def stateful_dataloader(
    loader: Loader, *, num_workers: int = 0, **options: Any
) -> StatefulDataLoader[Any]:
    """Make a `StatefulDataLoader` of a loader: micro-batches for its sampler, batches for its data.

    It is for code that asks for one; the loader itself does more. The loader is not to be iterated
    any more, nor are its own workers used.

    Parameters
    ----------
    loader
        What `playhead.dataloader` made.
    num_workers
        Worker processes; 0 makes the batches in this process.
    **options
        Further options of `StatefulDataLoader`, such as `prefetch_factor`, `pin_memory` or
        `persistent_workers`.

    Returns
    -------
    StatefulDataLoader
        With a state that may be loaded on any number of workers, and ranks as `Loader` may.

    Raises
    ------
    ConfigError
        When an option would change what a batch is, or the loader leaves out samples that cannot
        be read, which must be counted by the loader itself.
    """
    own = {"dataset", "sampler", "batch_sampler", "batch_size", "shuffle", "drop_last"}
    own |= {"collate_fn", "in_order", "generator", "snapshot_every_n_steps"}
    refused = sorted(own & options.keys())
    if refused:
        raise ConfigError(
            f"{', '.join(refused)} cannot be given: batches and their states are the loader's",
            fix="Leave it out, and give playhead.dataloader what batches should be",
        )
    if getattr(loader.fetch, "is_fault_tolerant", False):
        raise ConfigError(
            "with fault_tolerant_audio_loading samples are left out, which torchdata cannot count",
            fix="Iterate the loader itself, or set fault_tolerant_audio_loading: false",
        )
    with warnings.catch_warnings():
        # torchdata calls what newer versions of torch warn of, and nobody here can help it.
        warnings.filterwarnings("ignore", "'set_vital' is deprecated")
        return _OverMicroBatches(
            MicroBatches(loader.fetch),
            sampler=MicroBatchSampler(loader),
            batch_size=None,
            collate_fn=_as_is,
            num_workers=num_workers,
            worker_init_fn=options.pop("worker_init_fn", end_in_order),
            # Its base seed would be drawn from the global generator: then dropout would depend on
            # how often a run was restarted.
            generator=torch.Generator(),
            **options,
        )


def position_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The position in a state of `StatefulDataLoader`, as `Loader.load_state_dict` takes it.

    Parameters
    ----------
    state
        What `state_dict` of a `StatefulDataLoader` gave, on any rank, with any number of workers.

    Returns
    -------
    dict
        The position after the last whole step; the same on every rank.

    Raises
    ------
    PositionError
        When there is none.
    """
    position = _of_sampler(state)["position"]
    if position is None:
        raise PositionError(
            "this state was taken before the first batch, and its seed is drawn at the first",
            fix="Begin anew",
        )
    return position


def _of_sampler(state: Any) -> Mapping[str, Any]:
    """The state of the sampler in one of torchdata."""
    if not isinstance(state, Mapping):
        raise _unknown()
    if state.get(_SINCE):
        raise PositionError(
            f"this state was taken {state[_SINCE]} batches after the last that was noted down",
            fix="Leave snapshot_every_n_steps at 1",
        )
    of_main = state.get(_SNAPSHOT, {}).get(_OF_MAIN, {}) if _SNAPSHOT in state else state
    found = of_main.get(_SAMPLER)
    if not isinstance(found, Mapping) or not found.keys() >= _KEYS:
        raise _unknown()
    return cast("Mapping[str, Any]", found)


def _unknown() -> PositionError:
    return PositionError(
        "this is not the state of a StatefulDataLoader over the micro-batches of Playhead",
        fix="Load what its state_dict() gave. A state of Loader goes into the loader:"
        " loader.load_state_dict(state), before stateful_dataloader(loader)",
    )


def _as_is(batch: Any) -> Any:
    return batch
