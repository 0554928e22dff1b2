"""The batches of a loader, cut into what a Trainer takes for epochs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.integrations.huggingface.inputs import only
from playhead.integrations.huggingface.processes import check_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.loader import Loader

__all__ = ["Epochs"]


class Epochs:
    """What a Trainer iterates: once an epoch, and from where training stands.

    A Trainer asks once how long an epoch is, and counts in those from then on: all are as long as
    the first pass, wherever the loader stands. Shuffled passes differ by a step, so that epochs go
    over the ends of passes: no batch of any is left out.

    Parameters
    ----------
    loader
        Makes the batches, and follows training.
    names
        The keys of a batch that stay; None keeps all.
    ranks
        How many processes train on batches of their own.
    """

    def __init__(self, loader: Loader, names: frozenset[str] | None, *, ranks: int) -> None:
        self.loader = loader
        self._names = names
        self._ranks = ranks
        self._step_at_first = loader.micro_batches_per_step
        self._length = loader.course.length_of_first() if loader.finite else None
        # Of the epoch that comes next; None where it is a whole one.
        self._steps_left: int | None = None
        self._batches: Iterator[Any] | None = None

    def __len__(self) -> int:
        """Batches of an epoch; a TypeError where there is no end."""
        return len(self.loader) if self._length is None else self._length

    @property
    def steps(self) -> int | None:
        """Optimizer steps of an epoch; None where there is no end."""
        return None if self._length is None else self._length // self.loader.batches_per_step

    def go_on(self, position: Any, *, steps: int, most: int) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        position
            The state of the loader that it holds; None is the beginning of the data.
        steps
            The optimizer steps that were made before it.
        most
            Those of the whole training.

        Raises
        ------
        ConfigError
            When the step has another size than when the Trainer asked how long an epoch is.
        """
        if position is not None:
            self.loader.load_state_dict(position)
        size = self.loader.micro_batches_per_step
        if self._length is not None and size != self._step_at_first:
            raise ConfigError(
                f"the checkpoint's steps have {size} micro-batches, and the epochs of this run"
                f" were counted in steps of {self._step_at_first}",
                fix=f"Give the loader micro_batches_per_step={size}",
            )
        self._steps_left = most - steps
        if self.steps is not None:
            self._steps_left = min(self._steps_left, self.steps - steps % self.steps)

    def check_step(self, accumulation: int) -> None:
        """Raise if a Trainer's optimizer step is not the loader's.

        Parameters
        ----------
        accumulation
            Batches that each process trains on for one step of the optimizer.

        Raises
        ------
        TopologyError
            When another number of processes shares the loader's steps.
        ConfigError
            When a step of the loader has another number of batches for each of them.
        """
        loader = self.loader
        check_processes(loader, self._ranks, on_cpus="use_cpu=True to the training arguments")
        if loader.batches_per_step != accumulation:
            raise ConfigError(
                f"a step of the loader has {loader.micro_batches_per_step} micro-batches,"
                f" {loader.batches_per_step} for each of {self._ranks} processes, and the Trainer"
                f" takes {accumulation}",
                fix=f"Set gradient_accumulation_steps={loader.batches_per_step}, or give the loader"
                f" micro_batches_per_step={self._ranks * accumulation}",
            )

    def __iter__(self) -> Iterator[Any]:
        loader = self.loader
        left = self.steps if self._steps_left is None else self._steps_left
        self._steps_left = None
        if loader.batches_ahead:
            # An epoch was stopped inside a step: what was fetched for it comes again.
            self._batches = None
            if loader.finite:
                loader.load_state_dict(loader.state_dict())
        if self._batches is None:
            self._batches = self._passes()
        count = None if left is None else left * loader.batches_per_step
        for batch in islice(self._batches, count):
            yield only(batch, self._names)

    def _passes(self) -> Iterator[Any]:
        """One pass after another; an endless loader has one."""
        came = True
        while came:
            came = False
            for batch in self.loader:
                came = True
                yield batch
