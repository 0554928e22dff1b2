"""From a config to a loader: the call that users make."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.blend.several import read_blends
from playhead.datasets import SpeechToText
from playhead.errors import ConfigError
from playhead.fetch import Fetcher
from playhead.loader.course import Course
from playhead.loader.loader import Loader
from playhead.loader.locality import may_keep
from playhead.loader.modalities import check_locators, check_modalities, check_rates
from playhead.loader.peer_group import open_peer_group
from playhead.loader.peers import find_peers
from playhead.loader.planned import plan_blends
from playhead.loader.ranks import find_topology
from playhead.loader.read_ahead import AheadPart, ReadAhead
from playhead.loader.settings import workers_of
from playhead.loader.whole_passes import WholePasses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh

    from playhead.blend.several import Blends
    from playhead.loader.part import Part
    from playhead.loader.peer_group import PeerGroup
    from playhead.loader.ranks import Topology
    from playhead.plan import MicroBatch

__all__ = ["dataloader", "open_loader"]


def dataloader(
    config: str | Path | Mapping[str, Any] | Sequence[Any],
    *,
    dataset: Any = None,
    section: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    mesh: DeviceMesh | None = None,
    dp_dims: str | int | Sequence[str | int] | None = None,
    broadcast: bool | ProcessGroup = False,
    tokenizer: Any = None,
    strict: bool = False,
    **overrides: Any,
) -> Loader:
    """Make a loader of a blend of datasets, or with `multi_config` of several blends.

    Parameters
    ----------
    config
        A YAML path, a mapping, a list of entries or an OmegaConf node: `input_cfg` alone, one
        section, or a whole training config.
    dataset
        What turns the samples of a batch into tensors: any Lhotse-style dataset, or one of
        `playhead.datasets`. The default is `playhead.datasets.SpeechToText`, which takes audio
        alone; `playhead.datasets.SpeechLanguage` takes texts and conversations too.
    section
        Which section of a whole training config to use, such as `model.train_ds`; its training
        section by default.
    rank
        Number of this process among those that train on different batches; from the mesh,
        torch.distributed or the launcher if not given.
    world_size
        How many share each step; given with `rank`, or not at all.
    mesh
        All processes, where some share their batches: those with the same coordinates in the
        data-parallel dimensions are given the same.
    dp_dims
        Names or numbers of the data-parallel dimensions of the mesh; by what frameworks call them
        if not given.
    broadcast
        Let one process read for all that share its batches, and send them; without a mesh the
        process group of those. By default each reads for itself.
    tokenizer
        What makes tokens of texts: the path of a SentencePiece model or a `tokenizer.json`, a
        mapping of languages to such paths, or an object with `encode` or `text_to_ids`.
    strict
        Take every unknown key for an error.
    **overrides
        Options that win over the config's; `data_blend_dir` is what `${data_blend_dir}` stands for.

    Returns
    -------
    Loader
        An iterable of batches; the same on every machine for the same data, config and seed.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    peers = find_peers(mesh, dp_dims, broadcast)
    topology = find_topology(rank, world_size, peers)
    data_blend_dir = overrides.pop("data_blend_dir", None)
    blends = read_blends(
        config,
        section=section,
        strict=strict,
        overrides=overrides,
        data_blend_dir=data_blend_dir,
    )
    return open_loader(
        blends,
        config,
        dataset=SpeechToText() if dataset is None else dataset,
        topology=topology,
        tokenizer=tokenizer,
        data_blend_dir=data_blend_dir,
        broadcast=open_peer_group(peers) if broadcast is not False and peers else None,
    )


def open_loader(
    blends: Blends,
    config: Any,
    *,
    dataset: Any,
    topology: Topology,
    tokenizer: Any = None,
    data_blend_dir: str | None = None,
    around: Callable[[Fetcher], Callable[[MicroBatch], Any]] | None = None,
    evaluates: bool = False,
    loader_type: type[Loader] = Loader,
    broadcast: PeerGroup | None = None,
) -> Loader:
    """Make a loader of blends that were read.

    Parameters
    ----------
    blends
        The blends.
    config
        What they were read from, for the command that a message names.
    dataset
        What turns the samples of a batch into tensors.
    topology
        Whose share of each step the loader hands out.
    tokenizer
        What makes tokens of texts; None where nothing does.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    around
        Puts something around what makes the batches, to look at them where they are made; None
        puts nothing there.
    evaluates
        Whether every pass is the same one, from its start, whatever happened to the last.
    loader_type
        What kind of loader it is.
    broadcast
        Those to whom the first of them sends what it reads; None where each process reads.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """
    if isinstance(dataset, type):
        raise ConfigError(
            f"dataset is the class {dataset.__name__} itself", fix=f"Give {dataset.__name__}(…)"
        )
    for note in blends.notes if topology.is_speaker else ():
        warnings.warn(note, stacklevel=3)
    check_modalities(dataset, [leaf for blend in blends.parts.values() for leaf in blend.leaves])
    opened = plan_blends(
        blends,
        config,
        tokenizer=tokenizer,
        world_size=topology.world_size,
        data_blend_dir=data_blend_dir,
        is_speaker=topology.is_speaker,
    )
    specs = opened.specs
    check_locators(dataset, specs)
    if blends.fusion == "zip":
        check_rates(dataset, specs)
    options = blends.options
    fetch = Fetcher(specs[0], dataset, *specs[1:])
    return loader_type(
        planning=opened.planning,
        fetch=fetch if around is None else around(fetch),
        topology=topology,
        workers=replace(workers_of(options), persistent=not evaluates),
        seed=options.seed,
        fixed_step=options.micro_batches_per_step is not None,
        on_change=options.on_change,
        bad_samples=options.bad_samples,
        dropped=[dropped for part in opened.parts.values() for dropped in part.dropped],
        read_ahead=_read_ahead(list(opened.parts.values()), fetch),
        course=WholePasses if evaluates else Course,
        broadcast=broadcast,
    )


def _read_ahead(parts: Sequence[Part], fetch: Fetcher) -> ReadAhead | None:
    """What fetches shards before they are needed, where whole copies may be kept of any."""
    if not any(may_keep(part.packs) for part in parts):
        return None
    return ReadAhead(
        [
            AheadPart(part.spec, part.packs, with_audio)
            for part, with_audio in zip(parts, fetch.with_audio, strict=True)
        ]
    )
