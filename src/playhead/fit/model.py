"""What a model must have so that batch sizes can be found for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from playhead.fit.bucket import LengthRule

__all__ = ["FitModel", "ModelSource", "Trainable"]


@runtime_checkable
class Trainable(Protocol):
    """What people's own `nn.Module` or `LightningModule` has.

    Attributes that it may have:

    - ``sample_rate``: samples that a second of input has, 16,000 where there is none; None says
      that inputs are no audio, and that bounds are taken as they are.
    - ``output_sample_rate``: the same of outputs, which are no audio where there is none.
    - ``audio_share``: the share of a token bucket that is audio, for models that have audio among
      text, and ``token_seconds``: seconds of audio in a token, 0.08 where there is none.
    - ``configure_optimizers``, as Lightning has it: makes the optimizer; without it, one is made
      by name.
    """

    def make_batch(self, batch_size: int, input_length: int, output_length: int) -> Any:
        """Make a batch of the longest samples of a bucket, on the device of the model."""
        ...

    def training_step(self, batch: Any, batch_idx: int = 0) -> Any:
        """Return the loss, or a mapping with the key `loss`."""
        ...


class FitModel(Protocol):
    """A model of any kind, as the search sees it."""

    name: str
    """What people call it."""
    module: nn.Module
    """Its weights."""
    rule: LengthRule
    """How the bounds of buckets become lengths of its batches."""
    notes: Sequence[str]
    """What people should know of its batches, each in one line."""
    keeps_gradients: bool
    """Whether gradients of a step are there until the next backward: Lightning drops them then."""

    def make_batch(self, batch_size: int, input_length: int, output_length: int) -> Any:
        """Make a batch of the longest samples of a bucket, on the device of the weights."""
        ...

    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch, one number."""
        ...

    def optimizer(self, name: str) -> Any:
        """Return an optimizer of the weights: the model's own, or one of that name."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """Where a model comes from; plain values, so that another process can open it too."""

    kind: Literal["pretrained", "module", "hf", "code"]
    """A trained NeMo model, a class with a config, a Hugging Face config, or people's own code."""
    name: str
    """Name or `.nemo` path; dotted class path; recipe (`whisper`, …); or `MODULE:NAME`."""
    config: str | None = None
    """The config file, with `module` and `hf`."""
    ratio: float = 12.0
    """Output by input, where a bound is one number."""
    audio_share: float | None = None
    """Share of a token bucket that is audio; None leaves it to the model."""
    attn_implementation: str | None = None
    """How Hugging Face models attend (`sdpa`, `eager`, …); None leaves it to the model."""
    gradient_checkpointing: bool = False
    """Have Hugging Face models compute activations again instead of keeping them."""
