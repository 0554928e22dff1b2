"""Whether an archive has the member that its index names, as far as one header says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.errors import StaleIndexError
from playhead.storage.tarheader import (
    BLOCK,
    BadHeaderError,
    parse_header,
    parse_pax,
    to_text,
)

if TYPE_CHECKING:
    from playhead.storage.tarheader import Header

__all__ = ["NAME_BYTES", "REINDEX", "checked_header", "checked_name", "whole_name"]

REINDEX: Final = (
    "Run `playhead index` again (`playhead pack --overwrite` where index_pack names the pack); if"
    " the file should not have changed, restore it"
)
"""What to do about a file that is not the one that was indexed."""

NAME_BYTES: Final = 4 * BLOCK
"""Bytes before a payload that hold its member's name, unless that has more than a thousand."""

# A name of 100 bytes or more stands in an extension header, whole or not at all in this one.
_SHORT_NAME = 100


def checked_header(block: bytes, tar: str, offset: int, size: int) -> Header:
    """Read the header before a payload, and compare its size with the index.

    Parameters
    ----------
    block
        The 512 bytes before the payload.
    tar, offset, size
        The archive, and where the index says that the payload begins and how long it is.

    Raises
    ------
    StaleIndexError
        If it is no header, or one of another size.
    """
    try:
        header = parse_header(block)
    except BadHeaderError as error:
        found = str(error)
    else:
        # Sizes from 8 GiB on may stand in an extension header only.
        if header.size == size or size >= 1 << 33:
            return header
        found = f"the header says {header.size} bytes"
    raise StaleIndexError(
        f"the archive has no member of {size} bytes where the index has one: {found}",
        where=f"{tar}, byte {offset - BLOCK}",
        fix=REINDEX,
    )


def checked_name(block: bytes, tar: str, offset: int, size: int, wanted: str | None) -> str:
    """Return a member's name as its header has it, compared with the row's as far as that goes.

    Parameters
    ----------
    block, tar, offset, size
        As for `checked_header`.
    wanted
        The name that the row gives, if it gives one.

    Raises
    ------
    StaleIndexError
        If it is another member.
    """
    header = checked_header(block, tar, offset, size)
    found = to_text(header.name)
    if not wanted or found.removeprefix("./") == wanted.removeprefix("./"):
        return found
    if len(header.name) >= _SHORT_NAME or not wanted.isascii():
        return found
    raise StaleIndexError(
        f"the row's audio is {wanted!r} and the archive has {found!r} there",
        where=f"{tar}, byte {offset - BLOCK}",
        fix=REINDEX,
    )


def whole_name(blocks: bytes, header: Header) -> str:
    """Return a member's name, which an extension header may say where its own cannot.

    Parameters
    ----------
    blocks
        What lies before the payload, whole blocks of 512 bytes.
    header
        The last of them.
    """
    for count in range(1, len(blocks) // BLOCK - 1):
        start = len(blocks) - (count + 2) * BLOCK
        payload = blocks[start + BLOCK : -BLOCK]
        try:
            extension = parse_header(blocks[start : start + BLOCK])
            if not 0 < len(payload) - extension.size + 1 <= BLOCK:
                continue
            if extension.kind == b"L":
                return to_text(payload[: extension.size].split(b"\0", 1)[0])
            if extension.kind == b"x":
                name = parse_pax(payload[: extension.size]).get(b"path", header.name)
                return to_text(name)
        except BadHeaderError:
            continue
    return to_text(header.name)
