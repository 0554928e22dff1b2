"""A device on which every probe is a process of its own."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from playhead.errors import FitError
from playhead.fit.bucket import buckets_of
from playhead.fit.probing.budget import budget_of, total_of
from playhead.fit.probing.messages import Opening, Task
from playhead.fit.probing.mixing import mixed_order
from playhead.fit.probing.outcome import Outcome, host_ran_out, outcome, speaks_of_forks
from playhead.fit.probing.warm import ServerDiedError, WarmServer
from playhead.fit.record import MixRecord, ProbeRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playhead.fit.bucket import Bound, Bucket
    from playhead.fit.model import ModelSource
    from playhead.fit.probing.messages import Ended, Facts
    from playhead.fit.probing.options import ProbeOptions
    from playhead.fit.record import Status
    from playhead.fit.training import Training

__all__ = ["Predicts", "ProcessProber"]

# A server that dies so often in a row will not live.
_DEATHS: Final = 3


class Predicts(Protocol):
    """What says how much the tensors of a step will hold."""

    def predict(self, bucket: Bucket, batch_size: int) -> int | None:
        """Return what tensors will hold at most (bytes) in a step; None where nothing says it."""
        ...


class ProcessProber:
    """A model on a device, tried in processes of which each is rid of all that the last one left.

    A process that opens the model once forks one for each probe. Use it in a `with` block, which
    ends them all, however it is left.

    Parameters
    ----------
    source
        The model.
    bounds
        The buckets as a config has them, shortest first.
    training
        How it is trained.
    options
        How probes are made.
    log
        Where everything goes that models write; it is appended to.
    predictor
        What predicts; None leaves predictions out.

    Raises
    ------
    ConfigError
        If there is no such device or model.
    FitError
        If opening the model fails, or nothing is left of the memory.
    """

    def __init__(
        self,
        source: ModelSource,
        bounds: Sequence[Bound],
        training: Training,
        options: ProbeOptions,
        *,
        log: Path,
        predictor: Predicts | None = None,
    ) -> None:
        self._source, self._training, self._options = source, training, options
        self._log, self._predictor = log, predictor
        self._server: WarmServer | None = None
        self._is_cold = False
        self._has_passed = False
        self._deaths = 0
        self._passes_with_one: set[int] = set()
        self._predicted: dict[tuple[int, int], int | None] = {}
        self._notes: list[str] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        self._facts = facts = self._start()
        try:
            self._buckets = buckets_of(bounds, facts.rule)
            self._budget, notes = budget_of(facts.device, options)
        except BaseException:
            self.close()
            raise
        self._notes += (*facts.notes, *notes)

    def __enter__(self) -> ProcessProber:  # noqa: PYI034  (Self is of Python 3.11)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def budget(self) -> int:
        """Most that the allocator may hold (bytes)."""
        return self._budget

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The buckets, with the lengths that the model gives them."""
        return self._buckets

    @property
    def model(self) -> str:
        """What people call the model."""
        return self._facts.model

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know before they wait, in a line each."""
        return tuple(self._notes)

    def identity(self) -> dict[str, Any]:
        """Return what peaks depend on beside the model: the device, its versions and the dtype.

        The keys are `device`, `memory` (bytes), `dtype` and a name for each version.
        """
        device = self._facts.device
        return {
            "device": device.name,
            "memory": total_of(device, self._options),
            "dtype": self._training.dtype,
            **device.versions,
        }

    def predict(self, bucket: int, batch_size: int) -> int | None:
        """Return what tensors will hold at most (bytes) in a step; None where nothing says it."""
        if self._predictor is None:
            return None
        key = bucket, batch_size
        if key not in self._predicted:
            self._predicted[key] = self._predictor.predict(self._buckets[bucket], batch_size)
        return self._predicted[key]

    def probe(self, bucket: int, batch_size: int) -> ProbeRecord:
        """Do some steps with batches of one size of one bucket, and say what became of them.

        Raises
        ------
        FitError
            If the model fails on a batch of one, and not for want of memory; or if the process
            that has the model dies again and again.
        """
        begin = time.monotonic()
        ended, judged = self._try(bucket, batch_size)
        if judged.status in {"doubt", "fault"}:
            judged = self._settled(bucket, batch_size, ended, judged)
        seconds = time.monotonic() - begin
        is_ok = judged.status == "ok"
        answer = ended.answer if ended is not None and is_ok else None
        return ProbeRecord(
            bucket=bucket,
            batch_size=batch_size,
            budget=self._budget,
            status=_status(judged),
            allocated=answer.allocated[bucket] if answer else None,
            reserved=answer.reserved if answer else None,
            # The search asks beside the size that it tries: here both are compared.
            predicted=self.predict(bucket, batch_size) if is_ok else None,
            seconds=seconds,
            reason=judged.reason,
        )

    def mix(self, sizes: Sequence[int], steps: int, seed: int) -> MixRecord:
        """Do steps over a shuffled mix of all buckets at these sizes; 0 leaves a bucket out.

        A step of the shortest comes before, and is not counted: it gives the optimizer what it
        holds.

        Raises
        ------
        FitError
            If the process that has the model dies again and again.
        """
        begin = time.monotonic()
        order = mixed_order(sizes, steps, seed)
        first = next((number for number, size in enumerate(sizes) if size), 0)
        order = (first, *order) if order else ()
        ended, judged = self._do(sizes, order, f"a mix of {list(sizes)}, {steps} steps")
        answer = None if ended is None else ended.answer
        done = 0 if ended is None else ended.done
        # Where others hold the memory, no step was begun.
        has_begun = ended is not None and not _is_busy(ended)
        has_failed = judged.status != "ok" and done < len(order) and has_begun
        is_told = answer is not None and any(answer.allocated)
        return MixRecord(
            sizes=tuple(sizes),
            steps=steps,
            budget=self._budget,
            # Each size has passed alone: what fails now fails for what is around it.
            status="oom" if judged.status == "doubt" else _status(judged),
            done=max(0, done - 1),
            failed=order[done] if has_failed else None,
            allocated=answer.allocated if answer and is_told else None,
            reserved=answer.reserved if answer and is_told else None,
            seconds=time.monotonic() - begin,
            reason=judged.reason,
        )

    def _settled(
        self, bucket: int, batch_size: int, ended: Ended | None, judged: Outcome
    ) -> Outcome:
        """Say what it means that code failed: a batch of one tells whether the size is to blame."""
        if batch_size > 1 and bucket not in self._passes_with_one:
            one_ended, one = self._try(bucket, 1)
            if one.status in {"doubt", "fault"}:
                batch_size, ended, judged = 1, one_ended, one
            elif one.status == "lost":
                return replace(
                    one, reason=f"{judged.reason}; then, with a batch of one, {one.reason}"
                )
            elif one.status == "oom":
                return judged if judged.status == "doubt" else one
        if batch_size > 1:
            if judged.status == "doubt":
                return replace(judged, status="oom")
            where = f" ({judged.where})" if judged.where else ""
            return replace(
                judged,
                status="lost",
                reason=f"a batch of one passes, this one does not: {judged.reason}{where}",
            )
        reserved = ended.answer.reserved if ended is not None and ended.answer is not None else 0
        if judged.status == "doubt" and reserved > self._budget // 2:
            # A library that fails with most of the memory taken fails for want of it.
            return replace(judged, status="oom")
        bound = self._buckets[bucket].bound
        raise FitError(
            f"the model fails on a batch of one of bucket {bound}: {judged.reason}",
            where=judged.where,
            fix=f"Correct the model, or leave the bucket out; {self._log} has the whole traceback",
        )

    def _try(self, bucket: int, batch_size: int) -> tuple[Ended | None, Outcome]:
        sizes = [0] * len(self._buckets)
        sizes[bucket] = batch_size
        order = (bucket,) * (1 + self._options.steps)
        title = f"bucket {self._buckets[bucket].bound}, batches of {batch_size}"
        ended, judged = self._do(sizes, order, title)
        if judged.status == "ok" and batch_size == 1:
            self._passes_with_one.add(bucket)
        return ended, judged

    def _do(
        self, sizes: Sequence[int], order: tuple[int, ...], title: str
    ) -> tuple[Ended | None, Outcome]:
        task = Task(
            buckets=self._buckets,
            sizes=tuple(sizes),
            order=order,
            budget=self._budget,
            seconds=self._options.seconds,
            title=title,
        )
        if self._server is None:
            self._start()
        assert self._server is not None
        try:
            ended = self._server.do(task)
        except ServerDiedError as error:
            return None, self._died(error)
        except BaseException:
            self._server = None
            raise
        self._deaths = 0
        judged = outcome(ended, self._log, self._options.seconds)
        self._has_passed |= judged.status == "ok"
        is_lost = judged.status == "lost" and not _is_busy(ended)
        is_suspect = is_lost or speaks_of_forks(judged.reason)
        if is_suspect and not self._has_passed and not self._is_cold:
            self._be_cold(judged.reason or "")
            return self._do(sizes, order, title)
        return ended, judged

    def _died(self, error: ServerDiedError) -> Outcome:
        self._server = None
        self._deaths += 1
        if self._deaths >= _DEATHS:
            raise FitError(
                f"{error}, for the {_DEATHS}rd time in a row",
                where=str(self._log),
                fix="Read there what it wrote last, and correct the model",
            ) from error
        if error.host_kills:
            return Outcome(status="oom", reason=f"{host_ran_out()}: {error}")
        return Outcome(status="lost", reason=f"{error} ({self._log})")

    def _start(self) -> Facts:
        """Start the process that has the model."""
        while True:
            opening = Opening(
                source=self._source,
                training=self._training,
                device=self._options.device,
                seconds=self._options.seconds,
                is_cold=self._is_cold,
            )
            self._server = server = WarmServer(opening, self._log)
            try:
                ready = server.ready()
            except ServerDiedError as error:
                self._server = None
                raise FitError(
                    f"{error}{f': {host_ran_out()}' if error.host_kills else ''}",
                    where=str(self._log),
                    fix="Read there what it wrote last, and correct the model",
                ) from error
            except BaseException:
                self._server = None
                raise
            if ready.facts is not None:
                return ready.facts
            self.close()
            if ready.refusal is not None:
                raise ready.refusal.error()
            if ready.broken_by_fork is not None:
                self._be_cold(ready.broken_by_fork)
                continue
            assert ready.ended is not None
            judged = outcome(ready.ended, self._log, self._options.seconds)
            raise FitError(
                f"looking at {self._options.device} failed: {judged.reason}",
                where=judged.where,
                fix=f"Read {self._log}",
            )

    def _be_cold(self, why: str) -> None:
        self.close()
        self._is_cold = True
        self._notes.append(f"every probe opens the model anew, which takes longer: {why}")


def _is_busy(ended: Ended) -> bool:
    """Whether nothing was tried, since others hold the memory."""
    return ended.answer is not None and ended.answer.status == "busy"


def _status(judged: Outcome) -> Status:
    return "ok" if judged.status == "ok" else "oom" if judged.status == "oom" else "lost"
