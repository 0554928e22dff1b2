"""Where the members of a tar archive begin, found by hopping from header to header.

Payloads of local archives are never read; among very small members the kernel is asked to fetch
ahead. Of objects on a store short payloads are read and long ones are not, see `ObjectBlocks`.
Archives that are compressed, and those that a command writes (`pipe:`), are read whole.

Understood are the v7, ustar, GNU and PAX formats: long names, names that are not ASCII, sizes above
8 GiB, folders, links, archives without an end mark and archives with zeros behind it. What would be
misread in silence is refused by name: a header whose checksum is wrong, a member that runs past
the end of the file, anything behind the end mark, sparse members, parts of multi-volume archives.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from playhead.errors import ArchiveError
from playhead.index.object_blocks import LEAST_BLOCK
from playhead.index.tar_bytes import open_tar
from playhead.storage import access
from playhead.storage.tarheader import (
    BLOCK,
    BadHeaderError,
    Header,
    parse_header,
    parse_pax,
    to_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import numpy as np
    from numpy.typing import NDArray

    from playhead.index.tar_bytes import TarBytes

__all__ = ["Archive", "Member", "is_zero_from"]

_MAX_EXTENSION = 16 << 20
_TAIL_PIECE = 1 << 20
_Pread: TypeAlias = "Callable[[int, int], bytes]"
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
        An archive: a path or a URI. Where it is compressed, offsets are those of the tar.
    least_block
        Bytes that a request of an object asks for at least.
    known
        Where its members begin, if an index says it, shape (N,): of an object, their headers are
        asked for together then.

    Attributes
    ----------
    end
        First byte after the last member, where the end mark begins; known once the pass is over.
    size
        Bytes of the tar; known once the pass is over.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        least_block: int = LEAST_BLOCK,
        known: NDArray[np.int64] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._known = known
        self._least_block = least_block
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
        with open_tar(self.path, self._least_block, self._known) as source:
            yield from self._hop(source)

    def _hop(self, source: TarBytes) -> Generator[Member]:
        pread, self.size = source.pread, source.size
        start = offset = hops = 0
        next_look = _AHEAD_BYTES // 4
        name = b""
        while block := pread(BLOCK, offset):
            if not any(block):
                self._check_tail(pread, offset)
                break
            name, length, kind = self._parse(block, offset)
            if kind in _EXTENSIONS:
                after = self._end_of(name, offset, length)
                self._remember(pread, kind, offset + BLOCK, length)
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
                    source.look_ahead(offset)
        # The size of a stream is known only now.
        self.size = source.size
        self._check_end(name, start, offset)
        self.end = offset

    def _check_end(self, name: bytes, start: int, offset: int) -> None:
        if self.size == 0:
            raise ArchiveError("the archive is empty", where=self.path, fix=_REWRITE)
        if offset > self.size:
            raise self._cut_short(name, start, offset)
        if start != offset:
            raise self._error("the archive ends behind an extension header", start)

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
            raise self._cut_short(name, offset, after)
        return after

    def _cut_short(self, name: bytes, offset: int, after: int) -> ArchiveError:
        return self._error(
            f"the archive is cut short: its member {to_text(name)!r} ends at byte {after:,} "
            f"and the file at byte {self.size:,}",
            offset,
        )

    def _has_payload(self, kind: bytes, name: bytes, offset: int) -> bool:
        if kind in _REFUSED:
            raise self._error(f"the member {to_text(name)!r} is {_REFUSED[kind]}", offset)
        is_old_folder = kind == b"\0" and name.endswith(b"/")
        return not is_old_folder and kind not in _WITHOUT_PAYLOAD

    def _remember(self, pread: _Pread, kind: bytes, payload: int, length: int) -> None:
        """Keep what an extension header says of the member behind it, or of all behind it."""
        if length > _MAX_EXTENSION:
            raise self._error(f"an extension header of {length:,} bytes is too long", payload)
        data = pread(length, payload)
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

    def _check_tail(self, pread: _Pread, offset: int) -> None:
        found = _first_nonzero(pread, offset)
        if found is not None:
            raise self._error(
                f"there are data at byte {found:,}, behind the end mark: archives that were joined "
                "by `cat`, or a damaged one",
                offset,
                "Join archives with `tar --concatenate`, or write them again",
            )

    def _error(self, what: str, offset: int, fix: str = _REWRITE) -> ArchiveError:
        return ArchiveError(what, where=f"{self.path}, byte {offset:,}", fix=fix)


def _first_nonzero(pread: _Pread, offset: int) -> int | None:
    while piece := pread(_TAIL_PIECE, offset):
        if piece.count(0) != len(piece):
            return offset + len(piece) - len(piece.lstrip(b"\0"))
        offset += len(piece)
    return None


def is_zero_from(path: str | os.PathLike[str], offset: int) -> bool:
    """Say whether a file holds nothing but zeros from a byte on, as behind an end mark.

    Parameters
    ----------
    path
        A file or object that is not compressed.
    offset
        The first byte to look at.
    """
    return all(
        piece.count(0) == len(piece)
        for piece in access.stream(os.fspath(path), offset, _TAIL_PIECE)
    )
