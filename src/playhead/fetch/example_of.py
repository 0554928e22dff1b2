"""The sample of one row, with what the row itself does not know."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from playhead.errors import ManifestError, PlayheadError
from playhead.formats import BadRowError, Example, time_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.blend.leaf import Leaf
    from playhead.formats import Part, Place
    from playhead.index.pack import LeafPack

__all__ = ["example_of", "finish"]


def example_of(reader: Any, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
    """Return what a type makes of a row; what fails in a type of somebody's own names the row.

    Parameters
    ----------
    reader
        The type's reader.
    leaf, place, row, parts
        As for `Format.example`.

    Raises
    ------
    ManifestError
        If the row cannot be used.
    """
    try:
        example = reader.example(leaf, place, row, parts)
    except BadRowError as error:
        raise ManifestError(error.what, where=str(place), fix=error.fix) from error
    except (PlayheadError, MemoryError, OSError):
        raise
    except Exception as error:
        raise ManifestError(
            f"the input type {leaf.type!r} fails: {type(error).__name__}: {error}",
            where=str(place),
            fix="Correct the row, or the type",
        ) from error
    if not isinstance(example, Example):
        raise ManifestError(
            f"the input type {leaf.type!r} makes a {type(example).__name__} of a row",
            where=str(place),
            fix="Return an Example from its method example",
        )
    return example


def finish(example: Example, leaf: Leaf, pack: LeafPack, row: int) -> None:
    """Give a sample what its leaf and the index know of it.

    Parameters
    ----------
    example
        The sample; it is changed.
    leaf, pack, row
        Its leaf, the columns of that, and its row.
    """
    example.channel_selector = leaf.options.channel_selector
    # Of what transforms made longer, the index knows the new length.
    if example.audio is not None and example.audio.duration is None and not leaf.transforms:
        example.audio = replace(example.audio, duration=_measured(pack, row))
    time_turns(example, int(pack.duration_us[row]))
    if leaf.outer_tags:
        example.custom = {**example.custom, **leaf.outer_tags}


def _measured(pack: LeafPack, row: int) -> float:
    """Seconds of a row that says no length, as the index found it: files may have grown since."""
    samples, rate = int(pack.num_samples[row]), int(pack.rate[row])
    if samples and rate:
        return round(samples / rate, ndigits=8)
    return int(pack.duration_us[row]) / 1_000_000
