"""From references to rows to samples: bytes read together, checked, and taken apart by format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from playhead.errors import StaleIndexError
from playhead.formats import Part, Place, SourcePair, get_format
from playhead.storage import local
from playhead.storage.tarheader import BLOCK, BadHeaderError, Header, parse_header, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.fetch.timings import Timings
    from playhead.formats import Example
    from playhead.index.pack import LeafPack, PackRef
    from playhead.plan.batch import MicroBatch

__all__ = ["Reader"]

_REINDEX = "Run `playhead index` again; if the file should not have changed, restore it"
# A name of 100 bytes or more stands in an extension header, whole or not at all in this one.
_SHORT_NAME = 100


class _Ranges:
    """Byte ranges of many files, gathered from all leaves, then read file by file."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._parts: list[tuple[NDArray[np.int64], ...]] = []

    def number_of(self, path: str) -> int:
        """The number by which ranges name a file."""
        return self._numbers.setdefault(path, len(self._numbers))

    def add(
        self,
        files: NDArray[np.int64],
        offsets: NDArray[np.int64],
        sizes: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        """Ask for ranges, each to be put in a place of its own."""
        self._parts.append((files, offsets, sizes, places))

    def read(self, num_places: int, timings: Timings) -> list[bytes | None]:
        """Everything asked for, by place."""
        data: list[bytes | None] = [None] * num_places
        if not self._parts:
            return data
        files, offsets, sizes, places = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.argsort(files, kind="stable")
        borders = np.searchsorted(files[order], np.arange(len(self._numbers) + 1)).tolist()
        for path, number in self._numbers.items():
            chosen = order[borders[number] : borders[number + 1]]
            if len(chosen) == 0:
                continue
            with timings.reading(path, int(sizes[chosen].sum()), len(chosen)):
                ranges = local.read_ranges(path, offsets[chosen], sizes[chosen])
            for place, part in zip(places[chosen].tolist(), ranges, strict=True):
                data[place] = part
        return data


class _Rows(NamedTuple):
    """The rows of one leaf in a batch; arrays have shape (K,)."""

    leaf: Leaf
    pack: LeafPack
    at: NDArray[np.int64]
    """Where in the batch they stand."""
    rows: NDArray[np.int64]
    """Which they are."""


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
    """

    def __init__(self, leaves: Sequence[Leaf], packs: Sequence[PackRef], timings: Timings) -> None:
        self._leaves = leaves
        self._refs = packs
        self._packs: dict[int, LeafPack] = {}
        self._fresh: set[str] = set()
        self._named: set[str] = set()
        self._timings = timings

    def read(self, micro_batch: MicroBatch, *, with_audio: bool) -> list[Example]:
        """Read the samples of a micro-batch, in its order.

        A file is compared with what the index knows of it when it is first read: its size, and for
        an archive the name of a member. The size of every member is compared with its header.

        Parameters
        ----------
        micro_batch
            What to read.
        with_audio
            Also read members of archives; without, samples from archives have no audio.

        Raises
        ------
        StaleIndexError
            If a file is not the one that was indexed.
        ManifestError
            If a row cannot be used.
        PlayheadError, OSError
            If a file cannot be read.
        """
        size = len(micro_batch.row)
        groups = self._grouped(micro_batch)
        ranges = _Ranges()
        for group in groups:
            self._ask_for_rows(ranges, group)
            if with_audio:
                self._ask_for_members(ranges, group, size)
        data = ranges.read(3 * size, self._timings)
        examples: list[Example | None] = [None] * size
        for group in groups:
            self._make(group, data, examples, with_audio=with_audio)
        return [example for example in examples if example is not None]

    def _grouped(self, micro_batch: MicroBatch) -> list[_Rows]:
        groups: list[_Rows] = []
        for number in np.unique(micro_batch.leaf).tolist():
            pack = self._packs.get(number)
            if pack is None:
                pack = self._packs[number] = self._refs[number].open()
            at = np.flatnonzero(micro_batch.leaf == number)
            groups.append(_Rows(self._leaves[number], pack, at, micro_batch.row[at]))
        return groups

    def _ask_for_rows(self, ranges: _Ranges, group: _Rows) -> None:
        pack, rows = group.pack, group.rows
        if pack.row_bytes(int(rows[0])) is None:
            files = self._files(ranges, pack, pack.shard[rows])
            sizes = pack.row_size[rows].astype(np.int64)
            ranges.add(files, pack.row_offset[rows], sizes, group.at)

    def _ask_for_members(self, ranges: _Ranges, group: _Rows, size: int) -> None:
        pack = group.pack
        tarred = np.flatnonzero(pack.tar[group.rows] >= 0)
        if len(tarred) == 0:
            return
        rows, at = group.rows[tarred], group.at[tarred]
        files = self._files(ranges, pack, pack.tar[rows])
        # A member's header lies right before it: looking at it costs no request of its own.
        header = pack.audio_offset[rows] - BLOCK
        ranges.add(files, header, np.full(len(rows), BLOCK, np.int64), at + size)
        ranges.add(files, pack.audio_offset[rows], pack.audio_size[rows], at + 2 * size)

    def _files(
        self, ranges: _Ranges, pack: LeafPack, shards: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Numbers of the files of shards, each compared with the index when it is new."""
        distinct, inverse = np.unique(shards, return_inverse=True)
        numbers: list[int] = []
        for shard in distinct.tolist():
            path = pack.shards.uris[shard]
            if path not in self._fresh:
                self._check_size(path, int(pack.shards.sizes[shard]))
            numbers.append(ranges.number_of(path))
        return np.array(numbers, np.int64)[inverse]

    def _check_size(self, path: str, indexed: int) -> None:
        found = local.size(path)
        if found != indexed:
            raise StaleIndexError(
                f"the file has {found} bytes and had {indexed} when it was indexed",
                where=path,
                fix=_REINDEX,
            )
        self._fresh.add(path)

    def _make(
        self,
        group: _Rows,
        data: Sequence[bytes | None],
        examples: list[Example | None],
        *,
        with_audio: bool,
    ) -> None:
        leaf, pack, rows = group.leaf, group.pack, group.rows
        example_of = get_format(leaf.type).example
        uris = pack.shards.uris
        size = len(examples)
        facts = zip(
            group.at.tolist(),
            rows.tolist(),
            pack.shard[rows].tolist(),
            pack.row_offset[rows].tolist(),
            pack.row_crc[rows].tolist(),
            pack.tar[rows].tolist(),
            pack.audio_offset[rows].tolist(),
            pack.audio_size[rows].tolist(),
            strict=True,
        )
        for at, row, shard, row_offset, row_crc, tar, offset, payload_size in facts:
            content = data[at]
            if content is None:
                content = pack.row_bytes(row) or b""
            place = Place(leaf=leaf.name, shard=uris[shard], row=row, byte=row_offset)
            if crc32(content) != row_crc:
                raise StaleIndexError(
                    "the row is not the one that was indexed", where=str(place), fix=_REINDEX
                )
            parts: list[Part] = []
            if tar >= 0 and with_audio:
                header = self._checked(data[at + size] or b"", uris[tar], offset, payload_size)
                if uris[tar] not in self._named:
                    pair = SourcePair(manifest=uris[shard], tars=(uris[tar],))
                    _check_name(leaf, pair, content, header, offset)
                    self._named.add(uris[tar])
                parts.append(Part("audio", data[at + 2 * size] or b"", uris[tar], offset))
                place = Place(
                    leaf=place.leaf,
                    shard=place.shard,
                    row=row,
                    byte=row_offset,
                    member=f"{uris[tar]}/{to_text(header.name)}",
                    member_byte=offset,
                )
            example = example_of(leaf, place, content, parts)
            if tar >= 0 and not with_audio:
                example.audio = None
            examples[at] = example

    @staticmethod
    def _checked(block: bytes, tar: str, offset: int, size: int) -> Header:
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
            fix=_REINDEX,
        )


def _check_name(leaf: Leaf, pair: SourcePair, row: bytes, header: Header, offset: int) -> None:
    """Compare a member's name with the row's, as far as its header holds it."""
    wanted = (get_format(leaf.type).columns(leaf, pair, row).members or [""])[0]
    found = to_text(header.name)
    if found.removeprefix("./") == wanted.removeprefix("./"):
        return
    if len(header.name) >= _SHORT_NAME or not wanted.isascii():
        return
    raise StaleIndexError(
        f"the row's audio is {wanted!r} and the archive has {found!r} there",
        where=f"{pair.tars[0]}, byte {offset - BLOCK}",
        fix=_REINDEX,
    )
