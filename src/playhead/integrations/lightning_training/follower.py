# ruff: noqa: ARG002 - hooks are called with what they may need
"""The callback's part that is the same for both packages: it follows training, and keeps where."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, PositionError
from playhead.integrations.lightning_training.checks import (
    check_accumulation,
    check_epoch_ends,
    check_ranks,
    check_training_step,
)
from playhead.integrations.lightning_training.counters import Resume, set_counters
from playhead.integrations.lightning_training.epoch_loader import EpochLoader
from playhead.loader import Loader
from playhead.loader.logged import DataLog

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TrainingFollower"]

_VERSION = 1


class TrainingFollower:
    """Keeps the position of the last batch that was trained on, in every checkpoint of a trainer.

    A callback: give one to the `Trainer`. It follows every `playhead.Loader` among the training
    data, however they get there and however often they are made anew: from `Trainer.fit`, a data
    module or a LightningModule, alone, in lists and dicts, or in a `CombinedLoader`. Its state is
    JSON types and the same on every rank.

    Raises
    ------
    TopologyError
        When training begins, and the optimizer step of the trainer is another than the loader's,
        or the ranks are.
    ConfigError
        When epochs are cut inside a step, or nothing that is trained on comes from Playhead.
    PositionError
        When a checkpoint has the positions of another number of loaders.
    """

    def __init__(self) -> None:
        super().__init__()
        self._trainer: Any = None
        self._fits = False
        self._epochs: list[EpochLoader] = []
        self._earlier: list[EpochLoader] = []
        self._is_complete = False
        self._restored: Mapping[str, Any] | None = None
        self._batches = 0
        self._steps_at_start: int | None = None
        self._logs: list[DataLog] = []
        self._logged_step = 0

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to watch which loaders the trainer asks for."""
        self._fits = stage == "fit"
        if not self._fits:
            return
        check_training_step(pl_module)
        self._trainer, self._restored = trainer, None
        self._epochs, self._earlier, self._is_complete = [], [], False
        self._batches, self._steps_at_start = 0, None
        self._logs, self._logged_step = [], trainer.global_step
        self._watch(trainer.strategy)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Watch no longer; the state stays what it is, for whoever saves it after training."""
        self._unwatch(trainer.strategy)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Watch no longer."""
        self._unwatch(trainer.strategy)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Loaders that an optimizer's schedule asked for are all there are so far."""
        self._complete()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Look whether the training data and the trainer fit together."""
        if not self._epochs:
            raise ConfigError(
                "PlayheadCallback has nothing to follow: no training data are of a playhead.Loader",
                where="train_dataloader",
                fix="Return the loader itself from train_dataloader(), or leave the callback out",
            )
        self._complete()
        check_epoch_ends(trainer, self._epochs[0].loader.batches_per_step)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """All loaders of the epoch are there."""
        self._complete()

    def on_train_batch_start(
        self,
        trainer: Any,
        pl_module: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Note where the batch begins."""
        self._complete()
        for epoch in self._epochs:
            epoch.measure()
        self._steps_at_start = trainer.global_step

    def on_train_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Count the batch as trained on, and log the figures of the data when it is time."""
        self._end_batch()
        self._log(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Let the next epoch begin where Lightning begins it."""
        self._steps_at_start = None
        if trainer.is_last_batch:
            self._end_epoch()

    def state_dict(self) -> dict[str, Any]:
        """The positions after the last batch that was trained on, as JSON types."""
        if self._restored is not None:
            return dict(self._restored)
        if not self._epochs:
            return {}
        if self._steps_at_start not in {None, self._trainer.global_step}:
            # Saved by somebody who is told of the batch before this callback is.
            self._end_batch()
        return {
            "version": _VERSION,
            "batches": self._batches,
            "batches_per_step": self._epochs[0].loader.batches_per_step,
            "loaders": [_state_of(epoch, is_inside=self._batches > 0) for epoch in self._epochs],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state, as soon as the loaders are there."""
        if not self._fits:
            return
        if state_dict.get("version") != _VERSION:
            raise PositionError(
                f"the state of PlayheadCallback has version {state_dict.get('version')!r}, and this"
                f" one reads {_VERSION}",
                fix="Use the version of Playhead that saved it",
            )
        if not self._epochs:
            self._restored = state_dict
        for place, epoch in enumerate(self._epochs):
            self._restore(epoch, place, state_dict)

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Let Lightning count its batches from where the loaders go on."""
        if not self._fits:
            return
        state = checkpoint["callbacks"].get(self.state_key)  # pyright: ignore[reportAttributeAccessIssue] - a callback has it
        if not state:
            if trainer.is_global_zero and checkpoint["global_step"]:
                warnings.warn(
                    "the checkpoint has no position of Playhead: it was saved without"
                    " PlayheadCallback, and the training data begin from their start",
                    stacklevel=2,
                )
            return
        then = state["batches_per_step"]
        loop = trainer.fit_loop.epoch_loop
        automatic = pl_module.automatic_optimization
        set_counters(
            checkpoint["loops"]["fit_loop"],
            Resume(
                batches=state["batches"],
                per_step_then=then,
                per_step_now=trainer.accumulate_grad_batches if automatic else then,
                counts_steps=trainer.max_steps != -1,
                knows_batch_ends=hasattr(loop, "restarted_on_train_batch_end"),
            ),
        )

    def _watch(self, strategy: Any) -> None:
        """Be shown what is trained on before anything asks for its length or a batch."""
        self._unwatch(strategy)
        usual = strategy.process_dataloader
        strategy.process_dataloader = lambda dataloader: usual(self._take(dataloader))

    def _unwatch(self, strategy: Any) -> None:
        vars(strategy).pop("process_dataloader", None)

    def _take(self, dataloader: Any) -> Any:
        if isinstance(dataloader, EpochLoader):
            dataloader = dataloader.loader
        if not isinstance(dataloader, Loader) or not self._trainer.training:
            return dataloader
        if self._is_complete or any(epoch.loader is dataloader for epoch in self._epochs):
            self._earlier, self._epochs, self._is_complete = self._epochs, [], False
        place, epoch = len(self._epochs), EpochLoader(dataloader)
        self._epochs.append(epoch)
        dataloader.follow_training()
        if self._restored is not None:
            self._restore(epoch, place, self._restored)
        elif place < len(self._earlier):
            self._replace(self._earlier[place], epoch)
        _return_to_step(dataloader)
        if self._trainer.overfit_batches and epoch.begun is None:
            epoch.begun = dataloader.state_dict()
        check_ranks(dataloader, self._trainer)
        check_accumulation(dataloader, self._trainer)
        return epoch

    def _restore(self, epoch: EpochLoader, place: int, state: Mapping[str, Any]) -> None:
        if place >= len(state["loaders"]):
            return
        saved = state["loaders"][place]
        epoch.loader.load_state_dict(saved["position"])
        epoch.steps, epoch.begun = saved["steps"], saved.get("begun")
        if saved["ended"]:
            epoch.end_pass()
        epoch.steps_before = state["batches"] // state["batches_per_step"]
        self._batches = epoch.steps_before * epoch.loader.batches_per_step

    def _replace(self, earlier: EpochLoader, epoch: EpochLoader) -> None:
        """Let a loader that was made anew go on where the one before it stands."""
        epoch.go_on_from(earlier)
        if earlier.loader is not epoch.loader:
            epoch.loader.load_state_dict(_position_of(earlier.loader))
            earlier.loader.close()

    def _complete(self) -> None:
        """Note that all loaders were shown that there are."""
        if not self._epochs or self._is_complete:
            return
        self._is_complete = True
        if self._restored is not None and len(self._restored["loaders"]) != len(self._epochs):
            raise PositionError(
                f"the checkpoint has the positions of {len(self._restored['loaders'])} loaders, and"
                f" training data are of {len(self._epochs)}",
                fix="Resume with the loaders that it was saved with",
            )
        self._restored = None
        if len({epoch.loader.batches_per_step for epoch in self._epochs}) > 1:
            raise ConfigError(
                "the loaders have different numbers of batches in a step",
                fix="Give all of them the same micro_batches_per_step",
            )

        # Named by their place where there are several.
        places = [""] if len(self._epochs) == 1 else [f"{n}/" for n in range(len(self._epochs))]
        self._logs = [
            DataLog(epoch.loader, prefix=f"data/{place}")
            for epoch, place in zip(self._epochs, places, strict=True)
        ]

    def _log(self, trainer: Any) -> None:
        step, every = trainer.global_step, trainer.log_every_n_steps
        if not (trainer.loggers and every and trainer.is_global_zero):
            return
        if step % every or step == self._logged_step:
            return
        self._logged_step = step
        figures = {name: value for log in self._logs for name, value in log.figures().items()}
        # Straight to the loggers: what a module logs becomes a metric that checkpoints may heed.
        number = trainer.fit_loop.epoch_loop._batches_that_stepped  # noqa: SLF001 - as Lightning's own callbacks
        for logger in trainer.loggers:
            logger.log_metrics(figures, step=number)

    def _end_batch(self) -> None:
        if self._steps_at_start is None:
            return
        self._steps_at_start = None
        self._batches += 1
        for epoch in self._epochs:
            epoch.mark_trained()
        if self._trainer.is_last_batch:
            self._end_epoch()

    def _end_epoch(self) -> None:
        self._batches = 0
        for epoch in self._epochs:
            epoch.begin_anew()
            if epoch.begun is not None:
                epoch.loader.load_state_dict(epoch.begun)
            else:
                epoch.loader.leave_pass()
                _return_to_step(epoch.loader)


def _state_of(epoch: EpochLoader, *, is_inside: bool) -> dict[str, Any]:
    ended = is_inside and (epoch.has_ended or epoch.loader.pass_ended)
    begun = {} if epoch.begun is None else {"begun": epoch.begun}
    return {"position": _position_of(epoch.loader), "steps": epoch.steps, "ended": ended, **begun}


def _position_of(loader: Loader) -> dict[str, Any]:
    with warnings.catch_warnings():
        # Lightning saves inside steps of its own accord; its batches are set back as well.
        warnings.simplefilter("ignore")
        return loader.state_dict()


def _return_to_step(loader: Loader) -> None:
    """Let a step of which only a part was trained on begin anew."""
    if loader.batches_into_step:
        loader.load_state_dict(_position_of(loader))
