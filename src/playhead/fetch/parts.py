"""What belongs to rows and lies elsewhere: which bytes to ask for, and what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.blend.types import has_turns
from playhead.fetch.member_checks import checked_header
from playhead.formats import Part
from playhead.index.build_audios import AUDIO_FIELD
from playhead.storage.compression import is_archive
from playhead.storage.tarheader import BLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.index.pack import LeafPack

__all__ = ["PartRequest", "gathered", "part_requests"]


class PartRequest(NamedTuple):
    """One part of one row."""

    place: int
    """The row's place in the batch."""
    field: str
    """What it is."""
    file: int
    """Place of its file in the leaf's shard table; -1 where no bytes are wanted."""
    path: str
    """The file."""
    offset: int
    """First byte of the part in it."""
    size: int
    """Bytes of the part."""
    duration_us: int
    """Length of what is audio."""
    has_header: bool
    """Whether it is a member whose header lies right before it and comes with it."""

    @property
    def first_byte(self) -> int:
        """First byte that is read."""
        return self.offset - (BLOCK if self.has_header else 0)

    @property
    def num_bytes(self) -> int:
        """Bytes that are read."""
        return self.size + (BLOCK if self.has_header else 0)


def part_requests(
    leaf: Leaf, pack: LeafPack, rows: NDArray[np.int64], at: NDArray[np.int64], *, with_audio: bool
) -> list[PartRequest]:
    """Say which parts some rows have.

    Parameters
    ----------
    leaf, pack
        The source and its columns.
    rows
        The rows, shape (K,).
    at
        Place of each in the batch, shape (K,).
    with_audio
        Also ask for the bytes of what lies in archives. Without, audio turns come without bytes,
        other fields of archives not at all.
    """
    fields = pack.entry.fields
    if not fields:
        return []
    parts = pack.parts(rows)
    turn = fields.index(AUDIO_FIELD) if has_turns(leaf.type) else -1
    uris = pack.shards.uris
    facts = zip(
        np.repeat(at, parts.num_parts).tolist(),
        parts.field.tolist(),
        parts.file.tolist(),
        parts.offset.tolist(),
        parts.size.tolist(),
        parts.duration_us.tolist(),
        strict=True,
    )
    asked: list[PartRequest] = []
    for place, field, file, offset, size, duration in facts:
        path = "" if file < 0 else uris[file]
        is_turn = field == turn
        wanted = file >= 0 and (with_audio or not (is_turn or is_archive(path)))
        if wanted or is_turn:
            name, number = fields[field], file if wanted else -1
            has_header = is_turn and wanted
            asked.append(PartRequest(place, name, number, path, offset, size, duration, has_header))
    return asked


def gathered(asked: Sequence[PartRequest], data: Sequence[bytes | None]) -> dict[int, list[Part]]:
    """Return the parts of each row, by its place in the batch, in the order of the fields.

    Parameters
    ----------
    asked
        What was asked for.
    data
        What was read for each; None where nothing was.

    Raises
    ------
    StaleIndexError
        If a member is not of the size that the index knows.
    """
    parts: dict[int, list[Part]] = {}
    for one, found in zip(asked, data, strict=True):
        content = found or b""
        if one.has_header:
            checked_header(content[:BLOCK], one.path, one.offset, one.size)
            content = content[BLOCK:]
        part = Part(one.field, content, one.path, one.offset, one.duration_us)
        parts.setdefault(one.place, []).append(part)
    return parts
