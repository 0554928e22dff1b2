"""One record of a Lhotse Shar's archive: two members, the data and their manifest."""

from __future__ import annotations

import tarfile
from io import BytesIO
from typing import NamedTuple

from playhead.errors import ArchiveError
from playhead.storage.tarheader import BLOCK, BadHeaderError, parse_header, to_text

__all__ = ["SharRecord", "parse_record"]

_REGULAR = frozenset((b"0", b"\0"))
_WITHOUT_DATA = ("nodata", "nometa")
_FIX = "Index the archive again if it has changed, else write it again with SharWriter"


class SharRecord(NamedTuple):
    """What an archive says of one field of one cut."""

    id: str
    """The cut's, as the members are called."""
    suffix: str
    """How the data are encoded, such as `flac` or `npy`: the end of their name."""
    data: bytes
    """The encoded data."""
    manifest: bytes
    """The JSON that describes them."""


def parse_record(record: bytes, where: object) -> SharRecord | None:
    """Read the two members of a record, with names of any length and alphabet.

    Parameters
    ----------
    record
        From the first header of the data, extension headers included, to the end of the manifest.
    where
        For messages.

    Returns
    -------
    SharRecord | None
        None where the cut has no such field: its members are `.nodata` and `.nometa`.

    Raises
    ------
    ArchiveError
        If the record is cut short, a header is damaged, or the members are no pair.
    """
    try:
        members = _short_members(record) or _any_members(record)
    except (BadHeaderError, tarfile.TarError, ValueError) as error:
        raise ArchiveError(
            f"the record of the archive cannot be read: {error}", where=str(where), fix=_FIX
        ) from None
    if len(members) != 2:
        raise ArchiveError(
            f"the record of the archive holds {len(members)} members and not two",
            where=str(where),
            fix=_FIX,
        )
    (name, data), (other_name, manifest) = members
    stem, _, suffix = name.rpartition(".")
    other_stem, _, other_suffix = other_name.rpartition(".")
    if stem != other_stem or other_suffix not in ("json", "nometa"):
        raise ArchiveError(
            f"the members {name!r} and {other_name!r} of the archive are not one record",
            where=str(where),
            fix=_FIX,
        )
    if other_suffix in _WITHOUT_DATA:
        return None
    if suffix in _WITHOUT_DATA:
        raise ArchiveError(
            f"the archive describes {other_name!r} and has no data for it",
            where=str(where),
            fix=_FIX,
        )
    return SharRecord(stem, suffix, data, manifest)


def _short_members(record: bytes) -> list[tuple[str, bytes]]:
    """Read members that have one header each; nothing where one has more."""
    members: list[tuple[str, bytes]] = []
    start = 0
    while start < len(record):
        block = record[start : start + BLOCK]
        if len(block) < BLOCK:
            raise BadHeaderError("one of its headers is cut short")
        name, size, kind = parse_header(block)
        if kind not in _REGULAR:
            return []
        start += BLOCK
        payload = record[start : start + size]
        if len(payload) < size:
            raise BadHeaderError(f"its member {to_text(name)!r} is cut short")
        members.append((to_text(name), payload))
        start += -size % BLOCK + size
    return members


def _any_members(record: bytes) -> list[tuple[str, bytes]]:
    """Read members as `tarfile` does, which takes ten times as long."""
    members: list[tuple[str, bytes]] = []
    with tarfile.open(
        fileobj=BytesIO(record), mode="r:", encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                members.append((member.name, file.read()))
    return members
