"""The call that NeMo's models make for their loaders, answered by Playhead."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.blend.section import INPUTS, Section
from playhead.blend.several import read_blends
from playhead.errors import ConfigError
from playhead.integrations.nemo.datasets import for_nemo
from playhead.loader.dataloader import open_loader
from playhead.loader.loader import Loader
from playhead.loader.ranks import find_topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.several import Blends

__all__ = ["NemoLoader", "get_lhotse_dataloader_from_config"]

_HOME = "nemo.collections.common.data.lhotse.dataloader"
_OF_SAMPLES = frozenset({"dataset", "batch_size", "drop_last", "sampler", "batch_sampler"})


class NoSamplesError(ConfigError, AttributeError):
    """An epoch was to be counted in samples, of which these loaders have no number."""


class NemoLoader(Loader):
    """A loader that tells NeMo what to set where it would count the samples of an epoch.

    NeMo's models look whether a loader has a `dataset`, and a few ask for its length without
    looking. NeMo's own loaders of Lhotse fail there with a `TypeError`.
    """

    def __getattr__(self, name: str) -> Any:
        if name in _OF_SAMPLES:
            # An AttributeError too, so that hasattr() says that it is not there.
            raise NoSamplesError(
                f"NeMo asks for `{name}`, to count epochs in samples; this loader counts batches",
                fix="Set trainer.max_steps, and trainer.limit_train_batches to a whole number",
            )
        message = f"{type(self).__name__} has no attribute {name!r}"
        raise AttributeError(message)


def get_lhotse_dataloader_from_config(
    config: Mapping[str, Any],
    global_rank: int,
    world_size: int,
    dataset: Any,
    tokenizer: Any = None,
) -> Loader:
    """Make a loader of a section of a NeMo config, by the same call as NeMo's.

    Parameters
    ----------
    config
        The section, such as `model.train_ds`: an OmegaConf node or a mapping. It stays as it is.
        Sections that are called for validation, test or prediction end, and every `iter()` of their
        loaders is the same whole pass.
    global_rank
        Number of this process among those that train on different data.
    world_size
        How many those are.
    dataset
        Any dataset of NeMo's that makes a batch of a `CutSet`, or one of Lhotse's, of Playhead's,
        or your own. Conversations and texts arrive there as NeMo's own classes.
    tokenizer
        The model's tokenizer, or whatever `playhead.dataloader` takes.

    Returns
    -------
    Loader
        A `NemoLoader`: its whole state is a position.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    if config.get("datasets") is not None and not any(config.get(key) for key in INPUTS):
        raise ConfigError(
            "a section with `datasets` was given to one call, which makes the loader of one set",
            where="datasets",
            fix="Where an ASR model reads it, write the paths as a list in manifest_filepath; only"
            " the DataModule of speechlm2 reads `datasets`",
        )
    topology = find_topology(global_rank, world_size)
    blends = read_blends(config)
    _expand_segments(enabled=blends.options.cuda_expandable_segments)
    return open_loader(
        blends,
        config,
        dataset=for_nemo(dataset),
        topology=topology,
        tokenizer=tokenizer,
        evaluates=_is_for_evaluation(blends),
        loader_type=NemoLoader,
    )


def _is_for_evaluation(blends: Blends) -> bool:
    names = [blend.section for blend in blends.parts.values()]
    return blends.fusion is None and all(Section((), name).is_evaluation for name in names)


def _expand_segments(*, enabled: bool) -> None:
    """Set CUDA's allocator as NeMo's function does: the memory that a model needs depends on it."""
    nemo = sys.modules.get(_HOME)
    if nemo is not None:
        nemo.maybe_set_cuda_expandable_segments(enabled=enabled)
