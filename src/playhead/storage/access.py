"""Bytes of any URI: local paths directly, all others through the store of their scheme."""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from playhead.errors import NotSupportedError
from playhead.paths import scheme
from playhead.storage import local
from playhead.storage.atomic import atomic_write
from playhead.storage.base import ByteRange
from playhead.storage.get_batch import served_by_aistore
from playhead.storage.mirrors import Mirrored, mirror_roots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.storage.base import Stat, Store

__all__ = [
    "OBJECT_SCHEMES",
    "has_ranges",
    "is_remote",
    "list_files",
    "merge_gap",
    "read_files",
    "read_many",
    "read_ranges",
    "size",
    "stats",
    "store_of",
    "stream",
    "write",
]

OBJECT_SCHEMES: Final = frozenset({"s3", "gs", "az", "http", "https"})
"""Schemes that `playhead[s3]` reads."""

_SCHEMES: Final = OBJECT_SCHEMES | {"ais", "pipe"}
# By process: a thread of the parent may hold its lock for ever.
_opening: Final[dict[int, threading.Lock]] = {}


def is_remote(uri: str) -> bool:
    """Whether a URI is no path of a disk.

    Examples
    --------
    >>> is_remote("s3://bucket/key"), is_remote("/data/a.tar")
    (True, False)
    """
    return bool(scheme(uri))


def store_of(uri: str) -> Store:
    """Return what reads a URI that is not local; one for a scheme and process.

    Raises
    ------
    NotSupportedError
        If nothing does.
    ConfigError
        If the environment does not say where it is.
    MissingExtraError
        If what does is not installed.
    """
    name = scheme(uri)
    if name not in _SCHEMES:
        raise NotSupportedError(
            f"nothing reads {name}:// here",
            where=uri,
            fix="Use a path, or one of " + ", ".join(sorted(_SCHEMES)),
        )
    process = os.getpid()
    # Threads that come first together share one: a store knows what it went through.
    with _opening.setdefault(process, threading.Lock()):
        return _store("ais" if served_by_aistore(uri) else name, process)


@lru_cache(maxsize=16)
def _store(name: str, process: int) -> Store:
    # Connections and their threads do not survive a fork.
    del process
    if name == "pipe":
        from playhead.storage.pipe import PipeStore  # noqa: PLC0415  (few name a pipe)

        return PipeStore()
    if name == "ais":
        from playhead.storage.aistore import AIStore  # noqa: PLC0415  (it may not be used)

        return AIStore()
    from playhead.storage.objects import ObjectStores  # noqa: PLC0415  (it may not be used)

    roots = mirror_roots() if name == "s3" else []
    return Mirrored(ObjectStores, roots) if roots else ObjectStores()


def stats(uris: Sequence[str]) -> list[Stat]:
    """Look at files and objects.

    Raises
    ------
    SourceNotFoundError
        If one does not exist.
    StorageError, OSError
        If one cannot be looked at.
    """
    found: dict[int, Stat] = {}
    for name, places in _by_scheme(uris):
        some = [uris[place] for place in places]
        looked = store_of(some[0]).stats(some) if name else list(map(local.stat, some))
        found.update(zip(places, looked, strict=True))
    return [found[place] for place in range(len(uris))]


def size(uri: str) -> int:
    """Bytes of a file or object.

    Raises
    ------
    SourceNotFoundError
        If it does not exist.
    StorageError, OSError
        If it cannot be looked at.
    """
    return stats([uri])[0].size if is_remote(uri) else local.size(uri)


def read_ranges(
    uri: str, offsets: Sequence[int] | NDArray[np.int64], sizes: Sequence[int] | NDArray[np.int64]
) -> list[bytes]:
    """Read byte ranges of one file or object, in any order.

    Raises
    ------
    SourceNotFoundError
        If there is none.
    DataError
        If it ends before a range does.
    StorageError, OSError
        If it cannot be read.
    """
    if not is_remote(uri):
        return local.read_ranges(uri, offsets, sizes)
    pairs = zip(np.asarray(offsets).tolist(), np.asarray(sizes).tolist(), strict=True)
    return store_of(uri).read([ByteRange(uri, offset, count) for offset, count in pairs])


def merge_gap(uri: str) -> int:
    """Bytes between two ranges of a file or object up to which they are read as one."""
    if not is_remote(uri):
        return local.MERGE_GAP
    if served_by_aistore(uri):
        from playhead.storage import aistore  # noqa: PLC0415  (it may not be used)

        return aistore.MERGE_GAP
    from playhead.storage import objects  # noqa: PLC0415  (it may not be used)

    return objects.MERGE_GAP


def read_many(ranges: Sequence[ByteRange]) -> list[bytes]:
    """Read byte ranges of any files and objects, those of one store all at once.

    Raises
    ------
    SourceNotFoundError, DataError, StorageError, OSError
        As `read_ranges`.
    """
    data: list[bytes] = [b""] * len(ranges)
    for name, places in _by_scheme([one.uri for one in ranges]):
        some = [ranges[place] for place in places]
        found = store_of(some[0].uri).read(some) if name else local.read_many(some)
        for place, content in zip(places, found, strict=True):
            data[place] = content
    return data


def read_files(uris: Sequence[str]) -> list[bytes | None]:
    """Read whole objects, those of one store all at once.

    Returns
    -------
    list[bytes | None]
        None for an object that does not exist.

    Raises
    ------
    StorageError
        If one cannot be read.
    """
    data: list[bytes | None] = [None] * len(uris)
    for _, places in _by_scheme(uris):
        some = [uris[place] for place in places]
        for place, content in zip(places, store_of(some[0]).read_files(some), strict=True):
            data[place] = content
    return data


def has_ranges(uri: str) -> bool:
    """Whether parts of a file or object can be read without all of it.

    Raises
    ------
    SourceNotFoundError, StorageError
        If the server has to be asked, and the object is not there or cannot be read.
    """
    return not is_remote(uri) or store_of(uri).has_ranges(uri)


def stream(uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
    """Give the bytes of a file or object from `start` to its end, in blocks.

    Raises
    ------
    SourceNotFoundError
        If there is none.
    StorageError, OSError
        If it cannot be read.
    """
    if is_remote(uri):
        yield from store_of(uri).stream(uri, start, block_bytes)
        return
    yield from local.stream(uri, start, block_bytes)


def list_files(folder: str) -> list[str]:
    """Name the files or objects under a folder, at any depth, sorted.

    Raises
    ------
    StorageError, OSError
        If it cannot be listed.
    """
    if is_remote(folder):
        return store_of(folder).list(folder)
    return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())


def write(uri: str, data: bytes) -> None:
    """Write a file or an object, whole or not at all.

    Raises
    ------
    StorageError, OSError
        If it cannot be written.
    """
    if is_remote(uri):
        store_of(uri).write(uri, data)
        return
    with atomic_write(uri) as file:
        file.write(data)


def _by_scheme(uris: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    places: dict[str, list[int]] = {}
    for place, uri in enumerate(uris):
        places.setdefault(scheme(uri), []).append(place)
    yield from places.items()
