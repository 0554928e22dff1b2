"""Making one pack from the files of its leaves and from what an older pack still says rightly."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from playhead.blend.types import has_turns
from playhead.formats import ScannedFormat, TableFormat, format_of, get_format
from playhead.index.build_audios import AUDIO_FIELD
from playhead.index.build_history import history
from playhead.index.build_pace import part_cost
from playhead.index.build_parts import Part, parts
from playhead.index.build_rows import Rows, ScanTask
from playhead.index.columns import ColumnSpool, Digester
from playhead.index.foreign import check_foreign
from playhead.index.pack_table import Change, LeafEntry, ShardTable
from playhead.index.pack_write import write_pack
from playhead.storage.access import is_remote
from playhead.storage.compression import has_middle, is_archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats import SourcePair
    from playhead.index.build_pace import Pace
    from playhead.index.build_target import LeafSources, Target
    from playhead.index.pack import LeafPack, Pack

__all__ = ["PackPlan", "PackSettings", "plan_pack", "write_plan"]

_CHUNK_ROWS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class PackSettings:
    """How packs are made."""

    embed_rows: bool = False
    """Put the rows' bytes into the pack, also those of manifests that are not compressed."""
    skip_bad_rows: bool = False
    """Count rows that cannot be used rather than raise."""
    has_offsets: bool = True
    """Find where members lie in archives; without, archives are named and never opened."""


class _Leaf(NamedTuple):
    """One leaf of the pack."""

    # Without its paths: each of very many tasks would carry all of them to a worker.
    bare: Leaf
    sources: LeafSources
    previous: LeafPack | None
    parts: list[Part]
    embed: bool
    has_offsets: bool
    fields: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class PackPlan:
    """What must be read to make a pack."""

    target: Target
    """The pack and its leaves."""
    leaves: list[_Leaf]
    """Its leaves, manifest by manifest."""
    tasks: list[ScanTask]
    """The manifests that must be read, in the order of the pack."""
    costs: list[float]
    """Estimated seconds of each."""


def plan_pack(target: Target, old: Pack | None, settings: PackSettings) -> PackPlan:
    """Find out what must be read to make a pack.

    Parameters
    ----------
    target
        What it is to hold.
    old
        The pack that it replaces: manifests whose files are as they were then are not read again.
    settings
        How to make it.
    """
    leaves = [_leaf(sources, old, settings) for sources in target.members]
    unread = [(leaf, part) for leaf in leaves for part in leaf.parts if part.known is None]
    return PackPlan(
        target=target,
        leaves=leaves,
        tasks=[_task(leaf, part, settings) for leaf, part in unread],
        costs=[part_cost(part.stamps[: None if leaf.has_offsets else 1]) for leaf, part in unread],
    )


def write_plan(plan: PackPlan, scans: Iterable[Iterator[Rows]], pace: Pace) -> None:
    """Write a pack.

    Parameters
    ----------
    plan
        What it is to hold.
    scans
        The rows of each of the plan's tasks; a task's counts are complete when its rows are used
        up.
    pace
        Told of the work, all of which it already counts.

    Raises
    ------
    DataError, BuildError
        If a source cannot be used, changes meanwhile, or takes longer than `pace` allows.
    """
    work = zip(plan.tasks, plan.costs, scans, strict=True)
    entries: list[LeafEntry] = []
    tables: list[ShardTable] = []
    digests: list[bytes] = []
    embed = any(leaf.embed for leaf in plan.leaves)
    with_parts = any(leaf.fields for leaf in plan.leaves)
    num_shards = 0
    folder = plan.target.path.parent
    with (
        pace.working(),
        closing(ColumnSpool(folder, embed=embed, with_parts=with_parts)) as spool,
    ):
        for leaf in plan.leaves:
            start = spool.num_rows
            output = _Output(spool)
            table, dropped = _read(leaf, work, output, pace)
            groups = _groups(leaf.sources)
            changes: list[Change] = []
            if leaf.previous is not None:
                read = [part.pair.manifest for part in leaf.parts if part.known is None]
                fingerprint = output.digester.fingerprint()
                changes = history(leaf.previous, output.read, table, read, fingerprint)
            entries.append(
                LeafEntry(
                    key=leaf.sources.leaf.key,
                    source=leaf.sources.source,
                    type=leaf.sources.leaf.type,
                    start=start,
                    num_rows=spool.num_rows - start,
                    shard_start=num_shards,
                    num_shards=len(table),
                    manifests=[part.shard for part in leaf.parts],
                    embedded=leaf.embed,
                    has_offsets=leaf.has_offsets,
                    options=leaf.sources.options,
                    dropped=dict(dropped),
                    statuses=list(output.statuses),
                    fields=list(leaf.fields),
                    group_ends=groups.ends,
                    group_bytes=groups.sizes,
                    history=changes,
                )
            )
            tables.append(table)
            num_shards += len(table)
            digests += output.digester.digests
        write_pack(plan.target.path, entries, tables, digests, spool)


class _Output:
    """The rows of one leaf on their way into the spool."""

    def __init__(self, spool: ColumnSpool) -> None:
        self.digester = Digester()
        self.statuses: dict[str, int] = {}
        self._spool = spool
        self._start = spool.num_rows

    @property
    def num_rows(self) -> int:
        """Rows so far."""
        return self._spool.num_rows - self._start

    def append(self, rows: Rows) -> None:
        """Add rows; their statuses are numbered anew, as those of the whole leaf."""
        block = rows.columns
        if rows.statuses:
            codes = [self.statuses.setdefault(s, len(self.statuses)) for s in rows.statuses]
            # One more for rows that do not say: -1 is the last place.
            block = {**block, "status": np.array([*codes, -1], np.int16)[block["status"]]}
        self._spool.append(block, rows.data, rows.parts)
        self.digester.append(block)

    def read(self, name: str, start: int, stop: int) -> NDArray:
        """Read some rows of a column."""
        return self._spool.read(name, self._start + start, self._start + stop)


def _leaf(sources: LeafSources, old: Pack | None, settings: PackSettings) -> _Leaf:
    if sources.offsets_from is not None:
        check_foreign(sources.offsets_from, sources.pairs, sources.leaf.name)
    reader: Any = format_of(sources.leaf)
    previous = None if old is None else old.find(sources.leaf.key, sources.source)
    embed = (
        settings.embed_rows
        or any(not has_middle(path) for pair in sources.pairs for path in _lines_of(pair))
        # Nobody but the index makes them.
        or (isinstance(reader, ScannedFormat) and not isinstance(reader, TableFormat))
        or (not isinstance(reader, ScannedFormat) and any(map(_is_far_text, sources.pairs)))
        or (previous is not None and previous.entry.embedded)
    )
    known = parts(sources, previous, embed=embed, skip_bad_rows=settings.skip_bad_rows)
    names = dict.fromkeys(shard.field for pair in sources.pairs for shard in pair.fields)
    if has_turns(sources.leaf.type):
        names[AUDIO_FIELD] = None
    fields = {name: code for code, name in enumerate(names)}
    # What is found in an archive by its members' names needs no offsets where names are asked for.
    has_offsets = settings.has_offsets or not any(pair.tars for pair in sources.pairs)
    if previous is not None and (
        previous.entry.fields != list(fields) or previous.entry.has_offsets != has_offsets
    ):
        known = [part._replace(known=None) for part in known]
    bare = replace(sources.leaf, paths={})
    return _Leaf(bare, sources, previous, known, embed, has_offsets, fields)


def _lines_of(pair: SourcePair) -> Iterator[str]:
    """The files that rows are read from; archives of audio are none."""
    yield pair.manifest
    yield from (shard.path for shard in pair.fields if not is_archive(shard.path))


def _is_far_text(pair: SourcePair) -> bool:
    """Whether rows would be asked of a store one by one, with no archive that lies beside them."""
    return is_remote(pair.manifest) and not (pair.tars or pair.fields or is_archive(pair.manifest))


def _task(leaf: _Leaf, part: Part, settings: PackSettings) -> ScanTask:
    return ScanTask(
        leaf=leaf.bare,
        pair=part.pair,
        first_shard=part.shard,
        embed=leaf.embed,
        skip_bad_rows=settings.skip_bad_rows,
        has_offsets=leaf.has_offsets,
        offsets_from=leaf.sources.offsets_from,
        reader=type(get_format(leaf.bare.type)),
        field_codes=leaf.fields,
    )


class _Groups(NamedTuple):
    ends: list[list[int]]
    sizes: list[list[int]]


def _groups(sources: LeafSources) -> _Groups:
    """Where the stretches of tables end that are read as one, and their bytes."""
    reader: Any = format_of(sources.leaf)
    if not isinstance(reader, TableFormat):
        return _Groups([], [])
    found = [reader.groups(sources.leaf, pair) for pair in sources.pairs]
    return _Groups([ends.tolist() for ends, _ in found], [sizes.tolist() for _, sizes in found])


def _read(
    leaf: _Leaf,
    work: Iterator[tuple[ScanTask, float, Iterator[Rows]]],
    output: _Output,
    pace: Pace,
) -> tuple[ShardTable, Counter[str]]:
    """Put a leaf's rows into the spool; return its files and what was left out."""
    num_files = len(leaf.sources.paths)
    rows = np.zeros(num_files, np.int64)
    said: list[str | None] = [None] * num_files
    total: Counter[str] = Counter()
    for part in leaf.parts:
        before = output.num_rows
        if part.known is None or leaf.previous is None:
            task, cost, scanned = next(work)
            _append(part, cost, scanned, output, pace)
            dropped = {reason: count for reason, count in task.dropped.items() if count}
        else:
            _copy(leaf.previous, part, output)
            dropped = part.known.dropped
        rows[part.shard] = output.num_rows - before
        said[part.shard] = msgspec.json.encode(dropped).decode() if dropped else None
        total.update(dropped)
    stamps = [stamp for part in leaf.parts for stamp in part.stamps]
    table = ShardTable(
        pa.array(leaf.sources.paths, pa.string()),
        np.array([stamp.size for stamp in stamps], np.int64),
        np.array([stamp.mtime_ns for stamp in stamps], np.int64),
        rows,
        pa.array(said, pa.string()),
    )
    return table, total


def _append(part: Part, cost: float, scanned: Iterator[Rows], output: _Output, pace: Pace) -> None:
    size, own = part.stamps[0].size, part_cost(part.stamps[:1])
    whole = size > 0 and has_middle(part.pair.manifest)
    done = 0.0
    for rows in scanned:
        output.append(rows)
        # The archives are scanned for the first row that wants them.
        now = cost - own + own * min(rows.position / size, 1) if whole else 0.0
        pace.advance(part.pair.manifest, now - done)
        done = now
    pace.advance(part.pair.manifest, cost - done)


def _copy(old: LeafPack, part: Part, output: _Output) -> None:
    """Take a manifest's rows over from the older pack, some at a time."""
    assert part.known is not None
    moved = part.shard - part.known.shard
    stop = part.known.rows.stop
    for start in range(part.known.rows.start, stop, _CHUNK_ROWS):
        end = min(start + _CHUNK_ROWS, stop)
        block = {name: column[start:end] for name, column in old.columns().items()}
        block["shard"] = block["shard"] + np.int32(moved)
        block["tar"] = np.where(block["tar"] < 0, block["tar"], block["tar"] + np.int32(moved))
        data = [old.row_bytes(i) or b"" for i in range(start, end)] if old.entry.embedded else None
        parts = old.parts(np.arange(start, end)) if old.entry.fields else None
        if parts is not None:
            file = np.where(parts.file < 0, parts.file, parts.file + np.int32(moved))
            parts = parts._replace(file=file)
        output.append(Rows(block, data, 0, old.entry.statuses, parts))
