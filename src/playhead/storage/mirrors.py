"""Copies of buckets on a disk that are read in place of the buckets."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from playhead.storage import local
from playhead.storage.base import ByteRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.storage.base import Stat, Store

__all__ = ["Mirrored", "mirror_roots"]

Asked = TypeVar("Asked")
Result = TypeVar("Result")


def mirror_roots() -> list[str]:
    """Return the folders of ``LHOTSE_S3_LOCAL_MIRROR_ROOTS``, which hold `<bucket>/<key>`."""
    return list(filter(None, os.environ.get("LHOTSE_S3_LOCAL_MIRROR_ROOTS", "").split(os.pathsep)))


class Mirrored:
    """A store whose objects are read from a disk where they are there too.

    Listings and writes go to the store alone. Every method is as `Store` says.

    Parameters
    ----------
    make
        Makes the store, when it is first needed.
    roots
        Folders to look in, in this order.
    """

    def __init__(self, make: Callable[[], Store], roots: Sequence[str]) -> None:
        self._make = make
        self._roots = [Path(root) for root in roots]

    @cached_property
    def _store(self) -> Store:
        return self._make()

    def stats(self, uris: Sequence[str]) -> list[Stat]:
        """Look at files and objects."""
        paths = [self._near(uri) for uri in uris]
        near = [local.stat(path) for path in paths if path is not None]
        far = _far(uris, paths)
        return _merged(paths, near, self._store.stats(far) if far else [])

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Read ranges of files and objects."""
        known = {uri: self._near(uri) for uri in {one.uri for one in ranges}}
        paths = [known[one.uri] for one in ranges]
        near = local.read_many(
            [
                ByteRange(path, one.offset, one.size)
                for one, path in zip(ranges, paths, strict=True)
                if path is not None
            ]
        )
        far = _far(ranges, paths)
        return _merged(paths, near, self._store.read(far) if far else [])

    def read_files(self, uris: Sequence[str]) -> list[bytes | None]:
        """Read whole files and objects."""
        paths = [self._near(uri) for uri in uris]
        near: list[bytes | None] = [local.read_file(path) for path in paths if path is not None]
        far = _far(uris, paths)
        return _merged(paths, near, self._store.read_files(far) if far else [])

    def has_ranges(self, uri: str) -> bool:
        """Whether parts can be read."""
        return self._near(uri) is not None or self._store.has_ranges(uri)

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        """Give the bytes of a file or an object."""
        path = self._near(uri)
        if path is None:
            return self._store.stream(uri, start, block_bytes)
        return local.stream(path, start, block_bytes)

    def list(self, folder: str) -> list[str]:
        """Name the objects under a folder."""
        return self._store.list(folder)

    def write(self, uri: str, data: bytes) -> None:
        """Write an object."""
        self._store.write(uri, data)

    def _near(self, uri: str) -> str | None:
        name = uri.partition("://")[2]
        # What leads out of the folders is no copy.
        if name.startswith("/") or ".." in name.split("/"):
            return None
        return next((str(root / name) for root in self._roots if (root / name).is_file()), None)


def _far(asked: Sequence[Asked], paths: Sequence[str | None]) -> list[Asked]:
    return [one for one, path in zip(asked, paths, strict=True) if path is None]


def _merged(
    paths: Sequence[str | None], near: Sequence[Result], far: Sequence[Result]
) -> list[Result]:
    """What was found in the order asked for."""
    from_near, from_far = iter(near), iter(far)
    return [next(from_far if path is None else from_near) for path in paths]
