"""The loader of a phase: the one that trains, around a dataset that says what it was given."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.blend.several import read_blends
from playhead.datasets import SpeechLanguage, SpeechToText
from playhead.datasets.ids import Ids
from playhead.errors import PositionError
from playhead.loader.dataloader import open_loader
from playhead.loader.planned import plan_blends
from playhead.validate.watched import Watched
from playhead.version import own_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.blend.several import Blends
    from playhead.loader import Loader
    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.planned import PlannedConfig
    from playhead.loader.ranks import Topology
    from playhead.loader.run import Planning
    from playhead.validate.options import PhaseOptions

__all__ = ["Opened", "config_digest", "open_phase", "open_truth"]

# The seed of configs that draw one anew at every start, and could not be compared.
_SEED_OF_DRAWN = 0


class _IdsOfAudio(Ids):
    """Ids, of samples whose audio is read and not decoded."""

    reads_audio = True


class Opened(NamedTuple):
    """The loader of a phase."""

    loader: Loader
    """It."""
    num_workers: int
    """Its worker processes."""


def open_phase(options: PhaseOptions, topology: Topology, *, say: Callable[[str], None]) -> Opened:
    """Open a config as training does.

    The batches are those of `playhead.validate.watched.Watched`.

    Parameters
    ----------
    options
        What is asked for.
    topology
        Whose share of each step is handed out.
    say
        Told what differs from training, in a sentence.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    blends = _read(options, say)
    try:
        loader = open_loader(
            blends,
            options.config,
            dataset=_dataset(options, blends),
            topology=topology,
            tokenizer=options.tokenizer,
            data_blend_dir=options.data_blend_dir,
            around=Watched,
        )
    except PositionError as error:
        # So many ranks cannot share a step: whoever chose them can choose others.
        error.exit_code = 2
        raise
    return Opened(loader, blends.options.num_workers)


def open_truth(
    options: PhaseOptions, *, say: Callable[[str], None], world_size: int = 1
) -> PlannedConfig:
    """Open the columns of a config alone.

    Parameters
    ----------
    options, say
        As for `open_phase`.
    world_size
        How many ranks are planned for; it is no matter to what belongs to a pass.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    return plan_blends(
        _read(options, say),
        options.config,
        tokenizer=options.tokenizer,
        world_size=world_size,
        data_blend_dir=options.data_blend_dir,
    )


def config_digest(planning: Planning | FusedPlanning) -> str:
    """Digest of all that a plan follows from, but for the position and the size of a step.

    Parameters
    ----------
    planning
        What is planned, as it was opened: a state that is loaded may change it.
    """
    digest = hashlib.sha256(own_version().encode())
    digest.update(repr(getattr(planning, "rule", None)).encode())
    for name, part in planning.parts.items():
        batching = replace(part.batching, micro_batches_per_step=1)
        digest.update(repr((name, part.shape, batching, sorted(part.beside.items()))).encode())
        for leaf in part.leaves:
            facts = (leaf.key, leaf.weight, leaf.num_rows, leaf.digest(leaf.num_rows))
            digest.update(repr(facts).encode())
    return digest.hexdigest()


def _read(options: PhaseOptions, say: Callable[[str], None]) -> Blends:
    def read(**more: Any) -> Blends:
        return read_blends(
            options.config,
            section=options.section,
            overrides={**options.overrides, **more},
            data_blend_dir=options.data_blend_dir,
        )

    blends = read()
    seed = blends.options.seed
    if isinstance(seed, int):
        return blends
    say(f"the config draws its seed anew at every start ({seed}): it is {_SEED_OF_DRAWN} here")
    return read(seed=_SEED_OF_DRAWN)


def _dataset(options: PhaseOptions, blends: Blends) -> Any:
    if options.mode == "fast":
        return Ids() if options.metadata_only else _IdsOfAudio()
    if options.dataset is not None:
        return options.dataset
    kinds = {leaf.kind for blend in blends.parts.values() for leaf in blend.leaves}
    return SpeechToText() if kinds <= {"cut"} else SpeechLanguage()
