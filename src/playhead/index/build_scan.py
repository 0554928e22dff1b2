"""From a manifest and its archives to columns, a block of rows at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from playhead.errors import ManifestError, PlayheadError
from playhead.formats import BadRowError, TableFormat, get_format
from playhead.index.build_fields import FieldFiles
from playhead.index.build_measure import measure
from playhead.index.build_parts import BAD_ROW, BLANK_LINE
from playhead.index.build_tars import ArchiveIndex
from playhead.index.columns import COLUMNS, Block
from playhead.index.source import check_unchanged, read_lines, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats import RowColumns, SourcePair
    from playhead.index.columns import Parts
    from playhead.index.source import LineBlock

__all__ = ["Rows", "ScanTask", "scan"]

_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_MOST_STATUSES = 1_000


class Rows(NamedTuple):
    """Some rows that are kept."""

    columns: Block
    """An array for each column."""
    data: list[bytes] | None
    """The bytes of each, where those are embedded."""
    position: int
    """Bytes of the manifest that have been read so far, decompressed."""
    statuses: list[str]
    """What the column `status` counts."""
    parts: Parts | None = None
    """What lies in other files; None where rows have no parts."""


@dataclass(kw_only=True)
class ScanTask:
    """One manifest to read, with what it needs to know of its leaf."""

    leaf: Leaf
    """The leaf."""
    pair: SourcePair
    """The manifest and its archives."""
    first_shard: int
    """Place of the manifest in the leaf's shard table; its archives follow."""
    embed: bool
    """Whether the rows' bytes go into the pack."""
    skip_bad_rows: bool
    """Whether rows that cannot be used are counted rather than raised."""
    reader: type | None = None
    """The class of its input type: it travels by name, which loads and registers it."""
    field_codes: dict[str, int] = field(default_factory=dict[str, int])
    """Number of each field among those of the leaf."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Rows left out, by reason; complete when the task is done."""


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
    """The other files of a manifest."""

    archives: ArchiveIndex
    fields: FieldFiles


def scan(task: ScanTask) -> Iterator[Rows]:
    """Read a manifest and find its rows' audio, or a table.

    Raises
    ------
    ManifestError
        If a row cannot be used; file, line and byte are named.
    BuildError
        If a file changes meanwhile.
    """
    paths = task.pair.files
    before = [stamp(path) for path in paths]
    reader: Any = get_format(task.leaf.type)
    yield from _scan_table(task, reader) if isinstance(reader, TableFormat) else _scan_lines(task)
    for path, old in zip(paths, before, strict=True):
        check_unchanged(path, old)


def _scan_table(task: ScanTask, reader: TableFormat) -> Iterator[Rows]:
    def count(_: BadRowError) -> None:
        task.dropped[BAD_ROW] += 1

    on_bad = count if task.skip_bad_rows else None
    try:
        for number, block in enumerate(reader.scan(task.leaf, task.pair, on_bad)):
            columns = _shared(block.columns, task.first_shard)
            columns["row_offset"] = block.place
            columns["row_size"] = np.array(list(map(len, block.rows)), np.int32)
            columns["row_crc"] = np.array(list(map(crc32, block.rows)), np.uint32)
            codes, statuses = _status_codes(block.columns)
            columns["status"] = codes
            task.dropped.update(block.columns.dropped)
            yield Rows(_typed(columns), block.rows if task.embed else None, number, statuses)
    except BadRowError as error:
        where = f"leaf {task.leaf.name}, {task.pair.manifest}"
        raise ManifestError(error.what, where=where, fix=_or_skip(error.fix)) from None


def _or_skip(fix: str) -> str:
    return f"{fix}, or leave such rows out with `playhead index --skip-bad-rows`"


def _scan_lines(task: ScanTask) -> Iterator[Rows]:
    others = _Companions(
        ArchiveIndex(task.pair.tars),
        FieldFiles(task.pair, task.first_shard, task.field_codes, embed=task.embed),
    )
    num_rows = 0
    for block in read_lines(task.pair.manifest):
        blank_before = task.dropped[BLANK_LINE]
        others.fields.forget(num_rows)
        yield from _scan_block(task, others, block, num_rows)
        lines = block.data.count(b"\n") + (not block.data.endswith(b"\n"))
        num_rows += lines - (task.dropped[BLANK_LINE] - blank_before)
    others.fields.finish(num_rows)
    if others.archives.num_unused:
        task.dropped["tar member without a row"] += others.archives.num_unused


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
    try:
        yield _read(task, others, run)
    except BadRowError:
        # Blanks are the common cause; only if there is another must the lines be halved.
        yield from _read_halves(task, others, _without_blanks(task, run))


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
    reader: Any = get_format(task.leaf.type)
    rows = _columns_of(reader, task, lines.data)
    # A type of somebody's own may have lines of another form, which it takes apart itself.
    is_json = getattr(reader, "lines_are_json", True)
    if rows.num_rows != len(lines.starts) or (is_json and not lines.hold_one_object_each()):
        form = "JSON object" if is_json else "row"
        raise BadRowError(f"the line is not one {form}", fix=f"Write one {form} on each line")
    columns = _shared(rows, task.first_shard)
    content = list(_cut(lines, rows.kept))
    columns["row_offset"] = lines.starts[rows.kept] + lines.offset
    columns["row_size"] = (lines.ends - lines.starts)[rows.kept]
    columns["row_crc"] = np.array(list(map(crc32, content)), np.uint32)
    columns["status"], statuses = _status_codes(rows)
    if rows.members is not None:
        places = others.archives.find(rows.tar, rows.members)
        columns["audio_offset"], columns["audio_size"] = places
    parts = None
    if others.fields:
        parts, field_lines = others.fields.rows(lines.ordinal, rows.ids or (), rows.kept)
        if field_lines is not None:
            content = [a + b for a, b in zip(content, field_lines, strict=True)]
        columns["audio_offset"], columns["audio_size"] = _extent(parts)
    if rows.unmeasured:
        at = [row.index for row in rows.unmeasured]
        lengths = measure(rows.unmeasured)
        for name in ("duration_us", "num_samples", "rate", "channels"):
            columns[name][at] = getattr(lengths, name)
    task.dropped.update(rows.dropped)
    return Rows(_typed(columns), content if task.embed else None, lines.position, statuses, parts)


def _columns_of(reader: Any, task: ScanTask, data: bytes) -> RowColumns:
    """What a type says of some lines; what fails in a type of somebody's own is a bad row."""
    try:
        return reader.columns(task.leaf, task.pair, data)
    except (PlayheadError, MemoryError):
        raise
    except Exception as error:
        raise BadRowError(
            f"the input type {task.leaf.type!r} fails: {type(error).__name__}: {error}",
            fix="Correct the row, or the type",
        ) from error


def _shared(rows: RowColumns, first_shard: int) -> Block:
    """The columns that lines and tables have alike."""
    return {
        "duration_us": rows.duration_us,
        "num_samples": rows.num_samples,
        "rate": rows.rate,
        "channels": rows.channels,
        "shard": np.full(len(rows.kept), first_shard, np.int32),
        "tar": np.where(rows.tar < 0, -1, rows.tar + (first_shard + 1)),
        "audio_offset": np.zeros(len(rows.kept), np.int64),
        "audio_size": np.zeros(len(rows.kept), np.int64),
    }


def _typed(columns: Block) -> Block:
    return {name: np.ascontiguousarray(columns[name], dtype) for name, dtype in COLUMNS.items()}


def _status_codes(rows: RowColumns) -> tuple[NDArray[np.int16], list[str]]:
    """Number the rows' statuses; -1 where a row has none."""
    if rows.status is None:
        return np.full(len(rows.kept), -1, np.int16), []
    codes: dict[str, int] = {}
    numbers = [-1 if text is None else codes.setdefault(text, len(codes)) for text in rows.status]
    if len(codes) > _MOST_STATUSES:
        raise BadRowError(
            f"the rows have more than {_MOST_STATUSES} values of validation_status",
            fix="Write a short word there, such as pass",
        )
    return np.array(numbers, np.int16), list(codes)


def _extent(parts: Parts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the first part of each row begins, and the bytes of all: they tell data apart."""
    ends = np.cumsum(parts.num_parts)
    starts = ends - parts.num_parts
    has = parts.num_parts > 0
    offset, size = np.zeros(len(has), np.int64), np.zeros(len(has), np.int64)
    if has.any():
        offset[has] = parts.offset[starts[has]]
        size[has] = np.add.reduceat(parts.size, starts[has])
    return offset, size


def _cut(lines: _Run, kept: NDArray[np.int64]) -> Iterator[bytes]:
    """Return the bytes of each of the kept rows."""
    places = zip(lines.starts[kept].tolist(), lines.ends[kept].tolist(), strict=True)
    return (lines.block[start:end] for start, end in places)


def _placed(task: ScanTask, line: _Run, error: BadRowError) -> ManifestError:
    where = (
        f"{task.pair.manifest}:{int(line.numbers[0]) + 1}, byte {line.offset + int(line.starts[0])}"
    )
    where = f"leaf {task.leaf.name}, {where}"
    return ManifestError(error.what, where=where, fix=_or_skip(error.fix))
