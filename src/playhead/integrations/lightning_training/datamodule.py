"""The data module's part that is the same for both packages: loaders of a config's sections."""

from __future__ import annotations

# Command lines that are made of the arguments below need their types.
from typing import Any

from playhead.blend.sets import has_section
from playhead.errors import ConfigError
from playhead.integrations.lightning_training.follower import TrainingFollower
from playhead.loader import Loader, dataloader, validation_dataloaders

__all__ = ["SectionLoaders"]

_HOOKS = {
    "val_dataloader": "validation_ds",
    "test_dataloader": "test_ds",
    "predict_dataloader": "predict_ds",
}


class SectionLoaders:
    """Gives a Trainer the loaders of a config: of its training section, and of its evaluation sets.

    Loaders are made when the trainer asks for them, where all ranks have met.

    Parameters
    ----------
    config
        A YAML path, a mapping or a list of entries: a whole training config, or a blend alone.
    dataset
        What turns the samples of a batch into tensors; as for `playhead.dataloader`.
    evaluation_dataset
        The same for evaluation: one for all sets, or a mapping by their names; `dataset` if None.
    tokenizer
        What makes tokens of texts; as for `playhead.dataloader`.
    section
        The training section; found by its usual names if None.
    validation_section, test_section, predict_section
        The sections of evaluation; `validation_ds`, `test_ds` and `predict_ds` if None, where the
        config has them.
    overrides
        Options that win over those of the training section.
    evaluation_overrides
        Options that win over those of all evaluation sets.
    strict
        Take every unknown key for an error.

    Raises
    ------
    ConfigError, SourceNotFoundError
        When the config cannot be read.
    """

    trainer: Any = None

    def __init__(
        self,
        config: Any,
        *,
        dataset: Any = None,
        evaluation_dataset: Any = None,
        tokenizer: Any = None,
        section: str | None = None,
        validation_section: str | None = None,
        test_section: str | None = None,
        predict_section: str | None = None,
        overrides: dict[str, Any] | None = None,
        evaluation_overrides: dict[str, Any] | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._config = config
        self._dataset = dataset
        self._evaluation_dataset = dataset if evaluation_dataset is None else evaluation_dataset
        self._common = {"tokenizer": tokenizer, "strict": strict}
        self._section = section
        self._overrides = overrides or {}
        self._evaluation_overrides = evaluation_overrides or {}
        self._sections = {
            "validation_ds": validation_section,
            "test_ds": test_section,
            "predict_ds": predict_section,
        }
        self._train: Loader | None = None
        self._sets: dict[str, dict[str, Loader]] = {}
        for hook, usual in _HOOKS.items():
            if not self._has(usual):
                # Lightning looks whether a hook is written, and takes what is empty for a mistake.
                vars(self)[hook] = getattr(super(), hook)

    def train_dataloader(self) -> Loader:
        """Return the training loader: the same one, however often a trainer asks.

        Raises
        ------
        ConfigError
            When the trainer has no PlayheadCallback.
        """
        if not any(isinstance(callback, TrainingFollower) for callback in self.trainer.callbacks):
            raise ConfigError(
                "the Trainer has no PlayheadCallback, and nobody keeps the position of the data",
                fix="Write Trainer(callbacks=[PlayheadCallback()])",
            )
        ranks = self._ranks()
        made = self._train
        if made is None or (made.rank, made.world_size) != (ranks["rank"], ranks["world_size"]):
            made = dataloader(
                self._config,
                dataset=self._dataset,
                section=self._section,
                **ranks,
                **self._common,
                **self._overrides,
            )
            self._train = made
        return made

    def val_dataloader(self) -> dict[str, Loader]:
        """Return the loaders of the validation sets, by their names."""
        return self._evaluation("validation_ds")

    def test_dataloader(self) -> dict[str, Loader]:
        """Return the loaders of the test sets, by their names."""
        return self._evaluation("test_ds")

    def predict_dataloader(self) -> dict[str, Loader]:
        """Return the loaders of the sets to predict, by their names."""
        return self._evaluation("predict_ds")

    def teardown(self, stage: str) -> None:  # noqa: ARG002 - a hook
        """End the workers; a later call of the trainer starts them again."""
        made = [] if self._train is None else [self._train]
        for loader in (*made, *(one for sets in self._sets.values() for one in sets.values())):
            loader.close()

    def _evaluation(self, usual: str) -> dict[str, Loader]:
        if not self._has(usual):
            return {}
        if usual not in self._sets:
            self._sets[usual] = validation_dataloaders(
                self._config,
                dataset=self._evaluation_dataset,
                section=self._sections[usual] or usual,
                **self._ranks(),
                **self._common,
                **self._evaluation_overrides,
            )
        return self._sets[usual]

    def _has(self, usual: str) -> bool:
        """Whether there is something to evaluate: a section that was asked for has to be there."""
        given = self._evaluation_overrides.get("data_blend_dir")
        return self._sections[usual] is not None or has_section(
            self._config, usual, data_blend_dir=given
        )

    def _ranks(self) -> dict[str, int]:
        """Those that share the data: ranks of one model that is spread out get the same."""
        there = self.trainer.distributed_sampler_kwargs or {}
        return {"rank": there.get("rank", 0), "world_size": there.get("num_replicas", 1)}
