"""A store of objects in memory that counts what is asked of it."""

from __future__ import annotations

import threading
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from playhead.errors import DataError, SourceNotFoundError
from playhead.storage import access
from playhead.storage.base import ByteRange, NoRangesError, Stat

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

__all__ = ["MemoryStore", "plugged_in"]


class MemoryStore:
    """Objects by their URI.

    Attributes
    ----------
    asked
        The ranges that were read, in the order of their requests.
    streamed
        The URIs that were read from their start.
    without_ranges
        The URIs of which no parts can be read.
    """

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})
        self.asked: list[ByteRange] = []
        self.streamed: list[str] = []
        self.without_ranges: set[str] = set()
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """Bytes of all ranges that were read."""
        return sum(one.size for one in self.asked)

    def stats(self, uris: Sequence[str]) -> list[Stat]:
        """Sizes, and checksums for versions."""
        return [Stat(len(data), zlib.crc32(data)) for data in map(self.of, uris)]

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of objects."""
        for one in ranges:
            if one.uri in self.without_ranges:
                raise NoRangesError("the server gives whole objects only", where=one.uri)
        with self._lock:
            self.asked += ranges
        found = [self.of(uri)[offset : offset + size] for uri, offset, size in ranges]
        for data, one in zip(found, ranges, strict=True):
            if len(data) < one.size:
                raise DataError("the object ends early", where=f"{one.uri}, byte {one.offset}")
        return found

    def read_files(self, uris: Sequence[str]) -> list[bytes]:
        """Whole objects."""
        return [self.of(uri) for uri in uris]

    def has_ranges(self, uri: str) -> bool:
        """Whether parts of an object can be read."""
        return uri not in self.without_ranges

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        """An object in blocks."""
        self.streamed.append(uri)
        data = self.of(uri)
        for at in range(start, len(data), block_bytes):
            yield data[at : at + block_bytes]

    def list(self, folder: str) -> list[str]:
        """Objects under a folder."""
        return sorted(uri for uri in self.objects if uri.startswith(f"{folder.rstrip('/')}/"))

    def write(self, uri: str, data: bytes) -> None:
        """Put an object."""
        self.objects[uri] = data

    def of(self, uri: str) -> bytes:
        """All bytes of an object."""
        if uri not in self.objects:
            raise SourceNotFoundError("the object does not exist", where=uri)
        return self.objects[uri]


@contextmanager
def plugged_in(store: MemoryStore) -> Generator[MemoryStore]:
    """Let a store read every scheme but `pipe` in this process."""
    real = access.store_of

    def store_of(uri: str) -> access.Store:
        return real(uri) if uri.startswith("pipe:") else store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "store_of", store_of)
        yield store
