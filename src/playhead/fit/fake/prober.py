"""A GPU that is not there: predictions take the place of probes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from playhead.errors import ConfigError, FitError
from playhead.fit.record import MixRecord, ProbeRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.bucket import Bucket

__all__ = ["FRAGMENTATION", "RESERVE", "FakeProber"]

RESERVE = 2**30
"""Bytes for what is not tensors: the context of CUDA, its libraries, workspaces of kernels. A rule
of thumb, not measured."""
FRAGMENTATION = 0.05
"""Share of what tensors hold that the allocator holds beyond it. A rule of thumb, not measured."""


class _Predicts(Protocol):
    blocked: str | None

    @property
    def notes(self) -> tuple[str, ...]: ...

    def predict(self, bucket: Bucket, batch_size: int) -> int | None: ...


class FakeProber:
    """Answer probes of a GPU that is not there with predictions, and room for the rest.

    A record has the seconds that all predictions took since the last one.

    Parameters
    ----------
    predictor
        Foretells what tensors hold, as `playhead.fit.fake.predictor.Predictor` does.
    buckets
        The buckets, in the order of the config.
    memory
        Memory of the GPU (bytes).
    fraction
        Share of it that may be used.
    reserve
        What is taken for all that is not tensors (bytes).
    fragmentation
        Share of what tensors hold that is taken for gaps between them.

    Attributes
    ----------
    budget
        Most that the allocator may hold (bytes): the share of the memory, less the reserve.

    Raises
    ------
    ConfigError
        If the reserve leaves nothing.
    """

    def __init__(
        self,
        predictor: _Predicts,
        buckets: Sequence[Bucket],
        memory: int,
        fraction: float,
        *,
        reserve: int = RESERVE,
        fragmentation: float = FRAGMENTATION,
    ) -> None:
        self.budget = int(memory * fraction) - reserve
        if self.budget <= 0:
            raise ConfigError(
                f"{fraction:g} of {memory / 2**30:.3g} GiB is no more than what is taken for all"
                f" that is not tensors, {reserve / 2**30:.3g} GiB",
                fix="Give more --memory",
            )
        self._predictor = predictor
        self._buckets = tuple(buckets)
        self._reserve = reserve
        self._fragmentation = fragmentation
        self._seconds = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the answers, a line each."""
        rest = (
            f"what is not tensors is assumed: {self._reserve / 2**30:.3g} GiB, which is no part of"
            f" the budget, and {self._fragmentation:.0%} of the tensors for gaps between them"
        )
        return (*self._predictor.notes, rest)

    def predict(self, bucket: int, batch_size: int) -> int | None:
        """Return what tensors will hold at most (bytes) in a step; None where nothing says it."""
        begin = time.monotonic()
        try:
            return self._predictor.predict(self._buckets[bucket], batch_size)
        finally:
            self._seconds += time.monotonic() - begin

    def probe(self, bucket: int, batch_size: int) -> ProbeRecord:
        """Say whether the prediction, with room for the rest, is within the budget.

        Raises
        ------
        FitError
            If the model cannot run on fake tensors.
        """
        tensors = self._tensors(bucket, batch_size)
        held = self._held(tensors)
        fits = held <= self.budget
        return ProbeRecord(
            bucket=bucket,
            batch_size=batch_size,
            budget=self.budget,
            status="ok" if fits else "oom",
            allocated=tensors if fits else None,
            reserved=held if fits else None,
            predicted=tensors,
            seconds=self._spent(),
            reason=None if fits else f"it would hold {held / 2**30:.2f} GiB",
        )

    def mix(self, sizes: Sequence[int], steps: int, seed: int) -> MixRecord:
        """Say whether the largest of all predictions, with room for the rest, is within the budget.

        Raises
        ------
        FitError
            If the model cannot run on fake tensors.
        """
        del seed  # Steps that nobody does have no order.
        tensors = tuple(
            self._tensors(bucket, size) if size else 0 for bucket, size in enumerate(sizes)
        )
        largest = max(range(len(tensors)), key=lambda bucket: tensors[bucket])
        held = self._held(tensors[largest])
        fits = held <= self.budget
        return MixRecord(
            sizes=tuple(sizes),
            steps=steps,
            budget=self.budget,
            status="ok" if fits else "oom",
            done=steps if fits else 0,
            failed=None if fits else largest,
            allocated=tensors if fits else None,
            reserved=held if fits else None,
            seconds=self._spent(),
            reason=None if fits else f"it would hold {held / 2**30:.2f} GiB",
        )

    def _spent(self) -> float:
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def _held(self, tensors: int) -> int:
        return tensors + int(tensors * self._fragmentation)

    def _tensors(self, bucket: int, batch_size: int) -> int:
        tensors = self.predict(bucket, batch_size)
        if tensors is None:
            raise FitError(
                f"the model cannot run on fake tensors: {self._predictor.blocked}",
                fix="Search on a GPU: --device cuda:0",
            )
        return tensors
