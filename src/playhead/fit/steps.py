"""Training steps of a model: the same code on a GPU, on a CPU and on fake tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from playhead.errors import ConfigError, FitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from playhead.fit.bucket import Bucket
    from playhead.fit.model import FitModel
    from playhead.fit.training import Training

__all__ = ["Prepared", "prepare", "train_step"]

# Of torch.nn.parallel.DistributedDataParallel: bytes of the first bucket, and of each later one.
_FIRST_BUCKET, _LATER_BUCKET = 2**20, 25 * 2**20
# How far an average of weights moves in a step; what it is costs no memory.
_EMA_STEP = 1e-3
_DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A model that is ready to be trained, and all that is held beside its weights."""

    model: FitModel
    """The model."""
    optimizer: Any
    """Its optimizer, whose learning rates are zero."""
    training: Training
    """How it is trained."""
    buckets: tuple[Tensor, ...]
    """What DDP holds: room for each gradient; empty without DDP."""
    averages: tuple[Tensor, ...]
    """The average of the weights, in float32; empty without EMA."""


def prepare(model: FitModel, training: Training) -> Prepared:
    """Make ready to train.

    Weights stay as they are: learning rates are set to zero, since what is learned from made-up
    batches is of no use and might blow up. Whatever an optimizer holds it holds all the same.

    Parameters
    ----------
    model
        The model, on the device on which it is trained.
    training
        How it is trained.

    Raises
    ------
    ConfigError
        If autocast knows no such dtype.
    FitError
        If nothing in the model is trained.
    """
    if training.dtype not in _DTYPES:
        raise ConfigError(
            f"no model is trained in {training.dtype}", fix=f"Choose one of {', '.join(_DTYPES)}"
        )
    if not any(weight.requires_grad for weight in model.module.parameters()):
        raise FitError(
            f"nothing in {model.name} is trained",
            fix="Leave at least one of its parameters with requires_grad",
        )
    # Parts that were frozen in evaluation mode stay so: a model that trains is left alone.
    if not model.module.training:
        model.module.train()
    optimizer = model.optimizer(training.optimizer)
    # Only now: some models freeze weights where they make their optimizer.
    trained = [weight for weight in model.module.parameters() if weight.requires_grad]
    for group in optimizer.param_groups:
        if isinstance(group.get("lr"), float | int):
            group["lr"] = 0.0
        elif isinstance(group.get("lr"), torch.Tensor):
            group["lr"].zero_()
    return Prepared(
        model=model,
        optimizer=optimizer,
        training=training,
        buckets=_gradient_buckets(trained) if training.ddp else (),
        averages=_averages(model.module) if training.ema else (),
    )


def train_step(prepared: Prepared, bucket: Bucket, batch_size: int) -> None:
    """Do one optimizer step with batches of the longest samples of a bucket.

    Batches are made up, so a loss or a gradient may be infinite or no number at all. Such
    gradients are set to zero in place before the optimizer sees them: the memory is the same, and
    weights and states stay finite.

    Gradients are dropped after the step; or, as Lightning does it, just before the first backward
    of the next, where they are held beside the activations of a forward.

    Parameters
    ----------
    prepared
        The model.
    bucket
        How long the samples are.
    batch_size
        Samples of each micro-batch.

    Raises
    ------
    FitError
        If the loss depends on no weight that is trained.
    """
    model, training = prepared.model, prepared.training
    for micro_batch in range(training.accumulate):
        batch = model.make_batch(batch_size, bucket.input_length, bucket.output_length)
        with _autocast(model.module, training.dtype):
            loss = model.loss(batch)
        if not loss.requires_grad:
            raise FitError(
                f"the loss of {model.name} depends on no weight that is trained",
                fix="Return the loss itself, not its value",
            )
        if model.keeps_gradients and not micro_batch:
            prepared.optimizer.zero_grad(set_to_none=True)
        (loss / training.accumulate).backward()
    with torch.no_grad():
        for weight in model.module.parameters():
            if weight.grad is not None:
                _make_finite(weight.grad)
    prepared.optimizer.step()
    _follow(prepared.averages, model.module)
    if not model.keeps_gradients:
        prepared.optimizer.zero_grad(set_to_none=True)


def _autocast(module: nn.Module, dtype: str) -> AbstractContextManager[Any]:
    if dtype == "float32":
        return nullcontext()
    device = next(module.parameters()).device.type
    return torch.autocast(device, dtype=_DTYPES[dtype])


def _make_finite(gradient: Tensor) -> None:
    values = gradient._values() if gradient.is_sparse else gradient  # noqa: SLF001  (uncoalesced too)
    values.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)


def _gradient_buckets(trained: Sequence[nn.Parameter]) -> tuple[Tensor, ...]:
    """Make what DDP makes of the weights, from the last to the first."""
    buckets: list[Tensor] = []
    gathered: dict[torch.dtype, int] = {}
    for weight in reversed(trained):
        dtype = weight.dtype
        gathered[dtype] = gathered.get(dtype, 0) + weight.numel()
        if gathered[dtype] * weight.element_size() >= (_LATER_BUCKET if buckets else _FIRST_BUCKET):
            buckets.append(weight.new_empty(gathered.pop(dtype)))
    device = trained[0].device
    buckets.extend(torch.empty(n, dtype=dtype, device=device) for dtype, n in gathered.items())
    return tuple(buckets)


def _floating(module: nn.Module) -> list[nn.Parameter]:
    return [weight for weight in module.parameters() if weight.is_floating_point()]


@torch.no_grad()
def _averages(module: nn.Module) -> tuple[Tensor, ...]:
    return tuple(weight.to(torch.float32, copy=True) for weight in _floating(module))


@torch.no_grad()
def _follow(averages: Sequence[Tensor], module: nn.Module) -> None:
    if averages:
        for average, weight in zip(averages, _floating(module), strict=True):
            average.lerp_(weight.to(torch.float32), _EMA_STEP)
