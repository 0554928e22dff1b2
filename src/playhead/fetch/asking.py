"""What reading micro-batches takes: which bytes of which files; nothing is read here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.fetch.kept import is_kept
from playhead.fetch.leaf_rows import LeafRows
from playhead.fetch.member_checks import NAME_BYTES
from playhead.fetch.members_by_name import MembersByName
from playhead.fetch.parts import part_requests
from playhead.fetch.ranges import Ranges
from playhead.formats import TableFormat, format_of
from playhead.index.concatenation import joined_rows
from playhead.index.member_offsets import demand_member_offsets
from playhead.plan import permute
from playhead.storage.compression import is_archive
from playhead.storage.tarheader import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.access_mode import AccessMode
    from playhead.fetch.freshness import Freshness
    from playhead.fetch.kept import Kept
    from playhead.fetch.parts import PartRequest
    from playhead.index.pack import LeafPack
    from playhead.plan.batch import MicroBatch

__all__ = ["Asked", "Asking"]


class Asked(NamedTuple):
    """What a micro-batch needs."""

    groups: list[LeafRows]
    """Its rows, leaf by leaf."""
    first: NDArray[np.int64]
    """Place of each sample's first row among all rows; and how many rows there are."""
    ranges: Ranges
    """Rows go to places 0 and on, what lies before members to as many behind them, members to as
    many behind these, then all parts."""
    named: MembersByName
    """What is fetched by name."""
    parts: list[PartRequest]
    """What belongs to rows and lies elsewhere."""
    tables: list[LeafRows]
    """Rows of tables, which are read stretch by stretch."""

    @property
    def num_rows(self) -> int:
        """Rows of all samples."""
        return int(self.first[-1])


class Asking:
    """Says what micro-batches need; opens packs when it first must.

    Parameters
    ----------
    leaves
        The leaves, in the order that micro-batches count them.
    open_pack
        Gives the columns of a leaf by its number; called once for each.
    kept
        What reads the files of which there are whole copies.
    fresh
        Told of every file, with what the index knows of it.
    access_mode
        How members of archives on AIStore are fetched.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        open_pack: Callable[[int], LeafPack],
        kept: Kept,
        fresh: Freshness,
        access_mode: AccessMode,
    ) -> None:
        self._leaves = leaves
        self._open = open_pack
        self._kept = kept
        self._fresh = fresh
        self._access = access_mode
        self._packs: dict[int, LeafPack] = {}
        self._starts: dict[int, NDArray[np.int64]] = {}

    def of(self, micro_batch: MicroBatch, *, with_audio: bool) -> Asked:
        """Say what a micro-batch needs.

        Parameters
        ----------
        micro_batch
            The micro-batch.
        with_audio
            Also ask for members of archives, and for files that rows name by URLs.

        Raises
        ------
        IndexMissingError
            If an index does not know where members lie.
        """
        groups, first = self._grouped(micro_batch)
        if with_audio:
            demand_member_offsets([group.pack for group in groups])
        size = int(first[-1])
        ranges, named = Ranges(self._kept, self._access), MembersByName(self._access)
        parts: list[PartRequest] = []
        tables: list[LeafRows] = []
        for group in groups:
            reader: Any = format_of(group.leaf)
            if isinstance(reader, TableFormat):
                tables.append(group)
                continue
            self._ask_for_rows(ranges, group, reader, size)
            if with_audio:
                self._ask_for_members(ranges, named, group, size)
            parts += self._ask_for_parts(ranges, named, group, 3 * size + len(parts), with_audio)
        return Asked(groups, first, ranges, named, parts, tables)

    def pack(self, number: int) -> LeafPack:
        """The columns of a leaf, by its number."""
        pack = self._packs.get(number)
        if pack is None:
            pack = self._packs[number] = self._open(number)
        return pack

    def joined(self, number: int) -> NDArray[np.int64] | None:
        """Where each sample of a leaf whose rows are joined begins among its rows."""
        how = self._leaves[number].concatenation
        if how is None:
            return None
        starts = self._starts.get(number)
        if starts is None:
            starts = self._starts[number] = joined_rows(self.pack(number).duration_us, how)
        return starts

    def _grouped(self, micro_batch: MicroBatch) -> tuple[list[LeafRows], NDArray[np.int64]]:
        """The rows of a batch by leaf, and the place of each sample's first row among all."""
        leaves = np.unique(micro_batch.leaf).tolist()
        count = np.ones(len(micro_batch.row), np.int64)
        for number in leaves:
            starts = self.joined(number)
            if starts is not None:
                mine = np.flatnonzero(micro_batch.leaf == number)
                samples = micro_batch.row[mine]
                count[mine] = starts[samples + 1] - starts[samples]
        first = np.concatenate([[0], np.cumsum(count)])
        groups: list[LeafRows] = []
        for number in leaves:
            mine = np.flatnonzero(micro_batch.leaf == number)
            rows, at = micro_batch.row[mine], first[mine]
            starts = self.joined(number)
            if starts is not None:
                within = permute.ranges(np.zeros_like(mine), count[mine])
                rows = np.repeat(starts[rows], count[mine]) + within
                at = np.repeat(at, count[mine]) + within
            by_shard = micro_batch.by_shard is not None and bool(micro_batch.by_shard[mine].any())
            groups.append(LeafRows(self._leaves[number], self.pack(number), at, rows, by_shard))
        return groups, first

    def _ask_for_rows(self, ranges: Ranges, group: LeafRows, reader: Any, size: int) -> None:
        pack, rows = group.pack, group.rows
        if getattr(reader, "rows_are_members", False):
            self._ask_for_names(ranges, group, size)
        if pack.row_bytes(int(rows[0])) is None:
            files = self._files(ranges, group, pack.shard[rows])
            sizes = pack.row_size[rows].astype(np.int64)
            ranges.add(files, pack.row_offset[rows], sizes, group.at)

    def _ask_for_names(self, ranges: Ranges, group: LeafRows, size: int) -> None:
        """Ask for the headers of rows that are members: samples may be called as they are."""
        pack, uris = group.pack, group.pack.shards.uris
        shards = pack.shard[group.rows]
        tars = [number for number in np.unique(shards).tolist() if is_archive(uris[number])]
        mine = np.flatnonzero(np.isin(shards, tars))
        if len(mine):
            rows, files = group.rows[mine], self._files(ranges, group, shards[mine])
            sizes = np.minimum(pack.row_offset[rows], NAME_BYTES)
            ranges.add(files, pack.row_offset[rows] - sizes, sizes, group.at[mine] + size)

    def _ask_for_members(
        self, ranges: Ranges, named: MembersByName, group: LeafRows, size: int
    ) -> None:
        pack = group.pack
        tarred = pack.tar[group.rows] >= 0
        tarred &= ~named.take_members(group, 2 * size)
        rows, at = group.rows[tarred], group.at[tarred]
        if len(rows) == 0:
            return
        files = self._files(ranges, group, pack.tar[rows])
        # A member's header lies right before it: looking at it costs no request of its own.
        header = pack.audio_offset[rows] - BLOCK
        ranges.add(files, header, np.full(len(rows), BLOCK, np.int64), at + size)
        ranges.add(files, pack.audio_offset[rows], pack.audio_size[rows], at + 2 * size)

    def _ask_for_parts(
        self, ranges: Ranges, named: MembersByName, group: LeafRows, first: int, with_audio: bool
    ) -> list[PartRequest]:
        """Ask for what belongs to the rows and lies elsewhere."""
        asked = part_requests(group.leaf, group.pack, group.rows, group.at, with_audio=with_audio)
        asked = named.take_turns(group, first, asked)
        at = np.array([number for number, one in enumerate(asked) if one.file >= 0], np.int64)
        if len(at):
            read = [asked[number] for number in at]
            files = self._files(ranges, group, np.array([one.file for one in read], np.int32))
            offset = np.array([one.first_byte for one in read], np.int64)
            size = np.array([one.num_bytes for one in read], np.int64)
            ranges.add(files, offset, size, first + at)
        return asked

    def _files(
        self, ranges: Ranges, group: LeafRows, shards: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Numbers of the files of shards, each to be compared with the index when it is new."""
        table = group.pack.shards
        distinct, inverse = np.unique(shards, return_inverse=True)
        paths = [table.uris[shard] for shard in distinct.tolist()]
        numbers: list[int] = []
        for path, size in zip(paths, table.sizes[distinct].tolist(), strict=True):
            kept = is_kept(path, by_shard=group.by_shard)
            self._fresh.expect(path, size, kept=kept)
            numbers.append(ranges.number_of(path, kept=kept))
        return np.array(numbers, np.int64)[inverse]
