"""From references to rows to samples: bytes read together, checked, and taken apart by format."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from playhead.errors import StaleIndexError
from playhead.fetch.access_mode import AccessMode
from playhead.fetch.asking import Asking
from playhead.fetch.example_of import example_of, finish
from playhead.fetch.freshness import Freshness
from playhead.fetch.joined import join_examples
from playhead.fetch.kept import Kept
from playhead.fetch.member_checks import (
    REINDEX,
    checked_header,
    checked_name,
    whole_name,
)
from playhead.fetch.missing_audio import mark_missing
from playhead.fetch.parts import gathered
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
from playhead.storage.compression import is_archive
from playhead.storage.shard_cache import CacheSettings
from playhead.storage.tarheader import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.leaf_rows import LeafRows
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
        self._lines: dict[str, ExtraLines] = {}
        self._timings = timings
        kept = Kept(cache or CacheSettings())
        self._fresh = Freshness(kept)
        self._asking = Asking(
            leaves, lambda number: packs[number].open(), kept, self._fresh, access_mode
        )

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
        asked = self._asking.of(micro_batch, with_audio=with_audio)
        groups, first, size, named = asked.groups, asked.first, asked.num_rows, asked.named
        tables = self._load(asked.tables, with_audio=with_audio)
        self._fresh.check()
        data = asked.ranges.read(3 * size + len(asked.parts), self._timings)
        examples: list[Example | None] = [None] * size

        def make(some: Sequence[LeafRows]) -> None:
            if not some:
                return
            found = _Found(
                data[:size],
                data[size : 2 * size],
                data[2 * size : 3 * size],
                gathered(asked.parts, data[3 * size :]),
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

    def pack(self, number: int) -> LeafPack:
        """The columns of a leaf, by its number."""
        return self._asking.pack(number)

    def joined(self, number: int) -> NDArray[np.int64] | None:
        """Where each sample of a leaf whose rows are joined begins among its rows."""
        return self._asking.joined(number)

    def _load(self, groups: Sequence[LeafRows], *, with_audio: bool) -> dict[int, TableRow]:
        """Read rows of tables; by the place of each in the batch."""
        loaded: dict[int, TableRow] = {}
        for group in groups:
            reader = cast("TableFormat", format_of(group.leaf))
            pack = group.pack
            shards = pack.shard[group.rows]
            for shard in np.unique(shards).tolist():
                path = pack.shards.uris[shard]
                self._fresh.expect(path, int(pack.shards.sizes[shard]))
                self._fresh.check()
                mine = np.flatnonzero(shards == shard)
                places = pack.row_offset[group.rows[mine]]
                num_bytes = int(pack.row_size[group.rows[mine]].sum())
                with self._timings.reading(path, num_bytes, len(mine)):
                    rows = reader.load(group.leaf, path, places, with_audio=with_audio)
                loaded.update(zip(group.at[mine].tolist(), rows, strict=True))
        return loaded

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
