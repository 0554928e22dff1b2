"""From a manifest and its archives to columns, a block of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from playhead.errors import ManifestError
from playhead.formats import BadRowError, ScannedFormat, format_of
from playhead.index.build_audios import AUDIO_FIELD, find_turns, name_archives
from playhead.index.build_fields import FieldFiles
from playhead.index.build_measure import measure
from playhead.index.build_members import lies_in_members, scan_members
from playhead.index.build_parts import (
    BAD_ROW,
    BLANK_LINE,
    EMPTY_MANIFEST,
    EXCLUDED_LINE,
    NOT_ROWS,
    UNUSED_MEMBER,
)
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
from playhead.index.build_tars import ArchiveIndex
from playhead.index.source import check_unchanged, read_lines, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from playhead.index.source import LineBlock

__all__ = ["scan"]

_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"


class _Run(NamedTuple):
    """Some lines of a block, in order; between them are only blanks."""

    block: bytes
    """The block."""
    numbers: NDArray[np.int64]
    """Number of each line in the file, from 0."""
    starts: NDArray[np.int64]
    """First byte of each line in the block."""
    ends: NDArray[np.int64]
    """Byte after the last one of each line."""
    offset: int
    """Byte of the block in the file."""
    position: int
    """Byte of the block's end in the file."""
    ordinal: int
    """Rows of the file before the first line."""

    @property
    def data(self) -> bytes:
        """The bytes from the first line to the last."""
        return self.block[int(self.starts[0]) : int(self.ends[-1])]

    def part(self, start: int, stop: int) -> _Run:
        """Return some of the lines."""
        at = slice(start, stop)
        return self._replace(
            numbers=self.numbers[at],
            starts=self.starts[at],
            ends=self.ends[at],
            ordinal=self.ordinal + start,
        )

    def hold_one_object_each(self) -> bool:
        """Whether each line begins and ends as an object does.

        Where this is so, no value that reads well reaches over the end of a line, as `}` and `{`
        never follow each other inside a value: so each line holds at least one.
        """
        data = np.frombuffer(self.block, np.uint8)
        return bool(((data[self.starts] == _OPEN) & (data[self.ends - 1] == _CLOSE)).all())


class _Companions(NamedTuple):
    """What reads a manifest, and its other files."""

    archives: ArchiveIndex
    fields: FieldFiles
    reader: Any
    is_json: bool


def scan(task: ScanTask) -> Iterator[Rows]:
    """Read a manifest and find its rows' audio, or a table, or an archive of rows.

    Raises
    ------
    ManifestError
        If a row cannot be used; file, line and byte are named.
    BuildError
        If a file changes meanwhile.
    """
    paths = task.pair.files
    before = [stamp(path) for path in paths]
    reader: Any = format_of(task.leaf)
    if isinstance(reader, ScannedFormat):
        found = _scan_table(task, reader)
    elif lies_in_members(reader, task.pair):
        found = scan_members(task, reader)
    else:
        found = _scan_lines(task, reader)
    num_rows = 0
    for rows in found:
        num_rows += len(rows.columns["shard"])
        yield rows
    if not num_rows and NOT_ROWS.issuperset(+task.dropped):
        task.dropped[EMPTY_MANIFEST] += 1
    for path, old in zip(paths, before, strict=True):
        check_unchanged(path, old)


def _scan_table(task: ScanTask, reader: ScannedFormat) -> Iterator[Rows]:
    def count(_: BadRowError) -> None:
        task.dropped[BAD_ROW] += 1

    on_bad = count if task.skip_bad_rows else None
    try:
        for number, block in enumerate(reader.scan(task.leaf, task.pair, on_bad)):
            columns = shared_columns(block.columns, task.first_shard)
            columns["row_offset"] = block.place
            columns["row_size"] = np.array(list(map(len, block.rows)), np.int32)
            columns["row_crc"] = np.array(list(map(crc32, block.rows)), np.uint32)
            codes, statuses = status_codes(block.columns)
            columns["status"] = codes
            task.dropped.update(block.columns.dropped)
            yield Rows(typed(columns), block.rows if task.embed else None, number, statuses)
    except BadRowError as error:
        where = f"leaf {task.leaf.name}, {task.pair.manifest}"
        raise ManifestError(error.what, where=where, fix=or_skip(error.fix)) from None


def _scan_lines(task: ScanTask, reader: Any) -> Iterator[Rows]:
    others = _Companions(
        ArchiveIndex(task.pair.tars, task.offsets_from),
        FieldFiles(task.pair, task.first_shard, task.field_codes, embed=task.embed),
        reader,
        # A type of somebody's own may have lines of another form, which it takes apart itself.
        getattr(reader, "lines_are_json", True),
    )
    num_rows = 0
    for block in read_lines(task.pair.manifest):
        blank_before = task.dropped[BLANK_LINE]
        others.fields.forget(num_rows)
        yield from _scan_block(task, others, block, num_rows)
        num_rows += block.data.count(b"\n") + (not block.data.endswith(b"\n"))
        if others.is_json:
            num_rows -= task.dropped[BLANK_LINE] - blank_before
    others.fields.finish(num_rows)
    if task.has_offsets and not num_rows:
        others.archives.scan_all()
    if others.archives.num_unused:
        task.dropped[UNUSED_MEMBER] += others.archives.num_unused


def _scan_block(
    task: ScanTask, others: _Companions, block: LineBlock, num_rows: int
) -> Iterator[Rows]:
    data = np.frombuffer(block.data, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    if not block.data.endswith(b"\n"):
        ends = np.append(ends, len(block.data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    run = _Run(
        block.data,
        block.first_line + np.arange(len(starts)),
        starts,
        ends - (data[ends - 1] == _RETURN),
        block.offset,
        block.offset + len(block.data),
        num_rows,
    )
    for piece in _pieces(task, run):
        yield from _read_piece(task, others, piece)


def _read_piece(task: ScanTask, others: _Companions, piece: _Run) -> Iterator[Rows]:
    try:
        yield _read(task, others, piece)
    except BadRowError:
        # Blanks are the common cause; only if there is another must the lines be halved.
        full = _without_blanks(task, piece) if others.is_json else piece
        yield from _read_halves(task, others, full)


def _pieces(task: ScanTask, run: _Run) -> list[_Run]:
    """The stretches of lines that are left when some are left out."""
    if not task.pair.left_out:
        return [run]
    out = np.flatnonzero(np.isin(run.numbers, np.array(task.pair.left_out)))
    task.dropped[EXCLUDED_LINE] += len(out)
    borders = zip([0, *(out + 1).tolist()], [*out.tolist(), len(run.numbers)], strict=True)
    return [run.part(start, stop) for start, stop in borders if stop > start]


def _without_blanks(task: ScanTask, run: _Run) -> _Run:
    """Leave out blank lines, and the blanks around the others."""
    lines = run.data.split(b"\n")[: len(run.starts)]
    starts = run.starts + [len(line) - len(line.lstrip()) for line in lines]
    ends = starts + [len(line.strip()) for line in lines]
    full = ends > starts
    task.dropped[BLANK_LINE] += int((~full).sum())
    return run._replace(numbers=run.numbers[full], starts=starts[full], ends=ends[full])


def _read_halves(task: ScanTask, others: _Companions, run: _Run) -> Iterator[Rows]:
    """Read lines; where they cannot be read together, halve them down to the bad ones."""
    num_lines = len(run.starts)
    if num_lines == 0:
        return
    try:
        yield _read(task, others, run)
    except BadRowError as error:
        if num_lines == 1 and not task.skip_bad_rows:
            raise _placed(task, run, error) from None
    else:
        return
    if num_lines == 1:
        task.dropped[BAD_ROW] += 1
        return
    middle = num_lines // 2
    yield from _read_halves(task, others, run.part(0, middle))
    yield from _read_halves(task, others, run.part(middle, num_lines))


def _read(task: ScanTask, others: _Companions, lines: _Run) -> Rows:
    """Read a run of lines, all of which must be good."""
    rows = columns_of(others.reader, task, lines.data)
    if rows.num_rows != len(lines.starts) or (others.is_json and not lines.hold_one_object_each()):
        form = "JSON object" if others.is_json else "row"
        raise BadRowError(f"the line is not one {form}", fix=f"Write one {form} on each line")
    columns = shared_columns(rows, task.first_shard)
    content = list(_cut(lines, rows.kept))
    columns["row_offset"] = lines.starts[rows.kept] + lines.offset
    columns["row_size"] = (lines.ends - lines.starts)[rows.kept]
    columns["row_crc"] = np.array(list(map(crc32, content)), np.uint32)
    columns["status"], statuses = status_codes(rows)
    if rows.members is not None and task.has_offsets:
        places = others.archives.find(rows.tar, rows.members)
        columns["audio_offset"], columns["audio_size"] = places
    parts = None
    if others.fields:
        ids = rows.ids or [None] * rows.num_rows
        parts, field_lines, texts = others.fields.rows(lines.ordinal, ids, rows.kept)
        if texts is not None:
            whole = [a + b for a, b in zip(content, texts, strict=True)]
            columns["row_crc"] = np.array(list(map(crc32, whole)), np.uint32)
        if field_lines is not None:
            content = [a + b for a, b in zip(content, field_lines, strict=True)]
        columns["audio_offset"], columns["audio_size"] = extent(parts)
    if rows.audios is not None:
        find = others.archives.find_turns if task.has_offsets else name_archives
        parts, columns["duration_us"] = find_turns(
            rows.audios,
            task.field_codes[AUDIO_FIELD],
            lambda turns: find(turns, task.first_shard + 1),
            lambda file: task.pair.files[file - task.first_shard],
        )
        columns["audio_offset"], columns["audio_size"] = extent(parts)
    if rows.unmeasured:
        at = [row.index for row in rows.unmeasured]
        lengths = measure(rows.unmeasured)
        for name in ("duration_us", "num_samples", "rate", "channels"):
            columns[name][at] = getattr(lengths, name)
    task.dropped.update(rows.dropped)
    return Rows(typed(columns), content if task.embed else None, lines.position, statuses, parts)


def _cut(lines: _Run, kept: NDArray[np.int64]) -> Iterator[bytes]:
    """Return the bytes of each of the kept rows."""
    places = zip(lines.starts[kept].tolist(), lines.ends[kept].tolist(), strict=True)
    return (lines.block[start:end] for start, end in places)


def _placed(task: ScanTask, line: _Run, error: BadRowError) -> ManifestError:
    where = (
        f"{task.pair.manifest}:{int(line.numbers[0]) + 1}, byte {line.offset + int(line.starts[0])}"
    )
    where = f"leaf {task.leaf.name}, {where}"
    return ManifestError(error.what, where=where, fix=or_skip(error.fix))
