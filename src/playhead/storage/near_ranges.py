"""Ranges of objects that lie near each other, read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from playhead.storage.base import ByteRange

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Block", "near_together", "taken_apart"]


class Block(NamedTuple):
    """Some ranges of one object as one."""

    span: ByteRange
    """From the first byte of any to the last of any."""
    places: list[int]
    """Which ranges it holds."""


def near_together(ranges: Sequence[ByteRange], gap: int) -> list[Block]:
    """Put ranges together that overlap or have at most `gap` bytes between them.

    Ranges of no bytes are in no block.

    Examples
    --------
    >>> ranges = [ByteRange("a", 30, 5), ByteRange("a", 0, 10), ByteRange("a", 12, 4)]
    >>> [(block.span[1:], block.places) for block in near_together(ranges, gap=2)]
    [((0, 16), [1, 2]), ((30, 5), [0])]
    """
    blocks: list[Block] = []
    for place in sorted(range(len(ranges)), key=lambda place: ranges[place][:2]):
        uri, offset, size = ranges[place]
        if size == 0:
            continue
        if blocks:
            (before, start, length), places = blocks[-1]
            if before == uri and offset <= start + length + gap:
                places.append(place)
                end = max(start + length, offset + size)
                blocks[-1] = Block(ByteRange(uri, start, end - start), places)
                continue
        blocks.append(Block(ByteRange(uri, offset, size), [place]))
    return blocks


def taken_apart(
    blocks: Sequence[Block], data: Sequence[bytes], ranges: Sequence[ByteRange]
) -> list[bytes]:
    """Return the bytes of each range.

    Parameters
    ----------
    blocks
        What `near_together` made of them.
    data
        The bytes of each block.
    ranges
        The ranges.
    """
    found = [b""] * len(ranges)
    for block, content in zip(blocks, data, strict=True):
        for place in block.places:
            start = ranges[place].offset - block.span.offset
            found[place] = content[start : start + ranges[place].size]
    return found
