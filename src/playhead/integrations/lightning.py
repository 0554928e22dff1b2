"""Training with `lightning`: exact resume of everything that its Trainer can do."""

from __future__ import annotations

from playhead.errors import MissingExtraError
from playhead.integrations.lightning_training.datamodule import SectionLoaders
from playhead.integrations.lightning_training.follower import TrainingFollower

try:
    from lightning.pytorch import Callback, LightningDataModule
except ImportError as error:
    raise MissingExtraError(
        "playhead.integrations.lightning needs Lightning",
        fix="Install playhead[lightning]",
    ) from error

__all__ = ["PlayheadCallback", "PlayheadDataModule"]


class PlayheadCallback(TrainingFollower, Callback):
    """Keeps the position of the last batch that was trained on, in every checkpoint of a Trainer.

    `Trainer(callbacks=[PlayheadCallback()])` follows every `playhead.Loader` among the training
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


class PlayheadDataModule(SectionLoaders, LightningDataModule):
    """The data of a config: its training section, and its sets for validation, test and predict.

    The arguments are those of `SectionLoaders`; plain ones, so that LightningCLI can make it.
    """
