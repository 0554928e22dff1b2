"""Members and objects of AIStore, asked for by their names: archives are never opened."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from playhead.errors import ManifestError, StaleIndexError
from playhead.fetch.access_mode import AccessMode
from playhead.fetch.member_checks import REINDEX
from playhead.formats import BadRowError, SourcePair, format_of
from playhead.index.build_audios import AUDIO_FIELD
from playhead.storage.access import stats, store_of
from playhead.storage.ais_objects import Wanted
from playhead.storage.get_batch import served_by_aistore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.leaf_rows import LeafRows
    from playhead.fetch.parts import PartRequest
    from playhead.fetch.timings import Timings
    from playhead.index.pack import LeafPack
    from playhead.storage.aistore import AIStore

__all__ = ["MembersByName"]


class _Row(NamedTuple):
    """A row that says what its members are called."""

    leaf: Leaf
    pack: LeafPack
    row: int
    at: int
    """Its place in the batch."""

    @property
    def manifest(self) -> str:
        return self.pack.shards.uris[int(self.pack.shard[self.row])]

    @property
    def where(self) -> str:
        """What errors call it."""
        byte = int(self.pack.row_offset[self.row])
        return f"leaf {self.leaf.name}, {self.manifest}, byte {byte}"

    def names(self, data: bytes) -> Sequence[str | None]:
        """What the row's members are called, in order; `data` are its bytes."""
        if self.pack.entry.checksum(data, ()) != self.pack.row_crc[self.row]:
            raise StaleIndexError(
                "the row is not the one that was indexed", where=self.where, fix=REINDEX
            )
        reader: Any = format_of(self.leaf)
        member = getattr(reader, "member", None)
        if member is not None:
            return [member(data)]
        try:
            columns = reader.columns(self.leaf, self._pair(), data)
        except BadRowError as error:
            raise ManifestError(error.what, where=self.where, fix=error.fix) from error
        if columns.audios is not None:
            return [audio.member for audio in columns.audios[0]]
        return columns.members or []

    def _pair(self) -> SourcePair:
        """The manifest and the archives that follow it in the leaf's table of files."""
        uris, shard = self.pack.shards.uris, int(self.pack.shard[self.row])
        later = [number for number in self.pack.entry.manifests if number > shard]
        end = min(later, default=len(uris))
        tars = (uris[number] for number in range(shard + 1, end))
        return SourcePair(manifest=self.manifest, tars=tuple(tars))


class _Member(NamedTuple):
    """A member whose name is not known before its row is read."""

    row: _Row
    number: int
    """Which of the row's it is."""
    tar: str
    """The archive."""
    size: int
    """Bytes, as the index knows them; -1 where it does not."""
    place: int
    """Where its bytes go."""


class MembersByName:
    """What of a micro-batch is fetched by name, gathered from all leaves, then read together.

    Parameters
    ----------
    access
        How members of archives on AIStore are fetched.

    Attributes
    ----------
    names
        What the member of a row is called, by the row's place in the batch, once it is read.
    missing
        Archive and name of a member that exists nowhere, by the row's place; of several the first.
    files
        Files that rows name by URLs, as far as they were taken; None for what exists nowhere.
    """

    def __init__(self, access: AccessMode) -> None:
        self.names: dict[int, str] = {}
        self.missing: dict[int, str] = {}
        self.files: dict[str, bytes | None] = {}
        self._access = access
        self._members: list[_Member] = []

    @property
    def sizes(self) -> list[int]:
        """Bytes of each member that was taken, as the index knows them; -1 where it does not."""
        return [member.size for member in self._members]

    def take_members(self, group: LeafRows, first: int) -> NDArray[np.bool_]:
        """Take the members that are fetched by name, of rows that have one each.

        Parameters
        ----------
        group
            The rows.
        first
            Where the places of members begin.

        Returns
        -------
        NDArray[np.bool_]
            Which are taken, shape (K,).
        """
        leaf, pack, at, rows, _ = group
        tars = pack.tar[rows]
        taken = np.isin(tars, self._served(pack, np.unique(tars).tolist()))
        for one in np.flatnonzero(taken).tolist():
            row = _Row(leaf, pack, int(rows[one]), int(at[one]))
            size = int(pack.audio_size[row.row]) if pack.entry.has_offsets else -1
            uri = pack.shards.uris[int(tars[one])]
            self._members.append(_Member(row, 0, uri, size, first + row.at))
        return taken

    def take_turns(
        self, group: LeafRows, first: int, asked: list[PartRequest]
    ) -> list[PartRequest]:
        """Take the audio turns that are fetched by name.

        Parameters
        ----------
        group
            The rows.
        first
            Where the places of parts begin.
        asked
            All parts of the rows, in order.

        Returns
        -------
        list[PartRequest]
            The same, of which those that are taken ask for no bytes.
        """
        leaf, pack, at, rows, _ = group
        served = set(self._served(pack, {one.file for one in asked if one.has_header}))
        # Rows that are members have their audio beside them, however they call it.
        if not served or getattr(format_of(leaf), "rows_are_members", False):
            return asked
        row_of = dict(zip(at.tolist(), rows.tolist(), strict=True))
        turns: Counter[int] = Counter()
        left = list(asked)
        for number, one in enumerate(asked):
            if one.field != AUDIO_FIELD:
                continue
            turn = turns[one.place]
            turns[one.place] += 1
            if one.file in served:
                row = _Row(leaf, pack, row_of[one.place], one.place)
                size = one.size if pack.entry.has_offsets else -1
                self._members.append(_Member(row, turn, one.path, size, first + number))
                left[number] = one._replace(file=-1, has_header=False)
        return left

    def apart(self, groups: Sequence[LeafRows]) -> tuple[list[LeafRows], list[LeafRows]]:
        """Rows that are complete before anything is read by name, and all others.

        What the first name by URLs can come with the members of the others.
        """
        if self._access is not AccessMode.BATCH:
            return [], list(groups)
        late = {id(member.row.leaf) for member in self._members}
        return (
            [group for group in groups if id(group.leaf) not in late],
            [group for group in groups if id(group.leaf) in late],
        )

    def take_files(self, uris: Sequence[str]) -> None:
        """Take the files on AIStore, of those that rows name by URLs."""
        if self._access is AccessMode.BATCH:
            self.files |= dict.fromkeys(filter(served_by_aistore, uris))

    def read(self, data: list[bytes | None], timings: Timings) -> None:
        """Read all that was taken.

        Parameters
        ----------
        data
            What else was read, rows first; what is read now goes to its places.
        timings
            Where reads are counted.

        Raises
        ------
        SourceNotFoundError
            If an archive does not exist.
        StorageError
            If AIStore fails.
        StaleIndexError, ManifestError
            If a row or a member is not what was indexed.
        """
        if not (self._members or self.files):
            return
        names: dict[int, Sequence[str | None]] = {}
        wanted: list[Wanted] = []
        for member in self._members:
            row = member.row
            if row.at not in names:
                names[row.at] = row.names(data[row.at] or row.pack.row_bytes(row.row) or b"")
            name = _name(names[row.at], member)
            wanted.append(Wanted(member.tar, name))
            self.names[row.at] = name
        files = list(self.files)
        wanted += map(Wanted, files)
        store = cast("AIStore", store_of(wanted[0].uri))
        read = store.batch if self._access is AccessMode.BATCH else store.get
        with timings.reading(wanted[0].uri, 0, len(wanted)):
            found = read(wanted)
        members = len(self._members)
        self.files.update(zip(files, found[members:], strict=True))
        timings.num_bytes += sum(map(len, filter(None, found[members:])))
        missing = zip(self._members, found, strict=False)
        # A member that is gone is one bad sample; where a whole archive is, that is no matter of
        # samples.
        stats(sorted({member.tar for member, content in missing if content is None}))
        for member, one, content in zip(self._members, wanted[:members], found, strict=False):
            if content is None:
                self.missing.setdefault(member.row.at, one.where)
                continue
            if member.size not in (-1, len(content)):
                raise StaleIndexError(
                    f"the member has {len(content)} bytes and had {member.size} when it was"
                    " indexed",
                    where=one.where,
                    fix=REINDEX,
                )
            timings.num_bytes += len(content)
            data[member.place] = content

    def _served(self, pack: LeafPack, files: Sequence[int] | set[int]) -> list[int]:
        """Which files are archives that AIStore serves by name."""
        if self._access is AccessMode.RANGES:
            return []
        uris = pack.shards.uris
        return [number for number in files if number >= 0 and served_by_aistore(uris[number])]


def _name(names: Sequence[str | None], member: _Member) -> str:
    name = names[member.number] if member.number < len(names) else None
    if not name:
        raise ManifestError(
            "the row names no member of its archive", where=member.row.where, fix=REINDEX
        )
    return name
