"""One blend, opened: what its plan is a function of, and what makes its batches."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import ConfigError
from playhead.fetch import FetchSpec
from playhead.fetch.access_mode import access_mode
from playhead.fetch.augment import Augmentation
from playhead.fetch.augment.noise import open_noise
from playhead.formats import get_format
from playhead.index.member_offsets import demand_member_offsets
from playhead.loader.field_checks import remarks_on_fields
from playhead.loader.indexing import index_command
from playhead.loader.locality import cache_notes, cache_settings_of
from playhead.loader.opened import asked_of, open_packs, planning_of, sides_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend import Blend
    from playhead.config import Options
    from playhead.index.pack import LeafPack
    from playhead.loader.run import Planning

__all__ = ["Part", "open_part"]


class Part(NamedTuple):
    """A blend that is ready to be planned and fetched."""

    options: Options
    """Its options."""
    planning: Planning
    """What its plan is a function of."""
    spec: FetchSpec
    """What its batches are made from."""
    packs: list[LeafPack]
    """The columns of its leaves."""

    @property
    def dropped(self) -> list[Mapping[str, int]]:
        """For each leaf the rows that were left out of its index, by reason."""
        return [pack.dropped for pack in self.packs]


def open_part(
    blend: Blend,
    config: Any,
    *,
    tokenizer: Any,
    world_size: int,
    data_blend_dir: str | None = None,
    is_speaker: bool = True,
) -> Part:
    """Open the columns of a blend, and everything else that its batches are made from.

    Parameters
    ----------
    blend
        The blend.
    config
        What the caller gave for it, for the command that a message names.
    tokenizer
        What makes tokens of texts; None where nothing does.
    world_size
        How many processes train together.
    data_blend_dir
        What `${data_blend_dir}` stands for.
    is_speaker
        Whether this process tells people what they should know; the others are silent.

    Raises
    ------
    PlayheadError
        Of many kinds: what happened, where, and what to do.
    """

    def say(note: str) -> None:
        if is_speaker:
            warnings.warn(note, stacklevel=4)

    for note in blend.notes:
        say(note)
    options = blend.options
    _check_lengths(blend)
    augmentation = Augmentation.from_options(options)
    packs = open_packs(blend, config)
    for note in () if options.metadata_only else demand_member_offsets(packs):
        say(note)
    encoding = tokens_of(blend, packs, tokenizer, say=say)
    if is_speaker:
        for remark in remarks_on_fields(blend, packs):
            say(remark)
    noise = open_noise(options, data_blend_dir=data_blend_dir, command=index_command(config))
    for note in () if noise is None else noise.notes:
        say(f"noise: {note}")
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
        cache=cache_settings_of(options),
        access=access_mode(),
        formats=tuple({type(get_format(leaf.type)) for leaf in blend.leaves}),
    )
    asked = asked_of(blend, encoding)
    planning = planning_of(blend, packs, sides_of(blend, packs, asked), asked, world_size)
    for note in cache_notes(blend.leaves, packs, planning.shape.locality, options.cache_bytes):
        say(note)
    return Part(
        options,
        replace(planning, beside=_beside(spec)),
        spec,
        packs,
    )


def _check_lengths(blend: Blend) -> None:
    """Refuse to measure texts in seconds: they would all be as long as nothing."""
    options = blend.options
    if options.use_multimodal_sampling:
        return
    for leaf in blend.leaves:
        if leaf.kind == "cut":
            continue
        for name in ("batch_duration", "bucket_duration_bins"):
            if getattr(options, name) is not None:
                raise ConfigError(
                    f"{name} measures samples in seconds, and leaf {leaf.name} ({leaf.type}) has"
                    " text",
                    fix="Set use_multimodal_sampling: true and batch_tokens in its place, or"
                    " batch_size alone",
                )


def _beside(spec: FetchSpec) -> dict[str, str]:
    """Digests of what samples are made with, for the comparison of ranks."""
    noise = () if spec.noise is None else spec.noise.packs
    return {
        "augmentation": repr(spec.augmentation),
        "noise": " ".join(pack.digest for pack in noise),
        "tokenizer": "" if spec.encoding is None else spec.encoding.digest,
    }
