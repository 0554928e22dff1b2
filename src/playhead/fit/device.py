"""A model on a device: a GPU, a CPU with a budget, or a GPU that is not there."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.fit.bucket import buckets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from playhead.fit.bucket import Bound, Bucket
    from playhead.fit.fake.asking import Onlooker, PredictorApart
    from playhead.fit.model import ModelSource
    from playhead.fit.prober import Prober
    from playhead.fit.training import Training

__all__ = ["FAKE", "Opened", "opened_device"]

FAKE = "fake"
"""The device whose probes are predictions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A model on a device."""

    prober: Prober
    """What tries batches."""
    buckets: tuple[Bucket, ...]
    """The buckets, with the lengths that the model gives them."""
    model: str
    """What people call the model."""
    memory: int
    """Memory of the device (bytes)."""
    facts: Mapping[str, Any]
    """What peaks depend on beside the model and its training: device, memory, dtype, versions."""
    is_real: bool
    """Whether steps are done, so that peaks are measured."""
    notes: Callable[[], Sequence[str]]
    """What people should know by now, a line each."""


@contextmanager
def opened_device(
    source: ModelSource,
    bounds: Sequence[Bound],
    training: Training,
    *,
    device: str,
    memory: int | None,
    fraction: float,
    seconds: float,
    prediction_seconds: float,
    log: Path,
    onlooker: Onlooker | None = None,
) -> Generator[Opened]:
    """Open a model on a device; what was started for it ends with the block.

    Parameters
    ----------
    source
        The model.
    bounds
        The buckets as a config has them.
    training
        How it is trained.
    device
        `cuda`, `cuda:N`, `cpu`, or `fake`.
    memory
        Memory to take the device for (bytes); None takes what it has.
    fraction
        Share of it that the allocator may hold.
    seconds
        How long opening the model and then each step may take.
    prediction_seconds
        How long each prediction may take.
    log
        Where everything goes that models write.
    onlooker
        Who waits for predictions.

    Yields
    ------
    Opened
        The model on the device.

    Raises
    ------
    ConfigError
        If there is no such device or model.
    FitError
        If the model cannot be opened or made batches for.
    """
    from playhead.fit.fake.asking import PredictorApart  # noqa: PLC0415  (--help needs none of it)

    with PredictorApart(
        source,
        training,
        device,
        seconds=seconds,
        prediction_seconds=prediction_seconds,
        log=log,
        onlooker=onlooker,
    ) as predictor:
        if device == FAKE:
            assert memory is not None, "a device that is not there has no memory of its own"
            yield _fake(predictor, bounds, training, memory=memory, fraction=fraction)
            return
        from playhead.fit.probing.options import ProbeOptions  # noqa: PLC0415  (same)
        from playhead.fit.probing.process_prober import ProcessProber  # noqa: PLC0415  (same)

        options = ProbeOptions(device=device, memory=memory, fraction=fraction, seconds=seconds)
        with ProcessProber(
            source, bounds, training, options, log=log, predictor=predictor
        ) as prober:
            facts = prober.identity()

            def notes() -> Sequence[str]:
                blocked = predictor.blocked
                why = [] if blocked is None else [f"nothing is predicted: {blocked}"]
                return (*prober.notes, *why, *predictor.notes)

            yield Opened(
                prober=prober,
                buckets=prober.buckets,
                model=prober.model,
                memory=facts["memory"],
                facts=facts,
                is_real=True,
                notes=notes,
            )


def _fake(
    predictor: PredictorApart,
    bounds: Sequence[Bound],
    training: Training,
    *,
    memory: int,
    fraction: float,
) -> Opened:
    from playhead.fit.fake.prober import FakeProber  # noqa: PLC0415  (--help needs none of it)

    understood = predictor.open()
    buckets = buckets_of(bounds, understood.rule)
    prober = FakeProber(predictor, buckets, memory, fraction)
    return Opened(
        prober=prober,
        buckets=buckets,
        model=understood.model,
        memory=memory,
        facts={
            "device": FAKE,
            "memory": memory,
            "dtype": training.dtype,
            "torch": understood.torch,
        },
        is_real=False,
        notes=lambda: (*understood.notes, *prober.notes),
    )
