"""Batches that one process reads and its peers are sent."""

from __future__ import annotations

import hashlib
import json
import pickle
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import NotSupportedError, RankMismatchError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.loader.deliveries import Deliveries, Delivery
    from playhead.loader.fusion import FusedRun
    from playhead.loader.peer_group import PeerGroup
    from playhead.loader.run import Run
    from playhead.plan import MicroBatch

__all__ = ["SharedDeliveries"]


class _Failure(NamedTuple):
    error: Exception
    trace: str


class _Message(NamedTuple):
    """What the one that reads says of a batch."""

    run: str
    """Which run it is of, by a digest of the position that it began at."""
    batch: int
    """Its number in the run."""
    delivery: Delivery | None = None
    """The batch; None at the end of the run."""
    failure: _Failure | None = None
    """What went wrong with it."""


class SharedDeliveries:
    """Takes batches where they are read, and sends them on; receives them elsewhere.

    Parameters
    ----------
    deliveries
        Where they come from; only the first of the peers asks them.
    peers
        Those that share them.
    """

    def __init__(self, deliveries: Deliveries, peers: PeerGroup) -> None:
        self._deliveries = deliveries
        self._peers = peers
        self._run: Run | FusedRun | None = None
        self._run_digest = ""
        self._followed: Run | FusedRun | None = None
        self._micro_batches: Iterator[MicroBatch] = iter(())

    def next(self, run: Run | FusedRun, batch: int) -> Delivery:
        """Batch number `batch` of a run, the same on all peers.

        Raises
        ------
        StopIteration
            At the end of the run.
        RankMismatchError
            When the one that reads is at another batch, or at one of another pass or loader.
        WorkerError
            When a peer is gone, or is not heard of before the deadline of the process group.
        Exception
            Whatever making it raises; on all peers.
        """
        if self._run is not run:
            self._run, self._run_digest = run, _digest_of(run)
        if not self._peers.is_first:
            return self._follow(run, batch)
        try:
            delivery = self._deliveries.next(run, batch)
        except StopIteration:
            self._peers.send(_Message(self._run_digest, batch))
            raise
        except Exception as error:
            # An interrupt is not sent: this process ends, and its peers see that it is gone.
            self._send_failure(batch, error)
            raise
        self._send(batch, delivery)
        return delivery

    def close(self) -> None:
        """End what reads."""
        self._deliveries.close()

    def _send(self, batch: int, delivery: Delivery) -> None:
        try:
            self._peers.send(_Message(self._run_digest, batch, delivery))
        except WorkerError:
            raise
        except Exception as error:
            self._deliveries.turn_back()
            refused = NotSupportedError(
                f"the batch cannot be sent to other ranks: {type(error).__name__}: {error}",
                fix="Let the dataset return what can be pickled, or leave broadcast out",
            )
            self._send_failure(batch, refused)
            raise refused from error

    def _send_failure(self, batch: int, error: Exception) -> None:
        # That nobody is left to hear of it is said with the next batch; the error matters more.
        with suppress(WorkerError):
            self._peers.send(_Message(self._run_digest, batch, failure=_failure_of(error)))

    def _follow(self, run: Run | FusedRun, batch: int) -> Delivery:
        followed, self._followed = self._followed, None
        try:
            if followed is not run:
                self._micro_batches = run.batches(batch)
            # Windows are planned here as they are there: states and reports are made from them.
            next(self._micro_batches, None)
        except Exception:
            # The one that reads meets the same, and sends it.
            self._receive(batch)
            raise
        delivery = self._receive(batch)
        self._followed = run
        return delivery

    def _receive(self, batch: int) -> Delivery:
        message: _Message = self._peers.receive()
        if message.batch != batch:
            raise RankMismatchError(
                f"this rank asks for batch {batch} of the pass, and rank {self._peers.first}, which"
                f" reads for it, is at batch {message.batch}",
                fix="Take as many batches on all ranks that share them",
            )
        if message.run != self._run_digest:
            raise RankMismatchError(
                f"this rank asks for batch {batch} of one pass, and rank {self._peers.first}, which"
                " reads for it, is in another pass, or iterates another loader",
                fix="Iterate the same loaders in the same order on all ranks that share batches,"
                " and give these the same epoch and state",
            )
        if message.failure is not None:
            error, trace = message.failure
            raise error from WorkerError(f"rank {self._peers.first} raised it:\n{trace}")
        if message.delivery is None:
            raise StopIteration
        return message.delivery


def _digest_of(run: Run | FusedRun) -> str:
    # The position has all that tells loaders and passes apart: data, seed, options and pass.
    text = json.dumps(run.start.to_json())
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _failure_of(error: Exception) -> _Failure:
    """An error as it can be sent; of one that cannot be pickled its kind and its words are."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made on the same line
    except Exception:  # noqa: BLE001 - pickling runs code of whoever wrote the error
        return _Failure(RuntimeError(f"{type(error).__name__}: {error}"), trace)
    return _Failure(error, trace)
