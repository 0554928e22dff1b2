"""From a config to a loader: the call that users make."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.blend import read_blend
from playhead.datasets import SpeechToText
from playhead.errors import ConfigError
from playhead.fetch import Fetcher, FetchSpec
from playhead.fetch.augment import Augmentation
from playhead.fetch.augment.noise import open_noise
from playhead.formats import get_format
from playhead.formats.extra_fields import ExtraLines
from playhead.loader.columns import columns_of, has_tables, slice_length_of
from playhead.loader.encoding import encoding_of
from playhead.loader.field_checks import remarks_on_fields
from playhead.loader.indexing import index_command, open_columns, shown
from playhead.loader.loader import Loader
from playhead.loader.ranks import find_topology
from playhead.loader.row_facts import Asked, open_side_columns
from playhead.loader.run import Planning
from playhead.loader.settings import batching_of, needs_tokens, shape_of, workers_of
from playhead.tokens.fields import FieldFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from playhead.blend import Blend
    from playhead.index.pack import LeafPack

__all__ = ["dataloader"]


def dataloader(
    config: str | Path | Mapping[str, Any] | Sequence[Any],
    *,
    dataset: Any = None,
    section: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    tokenizer: Any = None,
    strict: bool = False,
    **overrides: Any,
) -> Loader:
    """Make a loader of a blend of datasets.

    Parameters
    ----------
    config
        A YAML path, a mapping, a list of entries or an OmegaConf node: `input_cfg` alone, one
        section, or a whole training config.
    dataset
        What turns the cuts of a batch into tensors: any Lhotse-style dataset. The default is
        `playhead.datasets.SpeechToText`.
    section
        Which section of a whole training config to use, such as `model.train_ds`; its training
        section by default.
    rank
        Number of this process; from torch.distributed or the launcher if not given.
    world_size
        How many processes train together; given with `rank`, or not at all.
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
    if isinstance(dataset, type):
        raise ConfigError(
            f"dataset is the class {dataset.__name__} itself", fix=f"Give {dataset.__name__}(…)"
        )
    topology = find_topology(rank, world_size)
    data_blend_dir = overrides.pop("data_blend_dir", None)
    blend = read_blend(
        config,
        section=section,
        strict=strict,
        overrides=overrides,
        data_blend_dir=data_blend_dir,
    )
    if topology.rank == 0:
        for note in blend.notes:
            warnings.warn(note, stacklevel=2)
    options = blend.options
    encoding = encoding_of(tokenizer, options)
    augmentation = Augmentation.from_options(options)
    packs = open_columns(blend, config)
    for leaf, pack in zip(blend.leaves, packs, strict=True):
        ExtraLines(leaf.extra_fields).check(pack.num_rows)
    asked = Asked(
        encoding=encoding if needs_tokens(options) else None,
        fields=FieldFilter.from_options(options),
    )
    if topology.rank == 0:
        for remark in remarks_on_fields(blend, packs):
            warnings.warn(remark, stacklevel=2)
    noise = open_noise(options, data_blend_dir=data_blend_dir, command=index_command(config))
    if noise is not None and topology.rank == 0:
        for note in noise.notes:
            warnings.warn(f"noise: {note}", stacklevel=2)
    spec = FetchSpec(
        leaves=blend.leaves,
        packs=tuple(pack.ref for pack in packs),
        sample_rate=options.sample_rate,
        info=options.info,
        augmentation=augmentation,
        noise=noise,
        encoding=encoding,
        metadata_only=options.metadata_only,
        fault_tolerant=bool(options.fault_tolerant_audio_loading),
        formats=tuple({type(get_format(leaf.type)) for leaf in blend.leaves}),
    )
    return Loader(
        planning=replace(_planning(blend, packs, asked, topology.world_size), beside=_beside(spec)),
        fetch=Fetcher(spec, SpeechToText() if dataset is None else dataset),
        topology=topology,
        workers=workers_of(options),
        seed=options.seed,
        fixed_step=options.micro_batches_per_step is not None,
        on_change=options.on_change,
        bad_samples=options.bad_samples,
        dropped=[pack.dropped for pack in packs],
    )


def _beside(spec: FetchSpec) -> dict[str, str]:
    """Digests of what samples are made with, for the comparison of ranks."""
    noise = () if spec.noise is None else spec.noise.packs
    return {
        "augmentation": repr(spec.augmentation),
        "noise": " ".join(pack.digest for pack in noise),
        "tokenizer": "" if spec.encoding is None else spec.encoding.digest,
    }


def _planning(blend: Blend, packs: Sequence[LeafPack], asked: Asked, world_size: int) -> Planning:
    options = blend.options
    with shown("reading rows") as told:
        sides = [
            open_side_columns(leaf, pack, asked, told)
            for leaf, pack in zip(blend.leaves, packs, strict=True)
        ]
    return Planning(
        leaves=columns_of(
            blend.leaves,
            packs,
            sides,
            by_shard=options.locality == "shards",
            by_status=options.keep is not None,
        ),
        shape=shape_of(
            options,
            finite=blend.finite,
            has_tables=has_tables(packs),
            tokens=asked.tokens_digest,
            fields=asked.fields_digest,
            slice_length=slice_length_of(blend.leaves),
        ),
        batching=batching_of(options, world_size),
    )
