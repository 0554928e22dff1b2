"""A loader in place of a Trainer's own."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.integrations.huggingface.callback import PlayheadCallback
from playhead.integrations.huggingface.epochs import Epochs
from playhead.integrations.huggingface.inputs import ModelInputs, names_taken
from playhead.loader import Loader

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments
else:
    Trainer = object

__all__ = ["PlayheadTrainerMixin", "training_batches"]

_WITHOUT_MEANING = (
    "data_seed",
    "dataloader_drop_last",
    "dataloader_num_workers",
    "dataloader_persistent_workers",
    "dataloader_prefetch_factor",
    "group_by_length",
    "per_device_train_batch_size",
    "train_sampling_strategy",
)
"""Arguments of a Trainer about batches that it does not make here."""


class PlayheadTrainerMixin(Trainer):
    """Lets any Trainer take loaders as `train_dataset` and `eval_dataset`.

    Examples
    --------
    >>> from transformers import Seq2SeqTrainer
    >>> class SpeechTrainer(PlayheadTrainerMixin, Seq2SeqTrainer):
    ...     "Trains on what a loader gives."
    """

    def get_train_dataloader(self) -> Any:
        """Return the batches to train on."""
        loader: Any = self.train_dataset
        if not isinstance(loader, Loader):
            return super().get_train_dataloader()
        return training_batches(self, loader)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Return the batches of an evaluation.

        Parameters
        ----------
        eval_dataset
            A finite loader, the name of one in `eval_dataset`, or what a Trainer takes otherwise.
        """
        chosen: Any = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(chosen, str):
            sets: Any = self.eval_dataset
            chosen = sets[chosen]
        if not isinstance(chosen, Loader):
            return super().get_eval_dataloader(eval_dataset)
        return _evaluation_batches(self, chosen)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """Return the batches of a prediction.

        Parameters
        ----------
        test_dataset
            A finite loader, or what a Trainer takes otherwise.
        """
        if not isinstance(test_dataset, Loader):
            return super().get_test_dataloader(test_dataset)
        return _evaluation_batches(self, test_dataset)


def training_batches(trainer: Trainer, loader: Loader) -> Epochs:
    """Return what a Trainer's own `get_train_dataloader` gives to train on a loader.

    The Trainer gets a `PlayheadCallback`, and skips nothing of what it resumes: the loader goes
    on by itself.

    Parameters
    ----------
    trainer
        The Trainer, whose next training it is for.
    loader
        Makes the batches.

    Raises
    ------
    ConfigError
        When the Trainer is to find a batch size, which is not its own here.
    """
    args = trainer.args
    if args.auto_find_batch_size:
        raise ConfigError(
            "auto_find_batch_size has no batch size to lower: the loader makes the batches",
            fix="Set auto_find_batch_size=False, and find sizes with playhead oomptimizer",
        )
    args.ignore_data_skip = True
    said = _without_meaning(args)
    if said and loader.rank == 0:
        warnings.warn(
            f"{', '.join(said)} of the TrainingArguments say nothing here: batches are made as the"
            " loader's config says",
            stacklevel=2,
        )
    loader.follow_training()
    callbacks = trainer.callback_handler.callbacks
    named = [callback for callback in callbacks if isinstance(callback, PlayheadCallback)]
    others = [callback for callback in callbacks if callback not in named]
    # Loggers get what the first of all has added to the logs.
    callbacks[:] = [*(named or [PlayheadCallback()]), *others]
    return Epochs(loader, names_taken(trainer), ranks=_ranks_of(trainer))


def _without_meaning(args: TrainingArguments) -> list[str]:
    defaults = {field.name: field.default for field in dataclasses.fields(args)}
    return [
        name
        for name in _WITHOUT_MEANING
        if name in defaults and getattr(args, name) != defaults[name]
    ]


def _ranks_of(trainer: Trainer) -> int:
    """How many processes train on batches of their own: those of one model get the same."""
    shared = (f"get_{kind}_size" for kind in ("tp", "cp", "sp"))
    sizes = [getattr(trainer, name)() for name in shared if hasattr(trainer, name)]
    return trainer.args.world_size // math.prod(sizes)


def _evaluation_batches(trainer: Trainer, loader: Loader) -> ModelInputs:
    if not loader.finite:
        raise ConfigError(
            "an evaluation on an endless loader would not end",
            fix="Make its loader with force_finite=True",
        )
    if loader is trainer.train_dataset or loader.follows_training:
        raise ConfigError(
            "an evaluation on the loader that is trained on would move it",
            fix="Make another loader for the evaluation, of the same config if need be",
        )
    return ModelInputs(loader, names_taken(trainer))
