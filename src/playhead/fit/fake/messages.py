"""What is asked of the process that predicts, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field

from playhead.fit.bucket import Bucket, LengthRule
from playhead.fit.model import ModelSource  # noqa: TC001  (messages are read by their types)
from playhead.fit.probing.messages import Refusal  # noqa: TC001  (likewise)
from playhead.fit.training import Training  # noqa: TC001  (likewise)

__all__ = ["Foretold", "Question", "Subject", "Understood"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What predictions are about."""

    source: ModelSource
    """The model."""
    training: Training
    """How it is trained."""
    device: str
    """As `playhead.fit.fake.predictor.predictor` takes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Understood:
    """The model is open on fake tensors, or cannot be."""

    model: str = ""
    """What people call the model."""
    rule: LengthRule = field(default_factory=LengthRule)
    """How the bounds of buckets become lengths of its batches."""
    notes: tuple[str, ...] = ()
    """What people should know of its batches, a line each."""
    predicting: tuple[str, ...] = ()
    """What they should know of predictions, a line each."""
    torch: str = ""
    """The version of torch."""
    refusal: Refusal | None = None
    """Why there is no such model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A step whose peak is asked for."""

    bucket: Bucket
    """How long the samples are."""
    batch_size: int
    """Samples of each micro-batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """What a predictor says of a step."""

    peak: int | None = None
    """Most that tensors hold (bytes)."""
    blocked: str | None = None
    """Why the model cannot run on fake tensors."""
    notes: tuple[str, ...] = ()
    """What people should know of all predictions so far, a line each."""
    refusal: Refusal | None = None
    """Why the model cannot be trained at all."""
