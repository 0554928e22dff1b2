"""Padding of short samples with silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.fetch.augment.draws import below
from playhead.fetch.augment.stretch import num_samples

if TYPE_CHECKING:
    from lhotse.cut import Cut

__all__ = ["pad_cut"]

_DIRECTIONS = ("left", "right", "both")


def pad_cut(cut: Any, seconds: float, direction: str, key: int) -> Cut:
    """Pad a cut to a length; it keeps its id, and a longer one stays as it is.

    Parameters
    ----------
    cut
        The cut.
    seconds
        The length wanted.
    direction
        `left`, `right`, `both` (the odd sample goes to the right), or `random`: one of the three.
    key
        The sample's.
    """
    if direction == "random":
        direction = _DIRECTIONS[below(key, "padding", len(_DIRECTIONS))]
    if not cut.has_recording:
        return cut.pad(duration=seconds, direction=direction, preserve_id=True)
    wanted = num_samples(round(seconds * 1_000_000), cut.sampling_rate)
    if direction != "both":
        return cut.pad(num_samples=wanted, direction=direction, preserve_id=True)
    half = max(0, wanted - cut.num_samples) // 2
    cut = cut.pad(num_samples=cut.num_samples + half, direction="left", preserve_id=True)
    return cut.pad(num_samples=wanted, direction="right", preserve_id=True)
