"""Ranges of objects that lie near each other, read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from playhead.storage.base import ByteRange

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Block", "near_together", "of_distinct_sizes", "taken_apart"]


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


def of_distinct_sizes(blocks: Sequence[Block]) -> list[Block]:
    """Widen blocks to the left until no two of an object have one size, which tells them apart.

    Parameters
    ----------
    blocks
        What `near_together` made, with more bytes between blocks than an object has blocks.

    Examples
    --------
    >>> blocks = near_together([ByteRange("a", 0, 5), ByteRange("a", 90, 5)], gap=10)
    >>> [block.span[1:] for block in of_distinct_sizes(blocks)]
    [(0, 5), (89, 6)]
    """
    taken: set[tuple[str, int]] = set()
    widened: list[Block] = []
    for (uri, offset, size), places in blocks:
        more = 0
        while (uri, size + more) in taken and more < offset:
            more += 1
        taken.add((uri, size + more))
        widened.append(Block(ByteRange(uri, offset - more, size + more), places))
    return widened


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
