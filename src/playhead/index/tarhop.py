"""Where the members of a tar archive begin, found by hopping from header to header.

Payloads are never read; among very small members the kernel is asked to fetch ahead. Understood
are the v7, ustar, GNU and PAX formats: long names, names that are not ASCII, sizes above 8 GiB,
folders, links, archives without an end mark and archives with zeros behind it. What would be
misread in silence is refused by name: a header whose checksum is wrong, a member that runs past
the end of the file, anything behind the end mark, sparse members, parts of multi-volume archives.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import ArchiveError, SourceNotFoundError
from playhead.storage.tarheader import (
    BLOCK,
    BadHeaderError,
    Header,
    parse_header,
    parse_pax,
    to_text,
)

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Archive", "Member", "is_zero_from"]

_MAX_EXTENSION = 16 << 20
_TAIL_PIECE = 1 << 20
# Where members are this small, one long read of a cold disk is quicker than a short one a header.
_DENSE_BYTES = 32 << 10
_AHEAD_BYTES = 4 << 20
_REGULAR = frozenset((b"0", b"\0", b"7"))
_WITHOUT_PAYLOAD = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))
_EXTENSIONS = frozenset((b"x", b"X", b"g", b"L", b"K"))
_REFUSED = {
    b"S": "stored sparse: its bytes in the archive are not its bytes",
    b"M": "the rest of a member of another volume",
}
_REWRITE = "Write the archive again"


class Member(NamedTuple):
    """One regular member of an archive."""

    name: str
    """The complete name, extension headers applied."""
    header: int
    """First byte of the member's first header block, extension headers included."""
    payload: int
    """First byte of the payload."""
    size: int
    """Bytes of payload."""


class Archive:
    """One pass over an archive.

    Parameters
    ----------
    path
        A local, uncompressed archive.

    Attributes
    ----------
    end
        First byte after the last member, where the end mark begins; known once the pass is over.
    size
        Bytes of the file; known once the pass has begun.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.end = 0
        self.size = 0
        self._own: dict[bytes, bytes] = {}
        self._shared: dict[bytes, bytes] = {}

    def hop(self) -> Generator[Member]:
        """Give the regular members in their order.

        Raises
        ------
        SourceNotFoundError
            There is no such file.
        ArchiveError
            The archive is damaged, cut short, or cannot be read member by member; the message
            names the member and the byte.
        """
        try:
            file = Path(self.path).open("rb", buffering=0)  # noqa: SIM115  (closed below)
        except FileNotFoundError as error:
            raise SourceNotFoundError("there is no such archive", where=self.path) from error
        with file:
            self.size = os.fstat(file.fileno()).st_size
            if self.size == 0:
                raise ArchiveError("the archive is empty", where=self.path, fix=_REWRITE)
            yield from self._hop(file.fileno())

    def _hop(self, file: int) -> Generator[Member]:
        start = offset = hops = 0
        next_look = _AHEAD_BYTES // 4
        while block := os.pread(file, BLOCK, offset):
            if not any(block):
                self._check_tail(file, offset)
                break
            name, length, kind = self._parse(block, offset)
            if kind in _EXTENSIONS:
                after = self._end_of(name, offset, length)
                self._remember(file, kind, offset + BLOCK, length)
                # Lhotse counts a member from its own extension headers, never from a shared one.
                start = start if self._own else after
                offset = after
                continue
            if self._own or self._shared:
                name, length = self._extend(name, length, offset)
            has_payload = self._has_payload(kind, name, offset)
            after = self._end_of(name, offset, length if has_payload else 0)
            if has_payload and kind in _REGULAR:
                yield Member(to_text(name), start, offset + BLOCK, length)
            start = offset = after
            hops += 1
            if offset >= next_look:
                next_look = offset + _AHEAD_BYTES
                if offset < hops * _DENSE_BYTES:
                    _read_ahead(file, offset)
        if start != offset:
            raise self._error("the archive ends behind an extension header", start)
        self.end = offset

    def _parse(self, block: bytes, offset: int) -> Header:
        if len(block) < BLOCK:
            raise self._error("the archive is cut short inside a header", offset)
        try:
            return parse_header(block)
        except BadHeaderError as error:
            raise self._error(f"the header is damaged: {error}", offset) from None

    def _end_of(self, name: bytes, offset: int, length: int) -> int:
        after = offset + BLOCK + ((length + BLOCK - 1) & -BLOCK)
        if after > self.size:
            raise self._error(
                f"the archive is cut short: its member {to_text(name)!r} ends at byte {after:,} "
                f"and the file at byte {self.size:,}",
                offset,
            )
        return after

    def _has_payload(self, kind: bytes, name: bytes, offset: int) -> bool:
        if kind in _REFUSED:
            raise self._error(f"the member {to_text(name)!r} is {_REFUSED[kind]}", offset)
        is_old_folder = kind == b"\0" and name.endswith(b"/")
        return not is_old_folder and kind not in _WITHOUT_PAYLOAD

    def _remember(self, file: int, kind: bytes, payload: int, length: int) -> None:
        """Keep what an extension header says of the member behind it, or of all behind it."""
        if length > _MAX_EXTENSION:
            raise self._error(f"an extension header of {length:,} bytes is too long", payload)
        data = os.pread(file, length, payload)
        if kind == b"L":
            self._own[b"path"] = data.split(b"\0", 1)[0]
        elif kind == b"K":
            self._own[b"linkpath"] = data
        else:
            try:
                (self._shared if kind == b"g" else self._own).update(parse_pax(data))
            except BadHeaderError as error:
                raise self._error(f"the header is damaged: {error}", payload) from None

    def _extend(self, name: bytes, length: int, offset: int) -> tuple[bytes, int]:
        """Apply what the extension headers said to the member that they belong to."""
        records = self._shared | self._own
        self._own = {}
        name = records.get(b"GNU.sparse.name", records.get(b"path", name))
        if any(key.startswith(b"GNU.sparse.") for key in records):
            raise self._error(f"the member {to_text(name)!r} is {_REFUSED[b'S']}", offset)
        size = records.get(b"size", b"")
        if size and not size.isdigit():
            raise self._error(f"the member {to_text(name)!r} has the size {size!r}", offset)
        return name, int(size) if size else length

    def _check_tail(self, file: int, offset: int) -> None:
        found = _first_nonzero(file, offset)
        if found is not None:
            raise self._error(
                f"there are data at byte {found:,}, behind the end mark: archives that were joined "
                "by `cat`, or a damaged one",
                offset,
                "Join archives with `tar --concatenate`, or write them again",
            )

    def _error(self, what: str, offset: int, fix: str = _REWRITE) -> ArchiveError:
        return ArchiveError(what, where=f"{self.path}, byte {offset:,}", fix=fix)


def _read_ahead(file: int, offset: int) -> None:
    """Ask the kernel to fetch what comes next while we go on; nothing is copied to us."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, offset, 2 * _AHEAD_BYTES, os.POSIX_FADV_WILLNEED)


def _first_nonzero(file: int, offset: int) -> int | None:
    while piece := os.pread(file, _TAIL_PIECE, offset):
        if piece.count(0) != len(piece):
            return offset + len(piece) - len(piece.lstrip(b"\0"))
        offset += len(piece)
    return None


def is_zero_from(path: str | os.PathLike[str], offset: int) -> bool:
    """Say whether a file holds nothing but zeros from a byte on, as behind an end mark.

    Parameters
    ----------
    path
        A local file.
    offset
        The first byte to look at.
    """
    with Path(path).open("rb", buffering=0) as file:
        return _first_nonzero(file.fileno(), offset) is None
