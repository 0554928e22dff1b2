"""Rows of a leaf, one after another, as its format takes them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from playhead.errors import StaleIndexError
from playhead.formats import Nemo, Part, Place, TableFormat, format_of, get_format, time_turns
from playhead.storage import access
from playhead.tokens.extra import extra_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats import Example
    from playhead.index.pack import LeafPack

__all__ = ["RowBlock", "examples", "place_of", "read_rows"]

_REINDEX = (
    "Run `playhead index` again (`playhead pack --overwrite` where index_pack names the pack); if"
    " the file should not have changed, restore it"
)
# Bytes between rows, of rows that were left out, which are cheaper to read than to pass over.
_SPARE = 1 << 20
_AUDIO = "audio"
_NO_AUDIO = Part(_AUDIO, b"", "", 0)


class RowBlock(NamedTuple):
    """Rows that follow each other."""

    rows: list[bytes]
    """Each of them."""
    joined: bytes | None = None
    """All of them as lines, where they lie so in their file."""
    lines_of: Mapping[int, list[Part]] | None = None
    """What other files say of them, by the row's place, where that was read with them."""

    def lines(self) -> bytes:
        """Return all of them as lines."""
        return b"\n".join(self.rows) if self.joined is None else self.joined


def read_rows(leaf: Leaf, pack: LeafPack, start: int, stop: int) -> RowBlock:
    """Read the rows from `start` to before `stop`, each compared with its checksum.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.

    Raises
    ------
    StaleIndexError
        If a row is not the one that was indexed; it is named.
    DataError, SourceNotFoundError, OSError
        If a file cannot be read.
    """
    if pack.row_bytes(start) is not None:
        block = RowBlock([pack.row_bytes(row) or b"" for row in range(start, stop)])
    else:
        borders = (np.flatnonzero(np.diff(pack.shard[start:stop])) + start + 1).tolist()
        blocks = [
            _rows_of_file(leaf, pack, first, last)
            for first, last in pairwise([start, *borders, stop])
        ]
        block = blocks[0] if len(blocks) == 1 else RowBlock([row for b in blocks for row in b.rows])
    if pack.entry.has_lines and not pack.entry.embedded:
        block = block._replace(lines_of=_parts(pack, start, stop))
    _check(leaf, pack, start, block)
    return block


def place_of(leaf: Leaf, pack: LeafPack, row: int) -> Place:
    """Say where a row lies."""
    return Place(
        leaf=leaf.name,
        shard=pack.shards.uris[int(pack.shard[row])],
        row=row,
        byte=int(pack.row_offset[row]),
    )


def examples(
    leaf: Leaf,
    pack: LeafPack,
    start: int,
    block: RowBlock,
    lines: Mapping[str, int] | None = None,
) -> Iterator[Example]:
    """Make the samples of rows that follow each other, without audio, with their extra fields.

    Of an extra field whose lines are chosen by the sample's key, which nobody knows before a row is
    drawn, they get the line that `lines` names, or that of key 0.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    start
        Number of the first row.
    block
        What `read_rows` gave.
    lines
        Numbers of lines by the name of their field.

    Raises
    ------
    ManifestError
        If a row cannot be used.
    """
    reader: Any = format_of(leaf)
    rows, parts = block.rows, block.lines_of
    if parts is None:
        parts = _parts(pack, start, start + len(rows))
    # With its audio at hand, no row's file is looked for.
    usual = [_NO_AUDIO] if isinstance(getattr(reader, "inner", reader), Nemo) else []
    extra = extra_lines(leaf)
    # What transforms make of a row may be made of its lines too.
    first = reader.inner if extra is not None and leaf.transforms else reader
    for number, row in enumerate(rows):
        place = place_of(leaf, pack, start + number)
        example = first.example(leaf, place, row, parts.get(number, usual))
        if extra is not None:
            extra.add(example, start + number, 0, lines)
        if first is not reader:
            example = reader.convert(leaf, example)
        time_turns(example, int(pack.duration_us[start + number]))
        yield example


def _rows_of_file(leaf: Leaf, pack: LeafPack, start: int, stop: int) -> RowBlock:
    path = pack.shards.uris[int(pack.shard[start])]
    offsets = pack.row_offset[start:stop]
    reader: Any = get_format(leaf.type)
    if isinstance(reader, TableFormat):
        return RowBlock([one.row for one in reader.load(leaf, path, offsets, with_audio=False)])
    sizes = pack.row_size[start:stop].astype(np.int64)
    ends = offsets + sizes
    begin, end = int(offsets.min()), int(ends.max())
    if end - begin > int(sizes.sum()) + len(sizes) + _SPARE:
        return RowBlock(access.read_ranges(path, offsets, sizes))
    (block,) = access.read_ranges(path, [begin], [end - begin])
    if bool((offsets[1:] == ends[:-1] + 1).all()):
        rows = block.split(b"\n")
        # What lies between rows has no checksum.
        if len(rows) == len(sizes):
            return RowBlock(rows, block)
    firsts, lasts = (offsets - begin).tolist(), (ends - begin).tolist()
    return RowBlock([block[first:last] for first, last in zip(firsts, lasts, strict=True)])


def _check(leaf: Leaf, pack: LeafPack, start: int, block: RowBlock) -> None:
    entry, rows = pack.entry, block.rows
    if not entry.fields:
        checksums = map(crc32, rows)
    elif block.lines_of is not None:
        lines = [[part.data for part in block.lines_of.get(at, ())] for at in range(len(rows))]
        checksums = map(entry.checksum, rows, lines)
    else:
        checksums = map(entry.checksum, rows)
    found = np.fromiter(checksums, np.uint32, len(rows))
    other = np.flatnonzero(found != pack.row_crc[start : start + len(rows)])
    if len(other):
        raise StaleIndexError(
            "the row is not the one that was indexed",
            where=str(place_of(leaf, pack, start + int(other[0]))),
            fix=_REINDEX,
        )


def _parts(pack: LeafPack, start: int, stop: int) -> dict[int, list[Part]]:
    """Return what lies elsewhere than rows, by the row's place: lines are read, audio is not."""
    fields, found = pack.entry.fields, {}
    if not fields:
        return found
    parts = pack.parts(np.arange(start, stop))
    owner = np.repeat(np.arange(stop - start), parts.num_parts).tolist()
    names = [fields[number] for number in parts.field.tolist()]
    data = [b""] * len(names)
    is_wanted = np.array([name == _AUDIO for name in names], bool)
    uris = [*pack.shards.uris, ""]
    for file in np.unique(parts.file).tolist():
        path = uris[file]
        mine = np.flatnonzero((parts.file == file) & ~is_wanted)
        if path.endswith(".tar") or not len(mine):
            continue
        is_wanted[mine] = True
        lines = access.read_ranges(path, parts.offset[mine], parts.size[mine])
        for place, line in zip(mine.tolist(), lines, strict=True):
            data[place] = line
    offsets = parts.offset.tolist()
    # A plain file stands in its row alone.
    paths = [uris[file] for file in parts.file.tolist()]
    lengths = parts.duration_us.tolist()
    for place in np.flatnonzero(is_wanted).tolist():
        part = Part(names[place], data[place], paths[place], offsets[place], lengths[place])
        found.setdefault(owner[place], []).append(part)
    return found
