"""Whether data that were moved are still the data of a pack: by samples of their bytes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from playhead.errors import StaleIndexError
from playhead.formats import ScannedFormat, TableFormat, format_of
from playhead.index.build_audios import AUDIO_FIELD
from playhead.index.source import read_lines
from playhead.storage import access
from playhead.storage.base import ByteRange
from playhead.storage.compression import is_compressed
from playhead.storage.tarheader import BLOCK, BadHeaderError, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.formats import SourcePair
    from playhead.index.build_target import LeafSources
    from playhead.index.pack import LeafPack

__all__ = ["check_content"]

_AT_ONCE = 2_048
_FIRST_BYTES = 1 << 16
# Sizes from 8 GiB on may stand in an extension header only.
_LONG = 1 << 33


class _Row(NamedTuple):
    """A row of a manifest: where its bytes are now, and those of its lines in other files."""

    ranges: list[ByteRange]
    checksum: int


class _Header(NamedTuple):
    """A header block of a member."""

    ranges: list[ByteRange]
    payload: int | None
    """Bytes of the member; None for any."""


class _Part(NamedTuple):
    """A manifest with its rows."""

    pair: SourcePair
    """Where it and its archives are now."""
    first: int
    """Place of the manifest in the leaf's shard table; its archives and fields follow."""
    start: int
    """Its first row in the leaf."""
    end: int
    """The row behind its last one."""


def check_content(old: LeafPack, new: LeafSources) -> None:
    """Compare the first, middle and last row of every manifest, and a member of every archive.

    Parameters
    ----------
    old
        The columns.
    new
        The leaf with its files where they are now: as many, and as long, as those of the pack.

    Raises
    ------
    StaleIndexError
        If some bytes are others; the first difference is named.
    DataError, StorageError, OSError
        If they cannot be read.
    """
    reader: Any = format_of(new.leaf)
    if isinstance(reader, TableFormat):
        _check_tables(old, new, reader)
        return
    samples = _samples(old, new, rows_are_made=isinstance(reader, ScannedFormat))
    while some := list(islice(samples, _AT_ONCE)):
        data = iter(access.read_many([one for sample in some for one in sample.ranges]))
        for sample in some:
            _compare(old, sample, list(islice(data, len(sample.ranges))))


def _check_tables(old: LeafPack, new: LeafSources, reader: TableFormat) -> None:
    """Compare where the row groups of each file end, and their bytes, as its footer says them."""
    known = zip(old.entry.group_ends, old.entry.group_bytes, strict=True)
    for pair, (ends, sizes) in zip(new.pairs, known, strict=True):
        now = reader.groups(new.leaf, pair)
        if now[0].tolist() != ends or now[1].tolist() != sizes:
            raise _other("its row groups are others", pair.manifest)


def _samples(old: LeafPack, new: LeafSources, *, rows_are_made: bool) -> Iterator[_Row | _Header]:
    for part in _parts(old, new):
        rows = np.unique([part.start, (part.start + part.end) // 2, part.end - 1])
        if is_compressed(part.pair.manifest):
            _check_first_row(old, part)
        # What nobody but the index makes is in the pack alone.
        elif not rows_are_made:
            yield from _rows(old, rows, new.paths, part)
        if old.entry.has_offsets:
            yield from _members(old, new.paths, part)
            yield from _members_of_parts(old, rows, new.paths)


def _parts(old: LeafPack, new: LeafSources) -> Iterator[_Part]:
    ends = np.cumsum(old.shards.rows).tolist()
    for pair, first in zip(new.pairs, old.entry.manifests, strict=True):
        end = ends[first]
        start = end - int(old.shards.rows[first])
        if start < end:
            yield _Part(pair, first, start, end)


def _rows(
    old: LeafPack, rows: NDArray[np.int64], paths: Sequence[str], part: _Part
) -> Iterator[_Row]:
    if old.entry.has_lines and old.entry.embedded:
        return
    for row in rows.tolist():
        ranges = [ByteRange(part.pair.manifest, int(old.row_offset[row]), int(old.row_size[row]))]
        if old.entry.has_lines:
            lines = old.parts(np.array([row]))
            places = zip(
                lines.file.tolist(), lines.offset.tolist(), lines.size.tolist(), strict=True
            )
            ranges += [ByteRange(paths[int(file)], offset, size) for file, offset, size in places]
        yield _Row(ranges, int(old.row_crc[row]))


def _members(old: LeafPack, paths: Sequence[str], part: _Part) -> Iterator[_Header]:
    """The header of one member of each archive that the rows name."""
    numbers, at = np.unique(old.tar[part.start : part.end], return_index=True)
    for number, row in zip(numbers.tolist(), (at + part.start).tolist(), strict=True):
        if number >= 0:
            offset = int(old.audio_offset[row]) - BLOCK
            yield _Header([ByteRange(paths[int(number)], offset, BLOCK)], int(old.audio_size[row]))


def _members_of_parts(
    old: LeafPack, rows: NDArray[np.int64], paths: Sequence[str]
) -> Iterator[_Header]:
    """The headers of the parts of some rows that lie in archives."""
    if not old.entry.fields:
        return
    parts = old.parts(rows)
    places = zip(
        parts.file.tolist(),
        parts.field.tolist(),
        parts.offset.tolist(),
        parts.size.tolist(),
        strict=True,
    )
    for file, field, offset, size in places:
        if file < 0 or not paths[int(file)].endswith(".tar"):
            continue
        # A turn is a payload; another field begins with its member's first header.
        if old.entry.fields[field] == AUDIO_FIELD:
            yield _Header([ByteRange(paths[int(file)], offset - BLOCK, BLOCK)], size)
        else:
            yield _Header([ByteRange(paths[int(file)], offset, BLOCK)], None)


def _check_first_row(old: LeafPack, part: _Part) -> None:
    """Compare the first row of a manifest that can only be read from its start."""
    offset, size = int(old.row_offset[part.start]), int(old.row_size[part.start])
    if old.entry.has_lines:
        return
    for block in read_lines(part.pair.manifest, max(_FIRST_BYTES, offset + size)):
        row = block.data[offset - block.offset :][:size]
        if old.entry.checksum(row) != int(old.row_crc[part.start]):
            raise _other("its first row is another", part.pair.manifest)
        return


def _compare(old: LeafPack, sample: _Row | _Header, data: list[bytes]) -> None:
    path, offset, _ = sample.ranges[0]
    if isinstance(sample, _Row):
        if old.entry.checksum(data[0], data[1:]) != sample.checksum:
            raise _other("the row there is another", f"{path}, byte {offset}")
        return
    try:
        size = parse_header(data[0]).size
    except BadHeaderError as error:
        raise _other(f"there is no member there: {error}", f"{path}, byte {offset}") from None
    if sample.payload is not None and size != sample.payload and sample.payload < _LONG:
        what = f"the member there has {size:,} bytes, in the pack {sample.payload:,}"
        raise _other(what, f"{path}, byte {offset}")


def _other(what: str, where: str) -> StaleIndexError:
    return StaleIndexError(
        f"these are not the data of the pack: {what}",
        where=where,
        fix="Build a pack from them, without --rebind",
    )
