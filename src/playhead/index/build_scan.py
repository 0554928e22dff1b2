"""From a manifest and its archives to columns, a block of rows at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from playhead.errors import ManifestError
from playhead.formats import BadRowError, get_format
from playhead.index.build_measure import measure
from playhead.index.build_parts import BAD_ROW, BLANK_LINE
from playhead.index.build_tars import ArchiveIndex
from playhead.index.columns import COLUMNS, Block
from playhead.index.source import check_unchanged, read_lines, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats import SourcePair
    from playhead.index.source import LineBlock

__all__ = ["Rows", "ScanTask", "scan"]

_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"


class Rows(NamedTuple):
    """Some rows that are kept."""

    columns: Block
    """An array for each column."""
    data: bytes | None
    """Their bytes, end to end, where those are embedded."""
    position: int
    """Bytes of the manifest that have been read so far, decompressed."""


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

    @property
    def data(self) -> bytes:
        """The bytes from the first line to the last."""
        return self.block[int(self.starts[0]) : int(self.ends[-1])]

    def part(self, start: int, stop: int) -> _Run:
        """Return some of the lines."""
        at = slice(start, stop)
        return self._replace(numbers=self.numbers[at], starts=self.starts[at], ends=self.ends[at])

    def hold_one_object_each(self) -> bool:
        """Whether each line begins and ends as an object does.

        Where this is so, no value that reads well reaches over the end of a line, as `}` and `{`
        never follow each other inside a value: so each line holds at least one.
        """
        data = np.frombuffer(self.block, np.uint8)
        return bool(((data[self.starts] == _OPEN) & (data[self.ends - 1] == _CLOSE)).all())


def scan(task: ScanTask) -> Iterator[Rows]:
    """Read a manifest and find its rows' audio.

    Raises
    ------
    ManifestError
        If a row cannot be used; file, line and byte are named.
    BuildError
        If the manifest or an archive changes meanwhile.
    """
    paths = task.pair.files
    before = [stamp(path) for path in paths]
    archives = ArchiveIndex(task.pair.tars)
    for block in read_lines(task.pair.manifest):
        yield from _scan_block(task, archives, block)
    if archives.num_unused:
        task.dropped["tar member without a row"] += archives.num_unused
    for path, old in zip(paths, before, strict=True):
        check_unchanged(path, old)


def _scan_block(task: ScanTask, archives: ArchiveIndex, block: LineBlock) -> Iterator[Rows]:
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
    )
    try:
        yield _read(task, archives, run)
    except BadRowError:
        # Blanks are the common cause; only if there is another must the lines be halved.
        yield from _read_halves(task, archives, _without_blanks(task, run))


def _without_blanks(task: ScanTask, run: _Run) -> _Run:
    """Leave out blank lines, and the blanks around the others."""
    lines = run.data.split(b"\n")[: len(run.starts)]
    starts = run.starts + [len(line) - len(line.lstrip()) for line in lines]
    ends = starts + [len(line.strip()) for line in lines]
    full = ends > starts
    task.dropped[BLANK_LINE] += int((~full).sum())
    return run._replace(numbers=run.numbers[full], starts=starts[full], ends=ends[full])


def _read_halves(task: ScanTask, archives: ArchiveIndex, run: _Run) -> Iterator[Rows]:
    """Read lines; where they cannot be read together, halve them down to the bad ones."""
    num_lines = len(run.starts)
    if num_lines == 0:
        return
    try:
        yield _read(task, archives, run)
    except BadRowError as error:
        if num_lines == 1 and not task.skip_bad_rows:
            raise _placed(task, run, error) from None
    else:
        return
    if num_lines == 1:
        task.dropped[BAD_ROW] += 1
        return
    middle = num_lines // 2
    yield from _read_halves(task, archives, run.part(0, middle))
    yield from _read_halves(task, archives, run.part(middle, num_lines))


def _read(task: ScanTask, archives: ArchiveIndex, lines: _Run) -> Rows:
    """Read a run of lines, all of which must be good."""
    rows = get_format(task.leaf.type).columns(task.leaf, task.pair, lines.data)
    if rows.num_rows != len(lines.starts) or not lines.hold_one_object_each():
        raise BadRowError(
            "the line is not one JSON object", fix="Write one JSON object on each line"
        )
    columns: Block = {
        "duration_us": rows.duration_us,
        "num_samples": rows.num_samples,
        "rate": rows.rate,
        "channels": rows.channels,
        "shard": np.full(len(rows.kept), task.first_shard, np.int32),
        "row_offset": lines.starts[rows.kept] + lines.offset,
        "row_size": (lines.ends - lines.starts)[rows.kept],
        "row_crc": np.array([crc32(row) for row in _cut(lines, rows.kept)], np.uint32),
        "tar": np.where(rows.tar < 0, -1, rows.tar + (task.first_shard + 1)),
        "audio_offset": np.zeros(len(rows.kept), np.int64),
        "audio_size": np.zeros(len(rows.kept), np.int64),
    }
    if rows.members is not None:
        places = archives.find(rows.tar, rows.members)
        columns["audio_offset"], columns["audio_size"] = places
    if rows.unmeasured:
        at = [row.index for row in rows.unmeasured]
        lengths = measure(rows.unmeasured)
        for name in ("duration_us", "num_samples", "rate", "channels"):
            columns[name][at] = getattr(lengths, name)
    task.dropped.update(rows.dropped)
    return Rows(
        {name: np.ascontiguousarray(columns[name], dtype) for name, dtype in COLUMNS.items()},
        b"".join(_cut(lines, rows.kept)) if task.embed else None,
        lines.position,
    )


def _cut(lines: _Run, kept: NDArray[np.int64]) -> Iterator[bytes]:
    """Return the bytes of each of the kept rows."""
    places = zip(lines.starts[kept].tolist(), lines.ends[kept].tolist(), strict=True)
    return (lines.block[start:end] for start, end in places)


def _placed(task: ScanTask, line: _Run, error: BadRowError) -> ManifestError:
    where = (
        f"{task.pair.manifest}:{int(line.numbers[0]) + 1}, byte {line.offset + int(line.starts[0])}"
    )
    fix = f"{error.fix}, or leave such rows out with `playhead index --skip-bad-rows`"
    return ManifestError(error.what, where=f"leaf {task.leaf.name}, {where}", fix=fix)
