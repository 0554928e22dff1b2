"""From a manifest and its archives to columns, a block of rows at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.errors import ManifestError
from playhead.formats import BadRowError, get_format
from playhead.index.build_measure import measure
from playhead.index.build_parts import BAD_ROW
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

_NEWLINE = 10


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


@dataclass(kw_only=True)
class _Lines:
    """Lines of one block that are not blank."""

    lines: list[bytes]
    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def part(self, start: int, stop: int) -> _Lines:
        return _Lines(
            lines=self.lines[start:stop],
            numbers=self.numbers[start:stop],
            offsets=self.offsets[start:stop],
        )


def scan(task: ScanTask) -> Iterator[Rows]:
    """Read a manifest and find its rows' audio.

    Raises
    ------
    ManifestError
        If a row cannot be used; file, line and byte are named.
    BuildError
        If the manifest or an archive changes meanwhile.
    """
    paths = (task.pair.manifest, *task.pair.tars)
    before = [stamp(path) for path in paths]
    archives = ArchiveIndex(task.pair.tars)
    for block in read_lines(task.pair.manifest):
        yield from _scan_block(task, archives, block)
    if archives.num_unused:
        task.dropped["tar member without a row"] += archives.num_unused
    for path, old in zip(paths, before, strict=True):
        check_unchanged(path, old)


def _scan_block(task: ScanTask, archives: ArchiveIndex, block: LineBlock) -> Iterator[Rows]:
    ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == _NEWLINE)
    if not block.data.endswith(b"\n"):
        ends = np.append(ends, len(block.data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    position = block.offset + len(block.data)
    try:
        yield _read(task, archives, block.data, block.offset + starts, ends - starts, position)
    except BadRowError:
        pass
    else:
        return
    lines = block.data.split(b"\n")[: len(starts)]
    full = np.array([not line.isspace() and line != b"" for line in lines], np.bool_)
    task.dropped["blank line"] += int((~full).sum())
    yield from _read_lines(
        task,
        archives,
        _Lines(
            lines=[line for line, keep in zip(lines, full.tolist(), strict=True) if keep],
            numbers=(block.first_line + np.arange(len(lines)))[full],
            offsets=(block.offset + starts)[full],
        ),
        position,
    )


def _read_lines(
    task: ScanTask, archives: ArchiveIndex, lines: _Lines, position: int
) -> Iterator[Rows]:
    """Read lines; where they cannot be read together, halve them down to the bad ones."""
    if not lines.lines:
        return
    sizes = np.array([len(line) for line in lines.lines], np.int64)
    try:
        yield _read(task, archives, b"\n".join(lines.lines), lines.offsets, sizes, position)
    except BadRowError as error:
        if len(lines.lines) == 1:
            if not task.skip_bad_rows:
                raise _placed(task, lines, error) from None
            task.dropped[BAD_ROW] += 1
            return
    else:
        return
    middle = len(lines.lines) // 2
    yield from _read_lines(task, archives, lines.part(0, middle), position)
    yield from _read_lines(task, archives, lines.part(middle, len(lines.lines)), position)


def _read(
    task: ScanTask,
    archives: ArchiveIndex,
    data: bytes,
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    position: int,
) -> Rows:
    """Read a run of lines, all of which must be good."""
    rows = get_format(task.leaf.type).columns(task.leaf, task.pair, data)
    if rows.num_rows != len(offsets):
        raise BadRowError(
            "the line is not one JSON object", fix="Write one JSON object on each line"
        )
    columns: Block = {
        "duration_us": rows.duration_us,
        "num_samples": rows.num_samples,
        "rate": rows.rate,
        "channels": rows.channels,
        "shard": np.full(len(rows.kept), task.first_shard, np.int32),
        "row_offset": offsets[rows.kept],
        "row_size": sizes[rows.kept],
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
        _cut(data, offsets, sizes, rows.kept) if task.embed else None,
        position,
    )


def _cut(
    data: bytes, offsets: NDArray[np.int64], sizes: NDArray[np.int64], kept: NDArray[np.int64]
) -> bytes:
    """Cut the kept rows out of their lines, which follow each other with one byte between."""
    starts = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]])[kept]
    ends = (starts + sizes[kept]).tolist()
    return b"".join(data[start:end] for start, end in zip(starts.tolist(), ends, strict=True))


def _placed(task: ScanTask, line: _Lines, error: BadRowError) -> ManifestError:
    where = f"{task.pair.manifest}:{int(line.numbers[0]) + 1}, byte {int(line.offsets[0])}"
    fix = f"{error.fix}, or leave such rows out with `playhead index --skip-bad-rows`"
    return ManifestError(error.what, where=f"leaf {task.leaf.name}, {where}", fix=fix)
