"""What becomes of drawn rows before the filters: speed, truncation, windows and padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.plan.keyed import Purpose, derive, key
from playhead.plan.permute import ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from playhead.plan.items import Items
    from playhead.plan.settings import Shape

__all__ = ["SHORTEST_PART_US", "SPEEDS", "number_of_parts", "reshaped", "reshaped_by_key"]

SPEEDS = (900, 1000, 1100)
"""Speeds that are chosen from, in thousandths."""

SHORTEST_PART_US = 1000
"""What is left of a row after its last whole window is a part of its own from here on (µs).

Half a sample at 8 kHz would do for counting; resampled, so short a part may have none left.
"""


def reshaped_by_key(items: Items, shape: Shape, words: NDArray[np.uint64], seed: int) -> Items:
    """Return the samples that drawn rows give, with keyed choices.

    Parameters
    ----------
    items
        Whole rows, one a draw.
    shape
        What becomes of them.
    words
        Hash of the key of each leaf of the roster.
    seed
        The seed of the window.
    """
    if not shape.reshapes:
        return items
    of = (words[items.leaf], items.pass_, items.row)
    speed = None
    if shape.perturb_speed:
        hashes = derive(key(seed, Purpose.SPEED), *of)
        speed = np.array(SPEEDS, dtype=np.int16)[(hashes % np.uint64(len(SPEEDS))).astype(np.int64)]
    offset = None
    if shape.truncate_us is not None and shape.truncate_offset == "random":
        offset = derive(key(seed, Purpose.OFFSET), *of)
    return reshaped(items, shape, speed, offset)


def reshaped(
    items: Items,
    shape: Shape,
    speed: NDArray[np.int16] | None,
    offset: NDArray[np.uint64] | None,
) -> Items:
    """Return the samples that rows give, parts of a row one after the other.

    Lengths are rounded up to whole microseconds, so that limits stay hard bounds. A row without a
    length, or of length 0, stays one sample.

    Parameters
    ----------
    items
        Whole rows.
    shape
        What becomes of them.
    speed
        Speed of each (thousandths), shape (M,); None changes none.
    offset
        A hash of each that a random offset of truncation is taken from, shape (M,).
    """
    if speed is not None:
        slowed = (items.length * 1000 + (speed - 1)) // speed
        items = items.with_lengths(np.where(items.length > 0, slowed, items.length), speed=speed)
    if shape.truncate_us is not None:
        items = _truncated(items, shape, offset)
    if shape.window_us is not None:
        items = _in_windows(items, shape.window_us, shape.hop_us or shape.window_us)
    if shape.pad_us is not None:
        padded = np.maximum(items.length, shape.pad_us)
        items = items.with_lengths(np.where(items.length >= 0, padded, items.length))
    return items


def _truncated(items: Items, shape: Shape, offset: NDArray[np.uint64] | None) -> Items:
    most = shape.truncate_us
    assert most is not None
    extra = np.maximum(items.length - most, 0)
    if not extra.any():
        return items
    if shape.truncate_offset == "end":
        start = extra
    elif offset is None:
        start = np.zeros_like(extra)
    else:
        start = (offset % (extra + 1).astype(np.uint64)).astype(np.int64)
    span = np.where(extra > 0, most, np.int64(-1))
    return items.with_lengths(np.minimum(items.length, most), start=start, span=span)


def number_of_parts(length_us: NDArray[np.int64], window_us: int, hop_us: int) -> NDArray[np.int64]:
    """Into how many windows rows are cut: as many as it takes to reach their end.

    As Lhotse's ``compute_num_windows`` has it, in whole microseconds: in floats it now and then
    counts a last window of nothing.

    Parameters
    ----------
    length_us
        Lengths (µs), shape (M,).
    window_us, hop_us
        Length of a window, and from the start of one to the next (µs).

    Examples
    --------
    >>> number_of_parts(np.array([0, 500, 1000, 1010, 1100, 2000]) * 1000, 1_000_000, 1_000_000)
    array([1, 1, 1, 2, 2, 2])
    >>> number_of_parts(np.array([5_900_000, 6_100_000]), 1_000_000, 3_000_000)
    array([2, 3])
    """
    hops = -(np.minimum(window_us - length_us, 0) // hop_us)
    return np.maximum(hops + (length_us - hops * hop_us >= SHORTEST_PART_US), 1)


def _in_windows(items: Items, window: int, hop: int) -> Items:
    cut = items.length > window
    if not cut.any():
        return items
    parts = number_of_parts(items.length, window, hop)
    part = ranges(np.zeros_like(parts), parts)
    items = items.chosen(np.repeat(np.arange(len(parts)), parts))
    whole, begin = items.length, part * hop
    length = np.minimum(whole - begin, window)
    start = begin if items.start is None else items.start + begin
    span = np.where(whole > window, length, -1 if items.span is None else items.span)
    return items.with_lengths(length, start=start, span=span, part=part.astype(np.int32))
