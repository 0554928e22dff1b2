"""The folder in which whole shards are kept: what is there, and room for more."""

from __future__ import annotations

import errno
import os
import re
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from playhead.errors import ConfigError, StorageError
from playhead.storage.atomic import sync_folder
from playhead.storage.held import Held, hold
from playhead.storage.limits import limits
from playhead.storage.shard_wanted import wanted_shards

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["Counts", "NoPart", "Part", "Room"]

_COPY = re.compile(r"([0-9a-f]{32})\.shard")
_PART = re.compile(r"([0-9a-f]{32})-(\d+)-([0-9a-f]{8})\.part")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# A fill that was given up is worth taking up again for a while.
_ABANDONED_SECONDS = 600.0
_POLL_SECONDS = 0.005
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS})


class NoPart(Enum):
    """Why nothing is to be fetched."""

    KEPT = "it is there"
    BUSY = "another process fetches it"
    FULL = "there is no room for it"
    CHANGED = "the object was replaced meanwhile"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What all processes together did in a folder, since it was made."""

    fetched_bytes: int = 0
    """Bytes that were written there."""
    fetched_shards: int = 0
    """Shards that were fetched to their end."""
    evicted_shards: int = 0
    """Shards that had to make room."""


@dataclass(kw_only=True, slots=True)
class Part:
    """A shard that this process is fetching."""

    key: str
    """What the shard is called here."""
    path: Path
    """Where its bytes go until they are all there."""
    held: Held
    """The open file; as long as it is held, nobody else fetches the shard."""
    reserved: int
    """Bytes that there is room for."""
    written: int
    """Bytes that are there; above 0 at first where a fill that was broken off is taken up."""


class _File(NamedTuple):
    path: Path
    key: str
    size: int
    """Bytes on the disk, or reserved there."""
    changed_ns: int


@dataclass(kw_only=True, slots=True)
class _Content:
    copies: dict[str, _File]
    parts: list[_File]

    @property
    def size(self) -> int:
        return sum(file.size for file in (*self.copies.values(), *self.parts))


class Room:
    """What may be in the folder, for all processes that use it.

    Parameters
    ----------
    folder
        A folder of this machine; it is made when something is put there.
    limit_bytes
        Most bytes of all shards, those that are being fetched included.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes

    def path_of(self, key: str) -> Path:
        """Where the whole copy of a shard lies, if there is one."""
        return self.folder / f"{key}.shard"

    def reserve(self, key: str, size: int, *, resumable: bool, displace: bool) -> Part | NoPart:
        """Make room for a shard, and take on its fetching.

        Parameters
        ----------
        key
            The shard.
        size
            Its bytes, or a guess.
        resumable
            Whether what a fill wrote that was broken off can be kept.
        displace
            Whether other shards that are needed may go, those that are needed last first.

        Raises
        ------
        ConfigError
            If it is larger than all that may be there, or the folder cannot be used.
        StorageError
            If the folder is locked and stays so.
        """
        self._check_size(key, size)
        with self._locked():
            content = self._content()
            if key in content.copies:
                return NoPart.KEPT
            for file in [part for part in content.parts if part.key == key]:
                held = hold(file.path)
                if held is None:
                    return NoPart.BUSY
                if resumable and file.path == self._part_path(key, size):
                    return Part(
                        key=key, path=file.path, held=held, reserved=size, written=held.size
                    )
                _remove(file, held)
                content.parts.remove(file)
            if not self._make_room(content, content.size + size - self.limit_bytes, displace):
                return NoPart.FULL
            path = self._part_path(key, size)
            held = hold(path, create=True)
            if held is None:
                return NoPart.BUSY
            return Part(key=key, path=path, held=held, reserved=size, written=0)

    def widen(self, part: Part, size: int, *, displace: bool) -> bool:
        """Make room for more bytes of a shard than were reserved; whether there is.

        Raises
        ------
        ConfigError, StorageError
            As `reserve`.
        """
        self._check_size(part.key, size)
        with self._locked():
            content = self._content()
            if not self._make_room(
                content, content.size + size - part.reserved - self.limit_bytes, displace
            ):
                return False
            path = self._part_path(part.key, size)
            part.path.replace(path)
            part.path, part.reserved = path, size
            return True

    def finish(self, part: Part, fetched_bytes: int) -> None:
        """Give a whole shard its name, once every byte of it is on the disk.

        It stays held, but in the way of those who read it.

        Parameters
        ----------
        part
            The shard.
        fetched_bytes
            How much of it this process fetched.
        """
        os.fsync(part.held.descriptor)
        with self._locked():
            part.path.replace(self.path_of(part.key))
            part.held.share()
            self._count(Counts(fetched_bytes=fetched_bytes, fetched_shards=1))
        sync_folder(self.folder)

    def abandon(self, part: Part, fetched_bytes: int, *, keep: bool) -> None:
        """Stop fetching a shard; what is there is kept for whoever goes on, or removed."""
        try:
            with self._locked():
                if not keep:
                    with suppress(OSError):
                        part.path.unlink()
                part.held.close()
                self._count(Counts(fetched_bytes=fetched_bytes))
        finally:
            # Nobody could fetch the shard any more.
            part.held.close()

    def remove(self, key: str) -> None:
        """Remove a copy, unless somebody reads it."""
        path = self.path_of(key)
        with self._locked():
            held = hold(path)
            if held is not None:
                with closing(held):
                    path.unlink()

    def progress(self, key: str | None = None) -> list[tuple[str, int]]:
        """How far the fetching of a shard is, or of all shards: it changes while one goes on."""
        with os.scandir(self.folder) as entries:
            names = [entry.name for entry in entries]
        found: list[tuple[str, int]] = []
        for name in sorted(names):
            part = _PART.fullmatch(name)
            if part is not None and key in {None, part[1]}:
                with suppress(FileNotFoundError):
                    found.append((name, (self.folder / name).stat().st_size))
        return found

    def used(self) -> int:
        """Bytes of all shards that are there, and of those that are being fetched."""
        with self._locked():
            return self._content().size

    def counts(self) -> Counts:
        """What was done in the folder so far."""
        try:
            return msgspec.json.decode((self.folder / "counts").read_bytes(), type=Counts)
        except (OSError, msgspec.MsgspecError):
            return Counts()

    def _count(self, more: Counts) -> None:
        before = self.counts()
        after = Counts(
            fetched_bytes=before.fetched_bytes + more.fetched_bytes,
            fetched_shards=before.fetched_shards + more.fetched_shards,
            evicted_shards=before.evicted_shards + more.evicted_shards,
        )
        # Counts that a kill loses are no reason to flush the disk.
        with suppress(OSError):
            fresh = self.folder / "counts.new"
            fresh.write_bytes(msgspec.json.encode(after))
            fresh.replace(self.folder / "counts")

    def _check_size(self, key: str, size: int) -> None:
        if size > self.limit_bytes:
            raise ConfigError(
                f"a shard has {size:,} bytes, and the shards that are kept may have"
                f" {self.limit_bytes:,} bytes in all",
                where=str(self.path_of(key)),
                fix="Set cache_bytes to more, at best to twice what a window needs",
            )

    def _part_path(self, key: str, size: int) -> Path:
        return self.folder / f"{key}-{size}-{_boot()}.part"

    @contextmanager
    def _locked(self) -> Generator[None]:
        begin = time.monotonic()
        path = self.folder / "lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while (held := hold(path, create=True)) is None:
                if time.monotonic() - begin > limits().deadline_seconds:
                    raise StorageError(
                        "another process has locked the folder of shards for"
                        f" {limits().deadline_seconds:g} s",
                        where=str(self.folder),
                        fix="Look for a process that was stopped, and end it",
                    )
                time.sleep(_POLL_SECONDS)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            raise ConfigError(
                f"shards cannot be kept there: {error.strerror}",
                where=str(self.folder),
                fix="Set cache_dir to a folder that can be written",
            ) from None
        with closing(held):
            yield

    def _content(self) -> _Content:
        content = _Content(copies={}, parts=[])
        with os.scandir(self.folder) as entries:
            for entry in entries:
                copy, part = _COPY.fullmatch(entry.name), _PART.fullmatch(entry.name)
                if copy is None and part is None:
                    continue
                try:
                    found = entry.stat()
                except FileNotFoundError:  # a fill that was given up just now
                    continue
                path, size = Path(entry.path), found.st_size
                if copy is not None:
                    content.copies[copy[1]] = _File(path, copy[1], size, found.st_mtime_ns)
                elif part is not None:
                    size = max(size, int(part[2]))
                    content.parts.append(_File(path, part[1], size, found.st_mtime_ns))
        content.parts = list(_useful(content.parts))
        return content

    def _make_room(self, content: _Content, lack: int, displace: bool) -> bool:
        """Remove what is needed least until so many bytes are free; nothing if that cannot be."""
        if lack <= 0:
            return True
        soonest = {shard.key: place for shard, place in wanted_shards(self.folder).items()}
        idle = [file for file in content.copies.values() if file.key not in soonest]
        needed = [file for file in content.copies.values() if file.key in soonest]
        for part in content.parts:
            held = hold(part.path)
            if held is not None:
                _remove(part, held)
                lack -= part.size
        victims = [
            *sorted(idle, key=lambda file: file.changed_ns),
            *sorted(needed if displace else [], key=lambda file: -soonest[file.key]),
        ]
        if sum(file.size for file in victims) < lack:
            return False
        evicted = 0
        for file in victims:
            if lack <= 0:
                break
            held = hold(file.path)
            if held is not None:
                _remove(file, held)
                lack -= file.size
                evicted += 1
        self._count(Counts(evicted_shards=evicted))
        return lack <= 0


def _useful(parts: list[_File]) -> Iterator[_File]:
    """Remove the parts that nobody will go on with."""
    for part in parts:
        mine = part.path.name.endswith(f"-{_boot()}.part")
        young = time.time_ns() - part.changed_ns < _ABANDONED_SECONDS * 1e9
        held = None if mine and young else hold(part.path)
        if held is None:
            yield part
        else:
            _remove(part, held)


def _remove(file: _File, held: Held) -> None:
    with closing(held), suppress(FileNotFoundError):
        file.path.unlink()


@lru_cache(maxsize=1)
def _boot() -> str:
    """Name the run of this machine: what was not flushed before it ended may be lost or zero."""
    try:
        return _BOOT_ID.read_text()[:8]
    except OSError:
        return "00000000"
