"""The columns of a blend, opened, and what is known of its rows beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.index.build_parts import NOT_ROWS
from playhead.loader.audio_lengths import audio_tokens_of
from playhead.loader.columns import columns_of, slice_length_of
from playhead.loader.encoding import encoding_of
from playhead.loader.indexing import open_columns, shown
from playhead.loader.locality import locality_of
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
    from collections.abc import Callable, Sequence

    from playhead.blend import Blend
    from playhead.index.pack import LeafPack
    from playhead.loader.row_facts import SideColumns
    from playhead.tokens.encoding import Encoding

__all__ = ["asked_of", "open_packs", "planning_of", "sides_of", "tokens_of"]


def open_packs(blend: Blend, config: Any) -> list[LeafPack]:
    """Open the packs of a blend's leaves; build what is missing.

    Parameters
    ----------
    blend
        The blend.
    config
        What the caller gave for it, for the command that a message names.

    Raises
    ------
    PlayheadError
        When a source cannot be used, a leaf has no row left, or building would take too long.
    """
    packs = open_columns(blend, config)
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
    return packs


def tokens_of(
    blend: Blend, packs: Sequence[LeafPack], tokenizer: Any, *, say: Callable[[str], None]
) -> Encoding | None:
    """Return what makes tokens of a blend's samples; None where nothing does.

    Parameters
    ----------
    blend, packs
        The blend and its columns.
    tokenizer
        What makes tokens of texts; None where nothing does.
    say
        Told what has no effect, in a sentence.

    Raises
    ------
    ConfigError
        When the tokenizer cannot be used, or samples cannot be measured without one.
    """
    options = blend.options
    measured = tokenizer is not None and measures_tokens(options)
    audio = audio_tokens_of(options, blend.leaves, packs) if measured else None
    return encoding_of(tokenizer, options, audio, say=say)


def asked_of(blend: Blend, encoding: Encoding | None) -> Asked:
    """Return what the plan of a blend asks of rows that no pack holds.

    Parameters
    ----------
    blend
        The blend.
    encoding
        What makes tokens of its samples.
    """
    return Asked(
        encoding=encoding if needs_tokens(blend.options) else None,
        fields=FieldFilter.from_options(blend.options),
    )


def sides_of(blend: Blend, packs: Sequence[LeafPack], asked: Asked) -> list[SideColumns]:
    """Read what is asked of the rows of a blend, and count what is not counted yet.

    Parameters
    ----------
    blend, packs
        The blend and its columns.
    asked
        What is asked of its rows.

    Raises
    ------
    PlayheadError
        When a row cannot be used.
    """
    with shown("reading rows") as told:
        return [
            open_side_columns(leaf, pack, asked, told)
            for leaf, pack in zip(blend.leaves, packs, strict=True)
        ]


def planning_of(
    blend: Blend,
    packs: Sequence[LeafPack],
    sides: Sequence[SideColumns],
    asked: Asked,
    world_size: int,
) -> Planning:
    """Return what the plan of a blend is a function of.

    Parameters
    ----------
    blend, packs
        The blend and its columns.
    sides
        What is known of its rows beside them.
    asked
        What is asked of its rows.
    world_size
        How many processes train together.

    Raises
    ------
    PlayheadError
        When options contradict each other.
    """
    options, encoding = blend.options, asked.encoding
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
