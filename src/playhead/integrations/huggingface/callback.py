"""What keeps a loader's position among the states of a Trainer."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from transformers.trainer_callback import ExportableState, TrainerCallback

from playhead.errors import ConfigError
from playhead.integrations.huggingface.epochs import Epochs
from playhead.loader.logged import DataLog

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

__all__ = ["PlayheadCallback"]


class PlayheadCallback(TrainerCallback, ExportableState):
    """Saves the position after the last step trained, in `trainer_state.json`, and restores it.

    Adds figures of the data to what is logged of training. A Trainer has one as soon as its
    training batches are those of a loader: name one to change what it logs.

    Parameters
    ----------
    prefix, most_leaves
        As for `DataLog`.

    Examples
    --------
    >>> PlayheadCallback(most_leaves=5).state()["args"]
    {'prefix': 'data/', 'most_leaves': 5}
    """

    def __init__(self, prefix: str = "data/", most_leaves: int = 20) -> None:
        self.position: dict[str, Any] | None = None
        self._options: dict[str, Any] = {"prefix": prefix, "most_leaves": most_leaves}
        self._epochs: Epochs | None = None
        self._log: DataLog | None = None

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint holds: JSON types, the same on every rank."""
        if self._epochs is not None:
            self.position = self._epochs.loader.state_dict()
        return {"args": self._options, "attributes": {"position": self.position}}

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - what a Trainer gives
        **kwargs: Any,
    ) -> None:
        """Go on from the checkpoint's position, before any batch is fetched.

        Raises
        ------
        ConfigError
            When training takes its batches from elsewhere, or its steps are not the loader's.
        TopologyError
            When another number of processes shares the loader's steps.
        PositionError
            When the loader cannot go on from there.
        """
        epochs = kwargs.get("train_dataloader")
        if not isinstance(epochs, Epochs):
            raise ConfigError(
                "a PlayheadCallback follows the training on other batches than a loader's",
                fix="Return training_batches(self, loader) from get_train_dataloader",
            )
        saved: Any = state.stateful_callbacks
        name = type(self).__name__
        position = _position_in(saved.get(name)) if state.global_step else None
        if state.global_step:
            epochs.go_on(position, steps=state.global_step, most=state.max_steps)
            if position is None and epochs.loader.rank == 0:
                warnings.warn(
                    f"the checkpoint of step {state.global_step} holds no position of a loader:"
                    " training goes on from the beginning of the data",
                    stacklevel=2,
                )
        epochs.check_step(args.gradient_accumulation_steps)
        # A Trainer saves those that it finds here, which are the checkpoint's where it resumes.
        saved[name] = {"args": self._options, "attributes": {"position": position}}
        self._epochs = epochs
        self._log = DataLog(epochs.loader, **self._options)

    def on_optimizer_step(
        self,
        args: TrainingArguments,  # noqa: ARG002 - what a Trainer gives
        state: TrainerState,  # noqa: ARG002 - same
        control: TrainerControl,  # noqa: ARG002 - same
        **kwargs: Any,  # noqa: ARG002 - same
    ) -> None:
        """Count the batches of a step as trained on, before anybody saves after it."""
        if self._epochs is not None:
            loader = self._epochs.loader
            loader.mark_trained(loader.batches_per_step)

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - what a Trainer gives
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - same
        **kwargs: Any,  # noqa: ARG002 - same
    ) -> None:
        """Say which epoch it is: a Trainer that skips nothing counts from where it went on."""
        if self._epochs is not None:
            steps = self._epochs.steps or state.max_steps
            whole, into = divmod(state.global_step - 1, steps)
            state.epoch = whole + (into + 1) / steps

    def on_log(
        self,
        args: TrainingArguments,  # noqa: ARG002 - what a Trainer gives
        state: TrainerState,  # noqa: ARG002 - same
        control: TrainerControl,  # noqa: ARG002 - same
        logs: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002 - same
    ) -> None:
        """Add the figures of the data to those of training, for the loggers that come after."""
        if self._log is not None and logs is not None and "loss" in logs:
            logs.update(self._log.figures())

    def on_train_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - what a Trainer gives
        state: TrainerState,  # noqa: ARG002 - same
        control: TrainerControl,  # noqa: ARG002 - same
        **kwargs: Any,  # noqa: ARG002 - same
    ) -> None:
        """Let go of the loader: the next training may be on another."""
        self._epochs = self._log = None


def _position_in(saved: Any) -> Any:
    """The position that a checkpoint holds, if it holds one; several callbacks make a list."""
    one = saved[0] if isinstance(saved, list) else saved
    return one["attributes"].get("position") if one else None
