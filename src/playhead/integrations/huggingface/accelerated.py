"""A loader in a loop of one's own with accelerate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accelerate.utils import send_to_device

from playhead.errors import ConfigError, PositionError
from playhead.integrations.huggingface.processes import check_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accelerate import Accelerator

    from playhead.loader import Loader

__all__ = ["AcceleratedBatches", "prepare_loader"]


def prepare_loader(accelerator: Accelerator, loader: Loader) -> AcceleratedBatches:
    """Put a loader among what an Accelerator saves, and return its batches on the device.

    Takes the place of `accelerator.prepare` for the loader: each process has its own share of the
    batches already. Call it before `load_state`.

    Parameters
    ----------
    accelerator
        Whose `save_state` and `load_state` carry the position from now on.
    loader
        Makes the batches.

    Raises
    ------
    TopologyError
        When another number of processes shares the loader's steps.
    """
    check_processes(loader, _ranks_of(accelerator), on_cpus="cpu=True to the Accelerator")
    accelerator.register_for_checkpointing(loader)
    return AcceleratedBatches(accelerator, loader)


class AcceleratedBatches:
    """The batches of a loader on the device of an Accelerator.

    Parameters
    ----------
    accelerator
        Whose device it is, and who accumulates gradients.
    loader
        Makes the batches.
    """

    def __init__(self, accelerator: Accelerator, loader: Loader) -> None:
        self.loader = loader
        self._accelerator = accelerator

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        accelerator, loader = self._accelerator, self.loader
        batches = iter(loader)
        accumulation = accelerator.gradient_accumulation_steps
        if loader.batches_per_step != accumulation:
            raise ConfigError(
                f"a step of the loader has {loader.micro_batches_per_step} micro-batches,"
                f" {loader.batches_per_step} for each of {loader.world_size} processes, and the"
                f" Accelerator takes {accumulation}",
                fix=f"Give the Accelerator gradient_accumulation_steps={loader.batches_per_step},"
                f" or the loader micro_batches_per_step={loader.world_size * accumulation}",
            )
        # It counts batches since the start of training, and steps of another number of processes
        # had another number of them.
        accelerator.step = loader.batches_into_step
        for batch in batches:
            if loader.course.delivered == 1:
                # A state may be loaded while these are iterated: it begins a step, whatever was
                # counted before it was saved.
                accelerator.step = 0
            yield send_to_device(batch, accelerator.device, non_blocking=accelerator.non_blocking)

    @property
    def dataset(self) -> Any:
        """What `skip_first_batches` and `prepare_data_loader` ask for: there is none.

        Raises
        ------
        PositionError
            Always: batches are neither skipped nor shared out a second time.
        """
        raise PositionError(
            "these batches begin at the loader's position, and are this process's share",
            fix="Iterate them as they are, without skip_first_batches or prepare_data_loader",
        )


def _ranks_of(accelerator: Accelerator) -> int:
    """How many processes train on batches of their own."""
    parallelism = getattr(accelerator, "parallelism_config", None)
    if parallelism is None:
        return accelerator.num_processes
    return accelerator.num_processes // parallelism.non_data_parallel_size
