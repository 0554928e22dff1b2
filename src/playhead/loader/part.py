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
from playhead.index.build_parts import NOT_ROWS
from playhead.index.member_offsets import demand_member_offsets
from playhead.loader.audio_lengths import audio_tokens_of
from playhead.loader.columns import columns_of, slice_length_of
from playhead.loader.encoding import encoding_of
from playhead.loader.field_checks import remarks_on_fields
from playhead.loader.indexing import index_command, open_columns, shown
from playhead.loader.locality import cache_notes, cache_settings_of, locality_of
from playhead.loader.row_facts import Asked, open_side_columns
from playhead.loader.run import Planning
from playhead.loader.settings import (
    batching_of,
    measures_tokens,
    needs_tokens,
    shape_of,
    text_window_of,
)
from playhead.tokens.extra import extra_lines
from playhead.tokens.fields import FieldFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.blend import Blend
    from playhead.config import Options
    from playhead.index.pack import LeafPack

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
    packs = open_columns(blend, config)
    _check_rows(blend, packs)
    for note in () if options.metadata_only else demand_member_offsets(packs):
        say(note)
    measured = tokenizer is not None and measures_tokens(options)
    audio = audio_tokens_of(options, blend.leaves, packs) if measured else None
    encoding = encoding_of(tokenizer, options, audio, say=say)
    asked = Asked(
        encoding=encoding if needs_tokens(options) else None,
        fields=FieldFilter.from_options(options),
    )
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
    planning = _planning(blend, packs, asked, world_size)
    for note in cache_notes(blend.leaves, packs, planning.shape.locality, options.cache_bytes):
        say(note)
    return Part(
        options,
        replace(planning, beside=_beside(spec)),
        spec,
        packs,
    )


def _check_rows(blend: Blend, packs: Sequence[LeafPack]) -> None:
    """Refuse a leaf of which the index has left out all rows, or whose extra lines are others."""
    for leaf, pack in zip(blend.leaves, packs, strict=True):
        lines = extra_lines(leaf)
        if lines is not None:
            lines.check(pack.num_rows)
        # A leaf that never had a row is no matter of what left them out: its plan says so.
        if pack.num_rows == 0 and not NOT_ROWS.issuperset(pack.dropped):
            why = ", ".join(f"{reason}: {count:,}" for reason, count in pack.dropped.items())
            raise ConfigError(
                f"no row of leaf {leaf.name} is left: {why}",
                fix="Correct what leaves them out, or the entry of the blend",
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


def _planning(blend: Blend, packs: Sequence[LeafPack], asked: Asked, world_size: int) -> Planning:
    options, encoding = blend.options, asked.encoding
    with shown("reading rows") as told:
        sides = [
            open_side_columns(leaf, pack, asked, told)
            for leaf, pack in zip(blend.leaves, packs, strict=True)
        ]
    measured = None if encoding is None else encoding.audio
    in_windows = encoding is not None and text_window_of(options) is not None
    return Planning(
        leaves=columns_of(
            blend.leaves,
            packs,
            sides,
            by_status=options.keep is not None,
        ),
        shape=shape_of(
            options,
            finite=blend.finite,
            locality=locality_of(blend.leaves, packs),
            tokens=asked.tokens_digest,
            fields=asked.fields_digest,
            slice_length=slice_length_of(blend.leaves),
            audio_tokens=None if measured is None else measured.text,
            text_overhead=encoding.text_overhead if encoding is not None and in_windows else 0,
        ),
        batching=batching_of(options, world_size),
        keeps_locality=options.locality is None,
    )
