"""Rows that are members of an archive, beside their audio."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from playhead.errors import ManifestError
from playhead.formats import BadRowError
from playhead.index.build_audios import AUDIO_FIELD, TurnPlaces, find_turns
from playhead.index.build_parts import BAD_ROW, NO_ROW
from playhead.index.build_rows import (
    Rows,
    ScanTask,
    columns_of,
    extent,
    or_skip,
    shared_columns,
    status_codes,
    typed,
)
from playhead.index.tarhop import Archive
from playhead.storage import access
from playhead.storage.compression import is_archive
from playhead.storage.with_middle import with_middle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.formats import RowAudio, RowColumns, Sample, SourcePair
    from playhead.index.tarhop import Member

__all__ = ["lies_in_members", "scan_members"]

_SAMPLES = 1_024
_BLANK = bytes.maketrans(b"\r\n", b"  ")


class _Members(NamedTuple):
    """An archive and some of its samples."""

    path: str
    """Where its bytes are read: the archive, or a copy that is not compressed."""
    members: list[Member]
    samples: list[Sample]


def lies_in_members(reader: Any, pair: SourcePair) -> bool:
    """Whether the rows of a source are members of an archive."""
    return getattr(reader, "rows_are_members", False) and is_archive(pair.manifest)


def scan_members(task: ScanTask, reader: Any) -> Iterator[Rows]:
    """Read the rows of an archive, some samples at a time.

    Raises
    ------
    ManifestError
        If a row cannot be used or members do not group into samples; archive and member are named.
    ArchiveError
        If the archive is damaged.
    """
    with with_middle(task.pair.manifest) as path:
        yield from _scan_archive(task, reader, path)


def _scan_archive(task: ScanTask, reader: Any, path: str) -> Iterator[Rows]:
    members = list(Archive(path).hop())
    unused = len(members)
    samples = iter(reader.samples(task.leaf, [member.name for member in members]))
    while True:
        try:
            some = list(islice(samples, _SAMPLES))
        except BadRowError as error:
            where = f"leaf {task.leaf.name}, {task.pair.manifest}"
            raise ManifestError(error.what, where=where, fix=error.fix) from None
        if not some:
            break
        unused -= sum(1 + len(sample.audio) for sample in some)
        yield from _read_halves(task, reader, _Members(path, members, some))
    if unused > 0:
        task.dropped[NO_ROW] += unused


def _read_halves(task: ScanTask, reader: Any, some: _Members) -> Iterator[Rows]:
    """Read samples; where they cannot be read together, halve them down to the bad ones."""
    count = len(some.samples)
    try:
        yield _read(task, reader, some)
    except BadRowError as error:
        if count == 1 and not task.skip_bad_rows:
            member = some.members[some.samples[0].row]
            where = f"leaf {task.leaf.name}, {task.pair.manifest}/{member.name}"
            raise ManifestError(
                error.what, where=f"{where}, byte {member.payload}", fix=or_skip(error.fix)
            ) from None
    else:
        return
    if count == 1:
        task.dropped[BAD_ROW] += 1
        return
    yield from _read_halves(task, reader, some._replace(samples=some.samples[: count // 2]))
    yield from _read_halves(task, reader, some._replace(samples=some.samples[count // 2 :]))


def _read(task: ScanTask, reader: Any, some: _Members) -> Rows:
    owners = [some.members[sample.row] for sample in some.samples]
    data = access.read_ranges(
        some.path, [member.payload for member in owners], [member.size for member in owners]
    )
    rows = columns_of(reader, task, b"\n".join(map(_on_one_line, data)))
    if rows.num_rows != len(owners) or any(not row.strip() for row in data):
        raise BadRowError("the member is not one JSON object", fix="Write one into each member")
    kept: list[int] = rows.kept.tolist()
    columns = shared_columns(rows, task.first_shard)
    columns["row_offset"] = np.array([owners[at].payload for at in kept], np.int64)
    columns["row_size"] = np.array([owners[at].size for at in kept], np.int32)
    columns["row_crc"] = np.array([crc32(data[at]) for at in kept], np.uint32)
    columns["status"], statuses = status_codes(rows)
    parts = None
    if rows.audios is not None:
        bound = _bound(task, reader, some, rows)
        parts, columns["duration_us"] = find_turns(
            rows.audios,
            task.field_codes[AUDIO_FIELD],
            lambda _: TurnPlaces(
                np.full(len(bound), task.first_shard, np.int32),
                np.array([member.payload for member in bound], np.int64),
                np.array([member.size for member in bound], np.int64),
            ),
            lambda _: some.path,
        )
        columns["audio_offset"], columns["audio_size"] = extent(parts)
    task.dropped.update(rows.dropped)
    content = [data[at] for at in kept] if task.embed else None
    last = max(owners, key=lambda member: member.payload)
    return Rows(typed(columns), content, last.payload + last.size, statuses, parts)


def _on_one_line(row: bytes) -> bytes:
    """Write a row without line breaks; inside a text they are none of JSON's."""
    if b"\n" not in row and b"\r" not in row:
        return row
    try:
        return msgspec.json.format(row, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        json.loads(row)
    except (ValueError, RecursionError) as error:
        raise BadRowError(
            f"the member is not one JSON object: {error}", fix="Write one into each member"
        ) from None
    # As all of it is well, line breaks stand between values.
    return row.translate(_BLANK)


def _bound(task: ScanTask, reader: Any, some: _Members, rows: RowColumns) -> list[Member]:
    """The member that each audio turn of the kept rows is."""
    found: list[Member] = []
    turns: Sequence[Sequence[RowAudio]] = rows.audios or ()
    for at, audios in zip(rows.kept.tolist(), turns, strict=True):
        if not audios:
            continue
        there = [some.members[number] for number in some.samples[at].audio]
        wanted = [audio.member for audio in audios]
        names = [member.name for member in there]
        found += [there[which] for which in reader.bind(task.leaf, wanted, names)]
    return found
