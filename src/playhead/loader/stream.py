"""One long-lived torch DataLoader that turns micro-batches into batches, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils.pin_memory import pin_memory

from playhead.errors import PlayheadError, WorkerError
from playhead.loader.unsent import answer_for_unsent
from playhead.loader.worker_exit import end_in_order
from playhead.storage.retries import GaveUpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.plan import MicroBatch

__all__ = ["Stream", "Workers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """How batches are made: here or in worker processes. Nothing of it enters the plan."""

    num_workers: int = 0
    """Worker processes; 0 makes the batches in this process."""
    prefetch_factor: int = 2
    """Batches that each worker has in hand ahead of time."""
    pin_memory: bool = False
    """Copy tensors to page-locked memory."""
    start_method: str | None = None
    """`fork`, `spawn` or `forkserver`; None is the platform's default."""
    persistent: bool = True
    """Whether they live until the loader is closed, or end with each pass."""


class _Failure:
    """An error on its way out of a worker; torch would wrap it in a remote traceback."""

    def __init__(self, error: PlayheadError | GaveUpError) -> None:
        self.error = error


def _raised(batch: Any) -> Any:
    if isinstance(batch, _Failure):
        raise batch.error
    return batch


class _Fetched(Dataset[Any]):
    """A map from micro-batches to batches, as a torch DataLoader wants it."""

    def __init__(self, fetch: Callable[[MicroBatch], Any]) -> None:
        self._fetch = fetch

    def __getitem__(self, micro_batch: MicroBatch) -> Any:
        try:
            return self._fetch(micro_batch)
        except (PlayheadError, GaveUpError) as error:
            return _Failure(error)
        except StopIteration as error:
            # Let through, it would be taken for the end of the data.
            message = f"the dataset raised StopIteration: {error}"
            raise RuntimeError(message) from error


class _Feed:
    """What the DataLoader takes for its sampler: the micro-batches that are due now."""

    def __init__(self) -> None:
        self.source: Callable[[], Iterator[MicroBatch]] = lambda: iter(())

    def __iter__(self) -> Iterator[MicroBatch]:
        return self.source()


def _as_is(batch: Any) -> Any:
    return batch


def _set_up(worker: int) -> None:
    """Prepare a worker process."""
    end_in_order(worker)
    answer_for_unsent(_Failure)


class Stream:
    """Turns micro-batches into batches with one DataLoader, whose workers may outlive every seek.

    Parameters
    ----------
    fetch
        What makes a batch; pickled to workers that are not forked.
    workers
        How many processes do so.
    """

    def __init__(self, fetch: Callable[[MicroBatch], Any], workers: Workers) -> None:
        self._fetch = fetch
        self._workers = workers
        self._feed = _Feed()
        self._loader: DataLoader[Any] | None = None
        self._batches: Iterator[Any] | None = None

    @property
    def fetch(self) -> Callable[[MicroBatch], Any]:
        """What makes a batch."""
        return self._fetch

    @property
    def workers(self) -> Workers:
        """How many processes do so."""
        return self._workers

    def seek(self, source: Callable[[], Iterator[MicroBatch]], batches: int | None = None) -> None:
        """Go on with what `source` gives; what is in flight is thrown away.

        Parameters
        ----------
        source
            Gives the micro-batches.
        batches
            How many it gives, where that is known: no more workers are started.

        Raises
        ------
        WorkerError
            When a worker process died since the last batch.
        """
        self._feed.source = source
        self.rest()
        if self._loader is None:
            most = self._workers.num_workers
            self._loader = self._open(most if batches is None else min(most, batches))
        try:
            self._batches = iter(self._loader)
        except RuntimeError as error:
            self._tell_of_death(error)
            raise

    def rest(self, _: Any = None) -> None:
        """End the workers that are to end with a pass; called when nobody goes on with it."""
        if self._workers.num_workers and not self._workers.persistent:
            self._loader = None
            self._batches = iter(())

    def next(self) -> Any:
        """The next batch.

        Raises
        ------
        StopIteration
            At the end of the source.
        PlayheadError, GaveUpError
            What went wrong in a worker.
        WorkerError
            When a worker process died.
        """
        assert self._batches is not None
        try:
            batch = next(self._batches)
        except RuntimeError as error:
            self._tell_of_death(error)
            raise
        return _raised(batch)

    def make_here(self, micro_batch: MicroBatch) -> Any:
        """Make a batch in this process, out of turn; it is the same as a worker's.

        Raises
        ------
        PlayheadError
            What went wrong.
        """
        batch = _raised(_Fetched(self._fetch)[micro_batch])
        if self._workers.pin_memory and torch.cuda.is_available():
            batch = pin_memory(batch)
        return batch

    def close(self) -> None:
        """End the workers."""
        self._batches = None
        self._loader = None

    def _tell_of_death(self, error: RuntimeError) -> None:
        """Raise a `WorkerError` where torch says that a worker died."""
        if "exited unexpectedly" not in str(error) and "killed by signal" not in str(error):
            return
        self.close()
        raise WorkerError(
            f"a worker process died: {str(error).splitlines()[0]}",
            fix="If memory ran out, use fewer workers or a smaller prefetch_factor;"
            " iterating again goes on from the same batch",
        ) from error

    def _open(self, num_workers: int) -> DataLoader[Any]:
        parallel = num_workers > 0
        return DataLoader(
            _Fetched(self._fetch),
            sampler=self._feed,  # pyright: ignore[reportArgumentType]  (any iterable will do)
            batch_size=None,
            collate_fn=_as_is,
            num_workers=num_workers,
            prefetch_factor=self._workers.prefetch_factor if parallel else None,
            persistent_workers=parallel and self._workers.persistent,
            pin_memory=self._workers.pin_memory,
            multiprocessing_context=self._workers.start_method if parallel else None,
            worker_init_fn=_set_up,
            # Its base seed would be drawn from the global generator: then dropout would depend on
            # how often a run was restarted.
            generator=torch.Generator(),
        )
