"""Packs: the columns of one leaf or of many, in one memory-mapped Arrow file."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa

from playhead.errors import IndexFileError, StaleIndexError
from playhead.index.columns import COLUMNS, DIGEST_ROWS, prefix_fingerprint
from playhead.index.pack_columns import PackColumns
from playhead.index.pack_damage import REBUILD, FileTable, PackVersionError, named_damage
from playhead.index.pack_groups import Groups, groups_of
from playhead.index.pack_kind import ARROW_MAGIC, NEMO_MAGIC, first_bytes
from playhead.index.pack_table import (
    DIGESTS_KEY,
    LEAVES_KEY,
    PACK_VERSION,
    VERSION_KEY,
    LeafEntry,
    ShardTable,
    decode_leaves,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from playhead.index.columns import Parts

__all__ = ["LeafPack", "Pack", "PackRef", "PackVersionError", "ShardTable", "open_pack"]

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class PackRef:
    """A leaf's columns by name: what travels between processes in place of a map."""

    path: str
    """The pack's file."""
    key: str
    """The leaf's key."""
    source: str
    """Identity of the leaf's files in the pack."""
    digest: str
    """Content that is expected there."""

    def open(self) -> LeafPack:
        """Map the columns.

        Raises
        ------
        IndexFileError
            If the file is gone or cannot be used.
        StaleIndexError
            If it holds other content by now.
        """
        leaf = open_pack(self.path).leaf(self.key, self.source)
        if leaf.digest != self.digest:
            raise StaleIndexError(
                f"the pack of leaf {self.key} was replaced while it was in use",
                where=self.path,
                fix="Start again: the data changed under the run",
            )
        return leaf


class LeafPack:
    """The columns of one leaf: read-only arrays of shape (N,), one element a sample.

    Parameters
    ----------
    pack
        The file.
    entry
        Where the leaf lies in it.
    digests
        Content digests of its blocks.
    key
        What the leaf is called where it is used; the pack may have been built under another key.

    Attributes
    ----------
    duration_us : int64
        Length as declared, in microseconds.
    num_samples : int64
        Samples at `rate`; 0 is unknown.
    rate : int32
        Hz; 0 is unknown.
    channels : int16
        Channels of the sample; 0 is unknown.
    shard : int32
        Index in `shards` of the manifest that holds the row.
    row_offset, row_size : int64, int32
        Bytes of the row in its manifest, decompressed where it is compressed.
    row_crc : uint32
        CRC-32 of those bytes: rows of one length must not pass for each other.
    tar : int32
        Index in `shards` of the archive that holds the audio; -1 where the row names a file.
    audio_offset, audio_size : int64
        Bytes of the audio in that archive; of a row with parts where the first begins, and the
        bytes of all; 0 where there is neither.
    status : int16
        The row's `validation_status` among `entry.statuses`; -1 where it has none.
    """

    duration_us: NDArray[np.int64]
    num_samples: NDArray[np.int64]
    rate: NDArray[np.int32]
    channels: NDArray[np.int16]
    shard: NDArray[np.int32]
    row_offset: NDArray[np.int64]
    row_size: NDArray[np.int32]
    row_crc: NDArray[np.uint32]
    tar: NDArray[np.int32]
    audio_offset: NDArray[np.int64]
    audio_size: NDArray[np.int64]
    status: NDArray[np.int16]

    def __init__(self, pack: Pack, entry: LeafEntry, digests: list[bytes], key: str) -> None:
        self.key = key
        self.entry = entry
        self.num_rows = entry.num_rows
        self.path = pack.path
        self.dropped = dict(entry.dropped)
        self._pack = pack
        self._digests = digests
        self._rows = slice(entry.start, entry.start + entry.num_rows)
        self._fingerprints: dict[int, str] = {}

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Open a column when it is first asked for."""
        if name not in COLUMNS:
            raise AttributeError(name)
        column = self._pack.column(name)[self._rows]
        setattr(self, name, column)
        return column

    @cached_property
    def shards(self) -> ShardTable:
        """The leaf's files, which `shard` and `tar` index."""
        return self._pack.shards.slice(self.entry.shard_start, self.entry.num_shards)

    @property
    def digest(self) -> str:
        """Identity of the content of all rows, the same for every copy of the data."""
        return self.fingerprint()

    @property
    def digests(self) -> list[bytes]:
        """Content digests of the whole blocks of rows."""
        return self._digests

    @property
    def ref(self) -> PackRef:
        """What another process opens to get the same."""
        return PackRef(self.path, self.key, self.entry.source, self.digest)

    def __reduce__(self) -> tuple[Any, tuple[PackRef]]:
        return PackRef.open, (self.ref,)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def fingerprint(self, n: int | None = None) -> str:
        """Identify the content of the first `n` rows (all if None): 16 hexadecimal digits.

        Number of rows, lengths, bytes of rows, and offsets and sizes of rows and audio enter; paths
        and time stamps do not. Reads at most 65,536 rows.

        Raises
        ------
        ValueError
            If the leaf has fewer rows.
        """
        n = self.num_rows if n is None else n
        if not 0 <= n <= self.num_rows:
            message = f"leaf {self.key} has {self.num_rows} rows, not {n}"
            raise ValueError(message)
        known = self._fingerprints.get(n)
        if known is None:
            columns = {name: self._pack.unchecked(name)[self._rows] for name in COLUMNS}
            known = prefix_fingerprint(columns, self._digests, n)
            self._fingerprints[n] = known
        return known

    def explain_change(self, old_fingerprint: str, n: int) -> str:
        """Say what changed since the first `n` rows had `old_fingerprint`, file by file if known.

        Examples of what it returns: ``/data/m_0.json: 100 rows became 90``;
        ``/data/m_0.json: 3 durations differ, the first at row 17``.
        """
        history = self.entry.history
        for index, change in enumerate(history):
            if change.fingerprint == old_fingerprint and change.num_rows == n:
                parts = [f"{uri}: {what}" for step in history[index:] for uri, what in step.files]
                more = sum(step.more for step in history[index:])
                return "; ".join(parts) + (f"; and {more} more files" if more else "")
        files = f"{self.shards.uris[0]}" if len(self.shards) else self.path
        if len(self.shards) > 1:
            files += f" and {len(self.shards) - 1} more files"
        if n > self.num_rows:
            return f"{files}: {n} rows became {self.num_rows}"
        return f"{files}: lengths or places of the first {n} rows differ (now {self.num_rows} rows)"

    def parts(self, rows: NDArray[np.int64]) -> Parts:
        """Where what belongs to rows lies in other files, row after row."""
        return self._pack.parts(rows + self.entry.start)

    @cached_property
    def groups(self) -> Groups | None:
        """The stretches of rows that are read as one; None where rows are read one by one."""
        return groups_of(self.entry, self.shard, self.row_offset)

    def row_bytes(self, i: int) -> bytes | None:
        """Return the bytes of a row that is embedded in the pack; None where rows are not."""
        return self._pack.row_bytes(self.entry.start + i) if self.entry.embedded else None


class Pack:
    """A pack that is open.

    Parameters
    ----------
    path
        Its file.
    batch
        Its only record batch.
    metadata
        What its schema says.
    """

    def __init__(self, path: str, batch: pa.RecordBatch, metadata: dict[bytes, bytes]) -> None:
        self.path = path
        self.leaves = decode_leaves(metadata[LEAVES_KEY])
        self._files = FileTable(path, metadata, self.leaves)
        self._columns = PackColumns(batch, metadata, self.leaves, self._files)
        blob = metadata[DIGESTS_KEY]
        self._digests = [blob[i : i + _DIGEST_BYTES] for i in range(0, len(blob), _DIGEST_BYTES)]
        self._first_digest: list[int] = []
        total = blocks = 0
        for leaf in self.leaves:
            self._first_digest.append(blocks)
            blocks += leaf.num_rows // DIGEST_ROWS
            total += leaf.num_rows
        if total != batch.num_rows or blocks != len(self._digests):
            message = f"it has {batch.num_rows} rows, its leaves {total}"
            raise ValueError(message)
        self._by_source = {leaf.source: index for index, leaf in enumerate(self.leaves)}
        self._by_key = {leaf.key: index for index, leaf in enumerate(self.leaves)}

    @property
    def shards(self) -> ShardTable:
        """The files of all leaves.

        Raises
        ------
        IndexFileError
            If the pack is damaged.
        """
        return self._files.shards

    def entry(self, source: str) -> LeafEntry | None:
        """Return where the leaf with that source lies; None if it is not there."""
        index = self._by_source.get(source)
        return None if index is None else self.leaves[index]

    def find(self, key: str, source: str | None = None) -> LeafPack | None:
        """Return the leaf with that source, else with that key; None if there is neither."""
        index = self._by_source.get(source) if source is not None else None
        if index is None:
            index = self._by_key.get(key)
        if index is None:
            return None
        entry, first = self.leaves[index], self._first_digest[index]
        digests = self._digests[first : first + entry.num_rows // DIGEST_ROWS]
        return LeafPack(self, entry, digests, key)

    def leaf(self, key: str, source: str | None = None) -> LeafPack:
        """Return a leaf by its source or its key.

        Raises
        ------
        IndexFileError
            If the pack does not hold it.
        """
        leaf = self.find(key, source)
        if leaf is None:
            uris = self.shards.uris
            some = [f"{leaf.key} ({uris[leaf.shard_start]})" for leaf in self.leaves[:5]]
            shown = ", ".join(some) + (", …" if len(self.leaves) > 5 else "")
            raise IndexFileError(
                f"the pack does not hold leaf {key} but {shown}", where=self.path, fix=REBUILD
            )
        return leaf

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of all leaves, end to end.

        Raises
        ------
        IndexFileError
            If it is damaged.
        """
        with named_damage(self.path):
            return self._columns.column(name)

    def unchecked(self, name: str) -> NDArray[Any]:
        """Return a column as it lies in the file, for what only compares it.

        Raises
        ------
        IndexFileError
            If it cannot be taken for one.
        """
        with named_damage(self.path):
            return self._columns.unchecked(name)

    def parts(self, rows: NDArray[np.int64]) -> Parts:
        """Return the parts of rows, row after row.

        Raises
        ------
        IndexFileError
            If the pack is damaged.
        """
        with named_damage(self.path):
            return self._columns.parts.of(rows)

    def row_bytes(self, i: int) -> bytes | None:
        """Return an embedded row; None where the pack holds none.

        Raises
        ------
        IndexFileError
            If the pack is damaged.
        """
        with named_damage(self.path):
            rows = self._columns.rows
        return None if rows is None else rows[i].as_buffer().to_pybytes()


_open_packs: WeakValueDictionary[tuple[str, int, int, int], Pack] = WeakValueDictionary()
_open_lock = threading.Lock()


def open_pack(path: str | Path) -> Pack:
    """Map a pack; opening it again while it is open gives the same object.

    Raises
    ------
    IndexFileError
        If the file is missing, damaged, of another version, or not a pack of ours.
    """
    path = str(path)
    try:
        stat = Path(path).stat()
    except OSError as error:
        raise IndexFileError(
            f"the pack cannot be opened: {error.strerror}", where=path, fix=REBUILD
        ) from None
    identity = (path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    with _open_lock:
        pack = _open_packs.get(identity)
        if pack is None:
            pack = _open_packs[identity] = _map(path)
        return pack


def _map(path: str) -> Pack:
    magic = first_bytes(path)
    if magic.startswith(NEMO_MAGIC):
        raise IndexFileError(
            "this is a pack that NeMo or Lhotse made", where=path, fix="Use `playhead pack`"
        )
    if not magic.startswith(ARROW_MAGIC):
        raise IndexFileError("this is not a pack", where=path, fix=REBUILD)
    with named_damage(path):
        reader = pa.ipc.open_file(pa.memory_map(path))
        metadata: dict[bytes, bytes] = dict(reader.schema.metadata or {})
        version = metadata.get(VERSION_KEY)
        if version is None:
            raise IndexFileError(
                "this Arrow file is not a pack of Playhead", where=path, fix=REBUILD
            )
        if version != PACK_VERSION:
            raise PackVersionError(
                f"the pack has version {version.decode()}, this Playhead reads version "
                f"{PACK_VERSION.decode()}",
                where=path,
                fix=REBUILD,
            )
        return Pack(path, reader.get_batch(0), metadata)
