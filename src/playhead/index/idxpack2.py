"""Packs that NeMo and Lhotse write (`IDXPACK2`): where the records of many files begin.

They hold no lengths, so no plan can be made of them; they are read as sources of offsets. Layout,
little-endian: a header of 256 bytes, a table of collections, one of sequences (which files a
collection has, in order), one of segments (the files), texts, and the offsets themselves, each
file's followed by its size. Versions 2 and 3 are read; 3 adds arrays that belong to no file.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
import zlib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from playhead.errors import IndexFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["IDXPACK_FIX", "IdxPack", "Segment", "collection_key", "open_idxpack"]

_MAGIC: Final = b"IDXPACK2"
_VERSIONS: Final = (2, 3)
# Magic, version, bytes of the header; offset and count, or bytes, of five sections; a hash.
_HEADER = struct.Struct("<8sII10Q32s")
_HEADER_BYTES = 256
_COLLECTION_BYTES, _SEQUENCE_BYTES = 72, 16
_SEGMENT = np.dtype(
    [
        ("path", "<u8"),
        ("payload", "<u8"),
        ("path_bytes", "<u4"),
        ("flags", "<u4"),
        ("items", "<u8"),
        ("source_bytes", "<u8"),
        ("payload_bytes", "<u8"),
        ("crc", "<u4"),
        ("payload_flags", "<u4"),
    ]
)
_PATH_ONLY = 1
_OFFSET_BYTES = 8
IDXPACK_FIX: Final = "Build one from the data with `playhead pack`, and name that as index_pack"
"""What to do about a pack of NeMo that cannot be used."""


class Segment(NamedTuple):
    """A file, as a pack knows it."""

    number: int
    """Its place in the table of files."""
    size: int
    """Bytes that the file had when it was indexed."""
    has_offsets: bool
    """Whether the pack says where its records begin."""
    records: int
    """Its records; 0 where the pack does not say where they begin."""


class IdxPack:
    """A pack that is open.

    Parameters
    ----------
    path
        Its file.

    Attributes
    ----------
    version
        2 or 3.
    num_collections
        Groups of files, one for each path or pattern that the config declared.

    Raises
    ------
    IndexFileError
        If it is of another version, or damaged.
    OSError
        If it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with Path(path).open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or not head.startswith(_MAGIC):
                raise self._damaged("it has no header")
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _, self.version, header_bytes, *places, _ = _HEADER.unpack(head)
        if self.version not in _VERSIONS:
            raise IndexFileError(
                f"the pack of NeMo has version {self.version}, and versions 2 and 3 are read",
                where=path,
                fix=IDXPACK_FIX,
            )
        self._check_sections(header_bytes, places)
        self.num_collections = places[1]
        self._collections = np.frombuffer(
            self._data, "u1", places[1] * _COLLECTION_BYTES, places[0]
        )
        self._sequences = np.frombuffer(self._data, "<u8", places[3] * 2, places[2]).reshape(-1, 2)
        self._segments = np.frombuffer(self._data, _SEGMENT, places[5], places[4])
        self._texts = slice(places[6], places[6] + places[7])
        self._payload = slice(places[8], places[8] + places[9])
        self._by_path = self._read_paths()

    def find(self, path: str) -> Segment | None:
        """Return what is known of a file, by its path as the pack has it; None if nothing is."""
        number = self._by_path.get(path)
        if number is None:
            return None
        row = self._segments[number]
        has_offsets = not int(row["flags"]) & _PATH_ONLY
        records = max(0, int(row["items"]) - 1) if has_offsets else 0
        return Segment(number, int(row["source_bytes"]), has_offsets, records)

    def lengths(self, key: bytes) -> tuple[int, ...] | None:
        """Return how many records each file of a collection has; None if there is none of that key.

        Parameters
        ----------
        key
            What `collection_key` gives.

        Raises
        ------
        IndexFileError
            If the pack is damaged there.
        """
        number = self._by_key.get(key)
        if number is None:
            return None
        first, count = self._collection(number)[32:48].view("<u8").tolist()
        if first + count > len(self._sequences):
            raise self._damaged("the files of a collection are not in its table")
        ends = self._sequences[first : first + count, 1].astype(np.int64)
        lengths = np.diff(ends, prepend=0)
        if (lengths < 0).any():
            raise self._damaged("the records of a collection do not add up")
        return tuple(lengths.tolist())

    @cached_property
    def _by_key(self) -> dict[bytes, int]:
        numbers = range(self.num_collections)
        return {self._collection(number)[:32].tobytes(): number for number in numbers}

    def _collection(self, number: int) -> NDArray[np.uint8]:
        return self._collections[number * _COLLECTION_BYTES : (number + 1) * _COLLECTION_BYTES]

    def offsets(self, segment: Segment) -> NDArray[np.int64]:
        """Return where the records of a file begin, shape (N,).

        Raises
        ------
        IndexFileError
            If the pack does not say that, or is damaged there.
        """
        row = self._segments[segment.number]
        start, size = int(row["payload"]), int(row["payload_bytes"])
        is_inside = self._payload.start <= start <= self._payload.stop - size
        if not segment.has_offsets or not is_inside or size != int(row["items"]) * _OFFSET_BYTES:
            raise self._damaged("the offsets of a file are not where they should be")
        content = memoryview(self._data)[start : start + size]
        if zlib.crc32(content) != int(row["crc"]):
            raise self._damaged("the offsets of a file have another checksum")
        ends = np.frombuffer(content, "<u8").astype(np.int64)
        if len(ends) == 0 or ends[0] < 0 or (np.diff(ends) < 0).any() or ends[-1] != segment.size:
            raise self._damaged("the offsets of a file do not end with its size")
        return ends[:-1]

    def _check_sections(self, header_bytes: int, places: list[int]) -> None:
        """Check that the sections follow each other and end where the file does."""
        sizes = (_COLLECTION_BYTES, _SEQUENCE_BYTES, _SEGMENT.itemsize, 1, 1)
        end = header_bytes
        for start, count, size in zip(places[::2], places[1::2], sizes, strict=True):
            if start < end:
                raise self._damaged("its sections do not follow each other")
            end = start + count * size
        if header_bytes != _HEADER_BYTES or end != len(self._data):
            raise self._damaged(f"it should have {end:,} bytes and has {len(self._data):,}")

    def _read_paths(self) -> dict[str, int]:
        """The segment of each file by its path; arrays (flag 2) belong to no file."""
        starts, sizes = self._segments["path"], self._segments["path_bytes"]
        ends = starts + sizes
        if len(starts) and (
            int(starts.min()) < self._texts.start
            or int(ends.max()) > self._texts.stop
            or (ends < starts).any()
        ):
            raise self._damaged("a path is not among its texts")
        texts, first = self._data[self._texts], self._texts.start
        # A file may be there twice, without its offsets too: what comes later in a dict wins.
        flags = self._segments["flags"]
        order = [*np.flatnonzero(flags & _PATH_ONLY), *np.flatnonzero(flags == 0)]
        try:
            return {
                texts[int(starts[number]) - first : int(ends[number]) - first].decode(): int(number)
                for number in order
            }
        except UnicodeDecodeError:
            raise self._damaged("a path is not UTF-8") from None

    def _damaged(self, what: str) -> IndexFileError:
        return IndexFileError(
            f"the pack of NeMo is damaged: {what}", where=self.path, fix=IDXPACK_FIX
        )


def collection_key(role: str, kind: str, source_spec: Any) -> bytes:
    """Return the key of what a config declares, in a pack of NeMo: 32 bytes.

    Parameters
    ----------
    role, kind
        What it is, such as `manifest` and `jsonl`.
    source_spec
        The paths as the config has them, before patterns are expanded.
    """
    identity = {"kind": kind, "role": role, "source_spec": source_spec}
    text = json.dumps(identity, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).digest()


def open_idxpack(path: str) -> IdxPack:
    """Open a pack of NeMo; opening it again gives the same object while the file is as it was.

    Raises
    ------
    IndexFileError
        If it cannot be used.
    OSError
        If it cannot be read.
    """
    stat = Path(path).stat()
    return _open(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)
def _open(path: str, *identity: int) -> IdxPack:  # noqa: ARG001 - the key
    return IdxPack(path)
