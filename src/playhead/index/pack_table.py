"""What a pack says of itself: its leaves, their shards, and how its data changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from playhead.blend.types import declared, has_turns
from playhead.storage.compression import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = [
    "COLUMNS_CHECK_KEY",
    "DIGESTS_KEY",
    "LEAVES_KEY",
    "PACK_VERSION",
    "SHARDS_CHECK_KEY",
    "SHARDS_KEY",
    "VERSION_KEY",
    "Change",
    "LeafEntry",
    "ShardTable",
    "decode_checksums",
    "decode_leaves",
    "decode_shards",
    "encode_checksums",
    "encode_leaves",
    "encode_shards",
]

_NO_MIDDLE: Final = (
    r"^pipe:|(?:\.tgz|" + "|".join(f"\\{suffix}" for suffix in SUFFIXES) + r")(?:\?|$)"
)
PACK_VERSION: Final = b"4"
VERSION_KEY: Final = b"playhead.pack"
LEAVES_KEY: Final = b"playhead.leaves"
SHARDS_KEY: Final = b"playhead.shards"
SHARDS_CHECK_KEY: Final = b"playhead.shards.crc32"
DIGESTS_KEY: Final = b"playhead.digests"
COLUMNS_CHECK_KEY: Final = b"playhead.columns.crc32"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One rebuild of a leaf that found other content."""

    fingerprint: str
    """Of all rows before it."""
    num_rows: int
    """Before it."""
    files: list[tuple[str, str]]
    """Path and what changed there, bounded in number."""
    more: int = 0
    """Files that changed as well."""


class LeafEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a leaf lies in its pack and what shaped it."""

    key: str
    """The key of the leaf that it was built for."""
    source: str
    """Identity of its files and of the options that shape its columns."""
    type: str
    """Input type."""
    start: int
    """First row."""
    num_rows: int
    """Rows."""
    shard_start: int
    """First entry of the shard table."""
    num_shards: int
    """Entries of the shard table."""
    manifests: list[int]
    """Places of its manifests among them; the archives of each follow it."""
    embedded: bool = False
    """Whether the rows' bytes are in the pack."""
    has_offsets: bool = True
    """Whether it says where in its archives members lie; without, the columns `audio_offset` and
    `audio_size` of rows in archives are 0, and so are the offsets and sizes of parts there."""
    options: dict[str, Any] = {}
    """The options that shaped its columns."""
    dropped: dict[str, int] = {}
    """Rows left out, by reason."""
    statuses: list[str] = []
    """The texts that the column `status` counts."""
    fields: list[str] = []
    """The fields that parts of rows belong to."""
    group_ends: list[list[int]] = []
    """For each manifest of a table, where its stretches that are read as one end, in its rows."""
    group_bytes: list[list[int]] = []
    """Their bytes."""
    history: list[Change] = []
    """Rebuilds, oldest first."""

    @property
    def has_lines(self) -> bool:
        """Whether lines of other files are as much of a row as its own."""
        kind = declared(self.type)
        return kind is not None and kind.kind == "pair"

    def checksum(self, row: bytes, lines: Sequence[bytes] = ()) -> int:
        """Return the CRC-32 by which a row is known.

        Parameters
        ----------
        row
            Its bytes, as they lie in their source or in the pack: what fields add to the latter is
            behind its own.
        lines
            The lines of other files that are of it, where it is not in the pack.
        """
        if self.embedded and self.fields and not (self.has_lines or has_turns(self.type)):
            row = row.partition(b"\n")[0]
        checksum = crc32(row)
        for line in lines:
            checksum = crc32(line, crc32(b"\n", checksum))
        return checksum


@dataclass(frozen=True)
class ShardTable:
    """The files of a leaf, manifests and archives; arrays have shape (S,)."""

    paths: pa.StringArray
    """Their paths, absolute, or their URIs."""
    sizes: NDArray[np.int64]
    """Bytes as they are stored; 0 for pipes, of which nobody knows."""
    mtimes_ns: NDArray[np.int64]
    """Time of the last change, in nanoseconds since 1970; of an object its version."""
    rows: NDArray[np.int64]
    """Rows of the leaf that come from a manifest; 0 for archives."""
    dropped: pa.StringArray
    """JSON of the rows of a manifest that were left out, by reason; null where there are none."""

    @cached_property
    def uris(self) -> list[str]:
        """Their paths, absolute."""
        return self.paths.to_pylist()

    def have_middle(self) -> NDArray[np.bool_]:
        """Which of them are neither compressed nor pipes: of others offsets are of what is in it.

        Returns
        -------
        NDArray[np.bool_]
            `has_middle` of each, shape (S,).
        """
        found: Any = pc.call_function(
            "match_substring_regex", [self.paths], pc.MatchSubstringOptions(_NO_MIDDLE)
        )
        return ~found.to_numpy(zero_copy_only=False)

    def __len__(self) -> int:
        return len(self.sizes)

    def slice(self, start: int, count: int) -> ShardTable:
        """Return `count` entries from `start` on."""
        end = start + count
        return ShardTable(
            self.paths.slice(start, count),
            self.sizes[start:end],
            self.mtimes_ns[start:end],
            self.rows[start:end],
            self.dropped.slice(start, count),
        )


def encode_checksums(checksums: Mapping[str, int]) -> bytes:
    """Write the CRC-32 of each column as JSON."""
    return msgspec.json.encode(checksums)


def decode_checksums(data: bytes | None) -> dict[str, int]:
    """Read the CRC-32 of each column; none where the pack has none."""
    return {} if data is None else msgspec.json.decode(data, type=dict[str, int])


def encode_leaves(leaves: Sequence[LeafEntry]) -> bytes:
    """Write the table of leaves as JSON."""
    return msgspec.json.encode(leaves)


def decode_leaves(data: bytes) -> list[LeafEntry]:
    """Read the table of leaves."""
    return msgspec.json.decode(data, type=list[LeafEntry])


def encode_shards(tables: Sequence[ShardTable]) -> dict[bytes, bytes]:
    """Write shard tables end to end as an Arrow stream, with its checksum: what a schema says."""
    batch = pa.record_batch(
        {
            "uri": _joined_strings([table.paths for table in tables]),
            "size": _joined([table.sizes for table in tables]),
            "mtime_ns": _joined([table.mtimes_ns for table in tables]),
            "rows": _joined([table.rows for table in tables]),
            "dropped": _joined_strings([table.dropped for table in tables]),
        }
    )
    sink = pa.BufferOutputStream()
    # Paths of shards are much alike, and the schema that holds them is read whenever a pack is.
    options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    return {SHARDS_KEY: data, SHARDS_CHECK_KEY: b"%08x" % crc32(data)}


def decode_shards(data: bytes, checksum: bytes | None) -> ShardTable:
    """Read a shard table.

    Parameters
    ----------
    data
        The table.
    checksum
        Its CRC-32 as `encode_shards` wrote it; None where the pack has none.

    Raises
    ------
    ValueError, ArrowException
        If it is damaged.
    """
    if checksum is not None and checksum != b"%08x" % crc32(data):
        raise ValueError("the table of its files has another checksum")
    with pa.ipc.open_stream(data) as reader:
        batch = reader.read_next_batch()
    # Offsets of a damaged text column would be followed out of the memory.
    batch.validate(full=True)
    return ShardTable(
        batch.column("uri"),
        batch.column("size").to_numpy(),
        batch.column("mtime_ns").to_numpy(),
        batch.column("rows").to_numpy(),
        batch.column("dropped"),
    )


def _joined(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _joined_strings(arrays: Sequence[pa.StringArray]) -> pa.StringArray:
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())
