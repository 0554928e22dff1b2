"""Whole shards on a disk of this machine, fetched once and read by all of its processes."""

from __future__ import annotations

import errno
import os
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import DataError, PlayheadError, StorageError
from playhead.storage import access, local
from playhead.storage.cache import cache_folder
from playhead.storage.compression import has_middle, is_compressed, open_whole
from playhead.storage.held import Held, hold
from playhead.storage.limits import limits
from playhead.storage.shard_room import NoPart, Room
from playhead.storage.shard_wanted import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.storage.shard_room import Part

__all__ = ["BLOCK_BYTES", "CacheSettings", "ShardCache", "must_be_whole", "shard_cache"]

BLOCK_BYTES: Final = 8 << 20
"""Bytes that are asked for at a time."""

_WIDEN_BYTES = 64 << 20
_MOST_CHANGES = 3
_PAUSES = (0.005, 0.25)
# How long one does not look again for room: looking costs more than reading some ranges.
_FULL_SECONDS = 2.0
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheSettings:
    """Where shards are kept, and how many."""

    folder: str = field(default_factory=lambda: str(cache_folder("shards")))
    """A folder of a disk of this machine, shared by its processes."""
    limit_bytes: int = 64 << 30
    """Most bytes that the shards in it may have."""


@lru_cache(maxsize=8)
def _opened(settings: CacheSettings, process: int) -> ShardCache:
    # What a process knows of shards is not for those that are forked from it.
    del process
    return ShardCache(settings)


def shard_cache(settings: CacheSettings) -> ShardCache:
    """Return the cache with these settings; one for a process."""
    return _opened(settings, os.getpid())


class ShardCache:
    """Copies of whole files and objects, decompressed, and what pipes wrote.

    Each is fetched by one process at a time, whoever needs it first, and appears whole or not at
    all. A copy belongs to one state of its object: its size and its version.

    Parameters
    ----------
    settings
        Where and how many.
    """

    def __init__(self, settings: CacheSettings) -> None:
        self.room = Room(Path(settings.folder), settings.limit_bytes)
        self._known: dict[str, Shard] = {}
        self._full_until = 0.0

    def look(self, uris: Sequence[str]) -> list[Shard]:
        """Return what is known of shards, looked at once for a process.

        Raises
        ------
        SourceNotFoundError
            If one does not exist.
        StorageError, OSError
            If one cannot be looked at.
        """
        unknown = [uri for uri in dict.fromkeys(uris) if uri not in self._known]
        if unknown:
            for uri, found in zip(unknown, access.stats(unknown), strict=True):
                self._known[uri] = Shard(uri, found.size, found.version)
        return [self._known[uri] for uri in uris]

    def has(self, shard: Shard) -> bool:
        """Whether there is a whole copy."""
        return self.room.path_of(shard.key).exists()

    def read(
        self,
        uri: str,
        offsets: Sequence[int] | NDArray[np.int64],
        sizes: Sequence[int] | NDArray[np.int64],
    ) -> list[bytes] | None:
        """Read byte ranges of a shard, decompressed, out of a copy that is made if there is none.

        Returns
        -------
        list[bytes] | None
            The ranges in the order asked for. None if there is no room for a copy beside those that
            are needed more, and the ranges can be read where the shard is.

        Raises
        ------
        SourceNotFoundError
            If there is no such shard.
        DataError
            If it ends before a range does, or cannot be decompressed.
        ConfigError
            If it is larger than all that may be kept.
        StorageError
            If it cannot be fetched, if another process takes too long over it, if the disk is full.
        """
        wait, changes = _Wait(self.room, uri), 0
        must = must_be_whole(uri)
        while True:
            (shard,) = self.look([uri])
            held = self._open(shard)
            if held is None:
                if time.monotonic() < self._full_until and not must:
                    return None
                held = self._fetched(shard, displace=must)
            if isinstance(held, Held):
                with closing(held):
                    return local.read_held(held.descriptor, uri, offsets, sizes)
            if held is NoPart.FULL and not must:
                self._full_until = time.monotonic() + _FULL_SECONDS
                return None
            if held is NoPart.CHANGED:
                changes += 1
                if changes == _MOST_CHANGES:
                    raise StorageError(
                        f"it was replaced {changes} times while it was fetched",
                        where=uri,
                        fix="Start again when nobody writes to it",
                    )
                continue
            wait.pause(shard, held)

    def fill(
        self,
        shard: Shard,
        *,
        stopped: Callable[[], bool] | None = None,
        reserved: Callable[[], None] | None = None,
    ) -> NoPart | None:
        """Fetch a shard ahead of time, if nobody does and there is room beside what is needed.

        Parameters
        ----------
        shard
            Which one.
        stopped
            Asked after every block; if it says so, what is there is kept for the next one.
        reserved
            Called once there is room for it, before any of it is fetched.

        Returns
        -------
        NoPart | None
            Why it was not fetched; None where it was.

        Raises
        ------
        SourceNotFoundError, ConfigError, DataError, StorageError
            As `read`.
        """
        found = self._fetched(shard, displace=False, stopped=stopped, reserved=reserved)
        if isinstance(found, NoPart):
            return found
        found.close()
        return None

    def _open(self, shard: Shard) -> Held | None:
        """Hold the whole copy, if there is one."""
        held = hold(self.room.path_of(shard.key), shared=True)
        if held is None:
            return None
        if shard.size and has_middle(shard.uri) and held.size != shard.size:
            held.close()
            self.room.remove(shard.key)
            return None
        # The copies that were used last are the last to go; those of others may be read only.
        with suppress(OSError):
            os.utime(held.descriptor)
        return held

    def _fetched(
        self,
        shard: Shard,
        *,
        displace: bool,
        stopped: Callable[[], bool] | None = None,
        reserved: Callable[[], None] | None = None,
    ) -> Held | NoPart:
        """Fetch a shard, and hold its copy; what its folder does not allow is named."""
        try:
            return self._kept(shard, displace=displace, stopped=stopped, reserved=reserved)
        except OSError as error:
            if isinstance(error, PlayheadError):
                raise
            if error.errno in _FULL:
                raise self._disk_full(shard, error) from None
            if isinstance(error, FileNotFoundError) and self._is_inside(error.filename):
                raise StorageError(
                    f"something was removed there while {shard.uri} was fetched",
                    where=str(error.filename),
                    fix="Set cache_dir to a folder that nobody cleans up",
                ) from None
            raise

    def _kept(
        self,
        shard: Shard,
        *,
        displace: bool,
        stopped: Callable[[], bool] | None,
        reserved: Callable[[], None] | None,
    ) -> Held | NoPart:
        resumable = not must_be_whole(shard.uri)
        guess = shard.size or self._step
        part = self.room.reserve(shard.key, guess, resumable=resumable, displace=displace)
        if isinstance(part, NoPart):
            return part
        if reserved is not None:
            reserved()
        before, keep = part.written, False
        try:
            found = self._pour(shard, part, displace=displace, stopped=stopped)
            if found is NoPart.CHANGED:
                self._known.pop(shard.uri, None)
            if found is None:
                self.room.finish(part, part.written - before)
                return part.held
            keep = found is NoPart.BUSY and resumable
        except StorageError:
            keep = resumable
            raise
        finally:
            if part.held.is_exclusive:
                self.room.abandon(part, part.written - before, keep=keep)
        return found

    def _pour(
        self,
        shard: Shard,
        part: Part,
        *,
        displace: bool,
        stopped: Callable[[], bool] | None,
    ) -> NoPart | None:
        """Write a shard to its end; say why where it does not come to that."""
        descriptor = part.held.descriptor
        os.lseek(descriptor, part.written, os.SEEK_SET)
        try:
            for block in _blocks(shard.uri, part.written):
                size = part.written + len(block)
                if size > part.reserved and not self._widened(part, size, displace=displace):
                    return NoPart.FULL
                _write(descriptor, block)
                part.written = size
                if stopped is not None and stopped():
                    return NoPart.BUSY
        except DataError:
            if not self._is_replaced(shard):
                raise
            return NoPart.CHANGED
        has_size = shard.size and has_middle(shard.uri)
        is_other = self._is_replaced(shard) or (has_size and part.written != shard.size)
        return NoPart.CHANGED if is_other else None

    def _widened(self, part: Part, size: int, *, displace: bool) -> bool:
        """Make room for more than was expected, generously if that can be."""
        more = min(size + self._step, max(size, self.room.limit_bytes))
        return self.room.widen(part, more, displace=displace) or self.room.widen(
            part, size, displace=displace
        )

    @property
    def _step(self) -> int:
        """How many bytes to ask room for where nobody knows how many will come."""
        return min(_WIDEN_BYTES, max(self.room.limit_bytes // 8, 1))

    def _is_replaced(self, shard: Shard) -> bool:
        """Whether there is another state of it by now than was looked at before."""
        (now,) = access.stats([shard.uri])
        return (now.size, now.version) != (shard.size, shard.version)

    def _is_inside(self, path: object) -> bool:
        return isinstance(path, str) and Path(path).parent == self.room.folder

    def _disk_full(self, shard: Shard, error: OSError) -> StorageError:
        used = 0
        # Even the lock needs room on the disk, the first time.
        with suppress(OSError):
            used = self.room.used()
        return StorageError(
            f"the disk is full ({error.strerror}): its shards have {used:,} bytes of"
            f" {self.room.limit_bytes:,} that they may have, without {shard.uri}",
            where=str(self.room.folder),
            fix="Set cache_bytes to what the disk has room for, or cache_dir to another disk",
        )


class _Wait:
    """One wait for a shard that others fetch, or for room: it ends when nothing moves any more."""

    def __init__(self, room: Room, uri: str) -> None:
        self._room = room
        self._uri = uri
        self._seen: object = None
        self._moved = time.monotonic()
        self._pause = _PAUSES[0]

    def pause(self, shard: Shard, why: NoPart) -> None:
        """Wait a little.

        Raises
        ------
        StorageError
            If nothing has moved for as long as a call may take.
        """
        # For room anything that moves will do.
        seen = why, self._room.progress(shard.key if why is NoPart.BUSY else None)
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._moved, self._pause = seen, now, _PAUSES[0]
        waited = now - self._moved
        if waited > limits().deadline_seconds:
            raise StorageError(
                f"waited {waited:.0f} s for a shard of which {why.value}, and nothing moved",
                where=self._uri,
                fix="Look for a process that was stopped, or set cache_bytes to more",
            )
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _PAUSES[1])


def must_be_whole(uri: str) -> bool:
    """Whether one can only read from the start: compressed archives, pipes, some servers.

    Raises
    ------
    SourceNotFoundError, StorageError
        If the server has to be asked, and the object is not there or cannot be read.
    """
    return not (has_middle(uri) and access.has_ranges(uri))


def _blocks(uri: str, start: int) -> Iterator[bytes]:
    if not is_compressed(uri):
        yield from access.stream(uri, start, BLOCK_BYTES)
        return
    with open_whole(uri) as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _write(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]
