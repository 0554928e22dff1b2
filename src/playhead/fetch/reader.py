"""From references to rows to samples: bytes read together, checked, and taken apart by format."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from playhead.errors import StaleIndexError
from playhead.fetch.access_mode import AccessMode
from playhead.fetch.example_of import example_of, finish
from playhead.fetch.freshness import Freshness
from playhead.fetch.joined import join_examples
from playhead.fetch.kept import Kept, is_kept
from playhead.fetch.leaf_rows import LeafRows
from playhead.fetch.member_checks import (
    NAME_BYTES,
    REINDEX,
    checked_header,
    checked_name,
    whole_name,
)
from playhead.fetch.members_by_name import MembersByName
from playhead.fetch.missing_audio import mark_missing
from playhead.fetch.parts import gathered, part_requests
from playhead.fetch.ranges import Ranges
from playhead.fetch.remote_audio import read_remote_audio, remote_files
from playhead.formats import (
    Example,
    Part,
    Place,
    ScannedFormat,
    TableFormat,
    format_of,
)
from playhead.formats.extra_fields import ExtraLines
from playhead.index.concatenation import joined_rows
from playhead.index.member_offsets import demand_member_offsets
from playhead.storage.compression import is_archive
from playhead.storage.shard_cache import CacheSettings
from playhead.storage.tarheader import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.parts import PartRequest
    from playhead.fetch.timings import Timings
    from playhead.formats import TableRow
    from playhead.index.pack import LeafPack, PackRef
    from playhead.plan.batch import MicroBatch

__all__ = ["Reader"]


class _Found(NamedTuple):
    """What was read, by the place of its row."""

    row: list[bytes | None]
    header: list[bytes | None]
    audio: list[bytes | None]
    parts: dict[int, list[Part]]
    names: dict[int, str]
    """Of members that were fetched by name."""


class Reader:
    """Reads the samples that a micro-batch refers to; opens packs and files when it first must.

    Parameters
    ----------
    leaves
        The leaves, in the order that micro-batches count them.
    packs
        Their columns.
    timings
        Where reads are counted.
    cache
        Where whole shards are kept; in the user's cache if None.
    access_mode
        How members of archives on AIStore are fetched.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        packs: Sequence[PackRef],
        timings: Timings,
        cache: CacheSettings | None = None,
        access_mode: AccessMode = AccessMode.RANGES,
    ) -> None:
        self._leaves = leaves
        self._refs = packs
        self._packs: dict[int, LeafPack] = {}
        self._starts: dict[int, NDArray[np.int64]] = {}
        self._lines: dict[str, ExtraLines] = {}
        self._timings = timings
        self._kept = Kept(cache or CacheSettings())
        self._access = access_mode
        self._fresh = Freshness(self._kept)

    def read(self, micro_batch: MicroBatch, *, with_audio: bool) -> list[Example]:
        """Read the samples of a micro-batch, in its order.

        A file is compared with what the index knows of it when it is first read: its size, and for
        an archive the name of a member. The size of every member is compared with its header.

        Parameters
        ----------
        micro_batch
            What to read.
        with_audio
            Also read members of archives and files that rows name by URLs; without, samples from
            archives have no audio.

        Raises
        ------
        StaleIndexError
            If a file is not the one that was indexed.
        ManifestError
            If a row cannot be used.
        PlayheadError, OSError
            If a file cannot be read.
        """
        groups, first = self._grouped(micro_batch)
        if with_audio:
            demand_member_offsets([group.pack for group in groups])
        size = int(first[-1])
        ranges, named, wanted, tables = self._ask(groups, size, with_audio=with_audio)
        self._fresh.check()
        data = ranges.read(3 * size + len(wanted), self._timings)
        examples: list[Example | None] = [None] * size

        def make(some: Sequence[LeafRows]) -> None:
            if not some:
                return
            found = _Found(
                data[:size],
                data[size : 2 * size],
                data[2 * size : 3 * size],
                gathered(wanted, data[3 * size :]),
                named.names,
            )
            for place, loaded in tables.items():
                found.row[place], found.audio[place] = loaded
            for group in some:
                self._make(group, found, examples, with_audio=with_audio)
                if group.leaf.extra_fields:
                    sample = np.searchsorted(first, group.at, side="right") - 1
                    self._add_lines(group, examples, micro_batch.sample_keys[sample])

        early, late = named.apart(groups)
        make(early)
        if with_audio:
            named.take_files(remote_files([one for one in examples if one is not None]))
        named.read(data, self._timings)
        make(late)
        for place, what in named.missing.items():
            mark_missing(cast("Example", examples[place]), what)
        made = [example for example in examples if example is not None]
        if with_audio:
            read_remote_audio(made, named.files, self._timings)
        return [
            join_examples(made[start:end], self._leaves[leaf].concatenation)
            for (start, end), leaf in zip(
                pairwise(first.tolist()), micro_batch.leaf.tolist(), strict=True
            )
        ]

    def _ask(
        self, groups: Sequence[LeafRows], size: int, *, with_audio: bool
    ) -> tuple[Ranges, MembersByName, list[PartRequest], dict[int, TableRow]]:
        """Say what is to be read of rows, of which there are `size`; tables are read at once."""
        ranges, named = Ranges(self._kept, self._access), MembersByName(self._access)
        wanted: list[PartRequest] = []
        tables: dict[int, TableRow] = {}
        for group in groups:
            reader: Any = format_of(group.leaf)
            if isinstance(reader, TableFormat):
                self._load(group, reader, tables, with_audio=with_audio)
                continue
            self._ask_for_rows(ranges, group, reader, size)
            if with_audio:
                self._ask_for_members(ranges, named, group, size)
            wanted += self._ask_for_parts(ranges, named, group, 3 * size + len(wanted), with_audio)
        return ranges, named, wanted, tables

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
                within = _ranges(count[mine])
                rows = np.repeat(starts[rows], count[mine]) + within
                at = np.repeat(at, count[mine]) + within
            by_shard = micro_batch.by_shard is not None and bool(micro_batch.by_shard[mine].any())
            groups.append(LeafRows(self._leaves[number], self.pack(number), at, rows, by_shard))
        return groups, first

    def pack(self, number: int) -> LeafPack:
        """The columns of a leaf, by its number."""
        pack = self._packs.get(number)
        if pack is None:
            pack = self._packs[number] = self._refs[number].open()
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

    def _load(
        self, group: LeafRows, reader: TableFormat, tables: dict[int, TableRow], *, with_audio: bool
    ) -> None:
        pack = group.pack
        shards = pack.shard[group.rows]
        for shard in np.unique(shards).tolist():
            path = pack.shards.uris[shard]
            self._fresh.expect(path, int(pack.shards.sizes[shard]))
            self._fresh.check()
            mine = np.flatnonzero(shards == shard)
            places = pack.row_offset[group.rows[mine]]
            with self._timings.reading(path, int(pack.row_size[group.rows[mine]].sum()), len(mine)):
                rows = reader.load(group.leaf, path, places, with_audio=with_audio)
            tables.update(zip(group.at[mine].tolist(), rows, strict=True))

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

    def _make(
        self, group: LeafRows, found: _Found, examples: list[Example | None], *, with_audio: bool
    ) -> None:
        leaf, pack, rows = group.leaf, group.pack, group.rows
        reader: Any = _first_reader(leaf)
        is_table = isinstance(reader, ScannedFormat)
        member_of: Callable[[bytes], str | None] | None = getattr(reader, "member", None)
        uris = pack.shards.uris
        has_lines = pack.entry.has_lines and not pack.entry.embedded
        in_members = getattr(reader, "rows_are_members", False)
        facts = zip(
            group.at.tolist(),
            rows.tolist(),
            pack.shard[rows].tolist(),
            pack.row_offset[rows].tolist(),
            pack.row_size[rows].tolist(),
            pack.row_crc[rows].tolist(),
            pack.tar[rows].tolist(),
            pack.audio_offset[rows].tolist(),
            pack.audio_size[rows].tolist(),
            strict=True,
        )
        for at, row, shard, row_offset, row_size, row_crc, tar, offset, payload_size in facts:
            content = found.row[at]
            if content is None:
                content = pack.row_bytes(row) or b""
            place = Place(
                leaf=leaf.name, shard=uris[shard], row=row, byte=row_offset, is_table=is_table
            )
            parts = found.parts.get(at, [])
            lines = [part.data for part in parts] if has_lines else ()
            if pack.entry.checksum(content, lines) != row_crc:
                raise StaleIndexError(
                    "the row is not the one that was indexed", where=str(place), fix=REINDEX
                )
            if tar >= 0 and with_audio:
                name = found.names.get(at)
                if name is None:
                    block, wanted = found.header[at] or b"", member_of and member_of(content)
                    name = checked_name(block, uris[tar], offset, payload_size, wanted)
                parts = [Part("audio", found.audio[at] or b"", uris[tar], offset)]
                place = replace(place, member=f"{uris[tar]}/{name}", member_byte=offset or None)
            elif is_table and (audio := found.audio[at]) is not None:
                parts = [Part("audio", audio, uris[shard], row_offset)]
            elif in_members and is_archive(place.shard):
                before = found.header[at] or b""
                header = checked_header(before[-BLOCK:], place.shard, row_offset, row_size)
                place = replace(place, member=f"{place.shard}/{whole_name(before, header)}")
            elif parts and parts[0].path and not has_lines:
                place = replace(place, member=parts[0].path, member_byte=parts[0].offset)
            example = example_of(reader, leaf, place, content, parts)
            if not with_audio and (tar >= 0 or is_table or pack.entry.fields):
                example.audio = None
            finish(example, leaf, pack, row)
            examples[at] = example

    def _add_lines(
        self, group: LeafRows, examples: list[Example | None], keys: NDArray[np.uint64]
    ) -> None:
        lines = self._lines.get(group.leaf.key)
        if lines is None:
            lines = self._lines[group.leaf.key] = ExtraLines(group.leaf.extra_fields)
        for at, row, key in zip(group.at.tolist(), group.rows.tolist(), keys.tolist(), strict=True):
            example = examples[at]
            if example is None:
                continue
            lines.add(example, row, key)
            if group.leaf.transforms:
                examples[at] = example = format_of(group.leaf).convert(group.leaf, example)
                finish(example, group.leaf, group.pack, row)


def _first_reader(leaf: Leaf) -> Any:
    """What reads the rows of a leaf: transforms wait until lines of other files are added."""
    reader: Any = format_of(leaf)
    return reader.inner if leaf.transforms and leaf.extra_fields else reader


def _ranges(count: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 … n - 1 for each number n, end to end."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
