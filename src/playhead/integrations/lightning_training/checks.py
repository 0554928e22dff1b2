"""What must fit together before Lightning trains on batches of Playhead."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, NotSupportedError, TopologyError

if TYPE_CHECKING:
    from playhead.loader import Loader

__all__ = ["check_accumulation", "check_epoch_ends", "check_ranks", "check_training_step"]


def check_training_step(module: Any) -> None:
    """Refuse a training step that takes batches from the iterator by itself.

    Raises
    ------
    NotSupportedError
        When it has the parameter `dataloader_iter`.
    """
    if "dataloader_iter" in inspect.signature(module.training_step).parameters:
        raise NotSupportedError(
            "the training step takes dataloader_iter, and nobody knows how many of the batches"
            " that it takes it trains on",
            where=f"{type(module).__name__}.training_step",
            fix="Let it take a batch: training_step(self, batch, batch_idx)",
        )


def check_ranks(loader: Loader, trainer: Any) -> None:
    """Compare the ranks of a loader with those of a trainer.

    Raises
    ------
    TopologyError
        When the loader hands out the share of another rank, or of another number of them.
    """
    there = trainer.distributed_sampler_kwargs or {}
    rank, ranks = there.get("rank", 0), there.get("num_replicas", 1)
    if (loader.rank, loader.world_size) != (rank, ranks):
        raise TopologyError(
            f"the loader was made for rank {loader.rank} of {loader.world_size}, and this process"
            f" trains as rank {rank} of {ranks}",
            fix="Make the loader in train_dataloader(), where all ranks have met, or use"
            " PlayheadDataModule",
        )


def check_accumulation(loader: Loader, trainer: Any) -> None:
    """Compare a loader's step with the optimizer step of a trainer.

    Raises
    ------
    TopologyError
        When the trainer accumulates another number of batches, or a number that changes.
    """
    if not trainer.lightning_module.automatic_optimization:
        return
    asked, present = loader.batches_per_step, trainer.accumulate_grad_batches
    scheduled = {
        number
        for callback in trainer.callbacks
        if type(callback).__name__ == "GradientAccumulationScheduler"
        for number in callback.scheduling.values()
    }
    if scheduled - {asked}:
        raise TopologyError(
            f"a step is {asked} batches of each rank from the beginning to the end, and a"
            " GradientAccumulationScheduler changes that",
            fix=f"Use accumulate_grad_batches={asked} in the Trainer instead of it",
        )
    if asked != present:
        step = loader.micro_batches_per_step
        raise TopologyError(
            f"a step is {step} micro-batches, {asked} for each of {loader.world_size} ranks, and"
            f" the Trainer steps after {present}",
            fix=f"Use accumulate_grad_batches={asked} in the Trainer, or set"
            f" micro_batches_per_step: {loader.world_size * present} for the loader",
        )


def check_epoch_ends(trainer: Any, per_step: int) -> None:
    """Refuse epochs that end inside a step, of which Lightning would make a smaller one.

    Parameters
    ----------
    trainer
        The trainer, after it has set up its training data.
    per_step
        Batches of a rank in a step.

    Raises
    ------
    ConfigError
        When they do.
    """
    batches = trainer.num_training_batches
    if math.isinf(batches) or trainer.fast_dev_run or not batches % per_step:
        return
    less, more = batches // per_step * per_step, -(-batches // per_step) * per_step
    raise ConfigError(
        f"an epoch of {batches} batches ends inside a step of {per_step}",
        where="limit_train_batches",
        fix="Set it to " + (f"{less} or {more}" if less else f"{more}"),
    )
