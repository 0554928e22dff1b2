"""A model on a device: a GPU, a CPU with a budget, or a GPU that is not there."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import PlayheadError
from playhead.fit.bucket import buckets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from playhead.fit.bucket import Bound, Bucket
    from playhead.fit.fake.predictor import Predictor
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
    log: Path,
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
    log
        Where everything goes that models write.

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
    if device == FAKE:
        assert memory is not None, "a device that is not there has no memory of its own"
        yield _fake(source, bounds, training, memory=memory, fraction=fraction)
        return
    from playhead.fit.probing.options import ProbeOptions  # noqa: PLC0415  (imports torch)
    from playhead.fit.probing.process_prober import ProcessProber  # noqa: PLC0415  (same)

    options = ProbeOptions(device=device, memory=memory, fraction=fraction, seconds=seconds)
    unforeseen: list[str] = []
    predictor = _predictor(source, training, device, unforeseen)
    with ProcessProber(source, bounds, training, options, log=log, predictor=predictor) as prober:
        facts = prober.identity()

        def notes() -> Sequence[str]:
            blocked = None if predictor is None else predictor.blocked
            why = [] if blocked is None else [f"nothing is predicted: {blocked}"]
            said = () if predictor is None or blocked else predictor.notes
            return (*prober.notes, *unforeseen, *why, *said)

        yield Opened(
            prober=prober,
            buckets=prober.buckets,
            model=prober.model,
            memory=facts["memory"],
            facts=facts,
            is_real=True,
            notes=notes,
        )


def _predictor(
    source: ModelSource, training: Training, device: str, unforeseen: list[str]
) -> Predictor | None:
    from playhead.fit.fake.predictor import predictor  # noqa: PLC0415  (imports torch)

    try:
        return predictor(source, training, device)
    except PlayheadError:
        raise
    except Exception as error:  # noqa: BLE001  (any code of people may fail in any way)
        # If it cannot be opened at all, the prober says so in its own words.
        text = " ".join(str(error).split())
        unforeseen.append(f"nothing is predicted: {type(error).__name__}: {text}")
        return None


def _fake(
    source: ModelSource,
    bounds: Sequence[Bound],
    training: Training,
    *,
    memory: int,
    fraction: float,
) -> Opened:
    import torch  # noqa: PLC0415  (takes seconds)

    from playhead.fit.fake.predictor import predictor  # noqa: PLC0415  (same)
    from playhead.fit.fake.prober import FakeProber  # noqa: PLC0415  (same)

    foretells = predictor(source, training, FAKE)
    model = foretells.model
    buckets = buckets_of(bounds, model.rule)
    prober = FakeProber(foretells, buckets, memory, fraction)
    return Opened(
        prober=prober,
        buckets=buckets,
        model=model.name,
        memory=memory,
        facts={
            "device": FAKE,
            "memory": memory,
            "dtype": training.dtype,
            "torch": torch.__version__,
        },
        is_real=False,
        notes=lambda: (*model.notes, *prober.notes),
    )
