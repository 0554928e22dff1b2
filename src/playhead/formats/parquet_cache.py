"""Row groups unpacked once for all processes of a machine, in a folder that never grows too big."""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import msgspec
import numpy as np
import pyarrow as pa

from playhead.formats.base import TableRow
from playhead.storage.atomic import atomic_write, remove_stale
from playhead.storage.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray

__all__ = ["UNPACKED", "UnpackedGroup", "cache_name", "open_unpacked", "pick_rows"]

UNPACKED = pa.schema([("row", pa.binary()), ("audio", pa.large_binary())])
"""What an unpacked row is: JSON without the audio, and the audio; see `TableRow`."""

_log = logging.getLogger(__name__)

_VERSION = 1
_WAIT_SECONDS = 300.0
# A cache that cannot be written is not asked again for each row.
_REST_SECONDS = 60.0
_TOUCH_SECONDS = 10.0
_NUM_LOCKS = 64
_MOST_OPEN = 64


class UnpackedGroup:
    """A row group in a file of the cache, mapped into memory.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._ends = np.cumsum([batch.num_rows for batch in self._batches], dtype=np.int64)
        self._touched = -_TOUCH_SECONDS

    def rows(self, places: NDArray[np.int64]) -> list[TableRow]:
        """Copy rows by their number in the row group."""
        self._touch()
        batches = np.searchsorted(self._ends, places, "right").tolist()
        starts = [0, *self._ends.tolist()]
        return [
            _row_of(self._batches[batch], place - starts[batch])
            for batch, place in zip(batches, places.tolist(), strict=True)
        ]

    def _touch(self) -> None:
        """Note that the file was used just now."""
        now = time.monotonic()
        if now - self._touched >= _TOUCH_SECONDS:
            self._touched = now
            with suppress(OSError):
                os.utime(self.path)


class _State:
    """What this process knows of the cache."""

    def __init__(self) -> None:
        self.open: OrderedDict[str, UnpackedGroup] = OrderedDict()
        self.resting_until = 0.0
        self.has_warned = False


_state = _State()


def cache_name(facts: Any) -> str:
    """Name the file of a row group by all that its content depends on.

    Parameters
    ----------
    facts
        The file's path, size and time, the row group, and how it is unpacked: JSON types.
    """
    text = msgspec.json.encode([_VERSION, facts])
    return f"{blake2b(text, digest_size=16).hexdigest()}.arrow"


def open_unpacked(
    name: str,
    unpack: Callable[[], Iterator[pa.RecordBatch]],
    *,
    num_bytes: int,
    most_bytes: int,
) -> UnpackedGroup | None:
    """Open a row group in the cache, put there first if it is not.

    Of all processes that want it, one unpacks it and the others wait. The files that were not used
    for longest make room. Where nothing can be put into the cache (the disk is full, the folder
    cannot be written, the wait is over, the row group alone is too big) that is said once.

    Parameters
    ----------
    name
        What `cache_name` gave.
    unpack
        Gives the rows as batches of `UNPACKED`; its errors are raised.
    num_bytes
        About how many bytes it will take.
    most_bytes
        How many all files may take.

    Returns
    -------
    UnpackedGroup | None
        None where the cache does not have it.
    """
    known = _state.open.get(name)
    if known is not None and known.path.exists():
        _state.open.move_to_end(name)
        return known
    path = cache_folder("tables") / name
    group = _opened(path)
    if group is None and time.monotonic() >= _state.resting_until:
        group = _unpacked(path, unpack, num_bytes, most_bytes)
    if group is not None:
        _remember(name, group)
    return group


def pick_rows(batches: Iterator[pa.RecordBatch], places: NDArray[np.int64]) -> list[TableRow]:
    """Copy rows out of batches that are read one after another and not kept.

    Parameters
    ----------
    batches
        Batches of `UNPACKED`.
    places
        Which rows, counted through all batches, in any order.
    """
    found: dict[int, TableRow] = {}
    wanted = np.unique(places)
    first = 0
    for batch in batches:
        span = np.searchsorted(wanted, [first, first + batch.num_rows])
        for place in wanted[span[0] : span[1]].tolist():
            found[place] = _row_of(batch, place - first)
        first += batch.num_rows
    return [found[place] for place in places.tolist()]


def _row_of(batch: pa.RecordBatch, place: int) -> TableRow:
    return TableRow(batch.column(0)[place].as_py(), batch.column(1)[place].as_py())


def _opened(path: Path) -> UnpackedGroup | None:
    try:
        return UnpackedGroup(path)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError):
        # Nobody but a person can have damaged it; it is made again.
        with suppress(OSError):
            path.unlink()
        return None


def _remember(name: str, group: UnpackedGroup) -> None:
    # What was removed from the folder takes room on the disk as long as somebody has it open.
    for other in [key for key, value in _state.open.items() if not value.path.exists()]:
        _state.open.pop(other, None)
    _state.open[name] = group
    while len(_state.open) > _MOST_OPEN:
        _state.open.popitem(last=False)


def _unpacked(
    path: Path, unpack: Callable[[], Iterator[pa.RecordBatch]], num_bytes: int, most_bytes: int
) -> UnpackedGroup | None:
    failed: list[BaseException] = []
    try:
        with _lock(path):
            group = _opened(path)
            if group is None:
                _write(path, _watched(unpack, failed), num_bytes, most_bytes)
                group = _opened(path)
            return group
    except _FullError as error:
        _warn(f"{error}: row groups are unpacked again for every batch. Raise cache_bytes")
        return None
    except filelock.Timeout:
        _warn(
            f"waited {_WAIT_SECONDS:.0f} s for another process to unpack a row group into "
            f"{path.parent}: it is read without. Look whether that process still works"
        )
    except OSError as error:
        if failed:
            raise
        _warn(
            f"row groups cannot be unpacked into {path.parent} ({error.strerror or error}): they "
            "are unpacked again for every batch. Make room there, or set PLAYHEAD_CACHE to another "
            "folder"
        )
    _state.resting_until = time.monotonic() + _REST_SECONDS
    return None


def _watched(
    unpack: Callable[[], Iterator[pa.RecordBatch]], failed: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """Note errors of the source: they are not the cache's."""
    try:
        yield from unpack()
    except Exception as error:
        failed.append(error)
        raise


def _write(path: Path, batches: Iterator[pa.RecordBatch], num_bytes: int, most_bytes: int) -> None:
    """Write a file of the cache.

    It is as big at once as it will be about, so that others that make room count it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with _lock(path, "room"):
            remove_stale(path.parent)
            _make_room(path.parent, num_bytes, most_bytes)
            file = stack.enter_context(atomic_write(path))
            file.truncate(num_bytes)
        with pa.ipc.new_file(pa.PythonFile(file, "w"), UNPACKED) as writer:
            for batch in batches:
                writer.write_batch(batch)
        more = file.tell() - num_bytes
        file.truncate()
        if more > 0:
            with _lock(path, "room"):
                _make_room(path.parent, 0, most_bytes)


class _FullError(OSError):
    """There is no room that could be made."""


def _make_room(folder: Path, num_bytes: int, most_bytes: int) -> None:
    """Remove what was not used for longest until `num_bytes` more fit."""
    files: list[tuple[float, int, str]] = []
    total = num_bytes
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat()
                    total += status.st_size
                    if entry.name.endswith(".arrow"):
                        files.append((status.st_mtime, status.st_size, entry.path))
    for _, size, path in sorted(files):
        if total <= most_bytes:
            break
        with suppress(FileNotFoundError):
            Path(path).unlink()
        total -= size
    if total > most_bytes:
        raise _FullError(
            f"what is unpacked in {folder} and in use would take {total} bytes, and cache_bytes is "
            f"{most_bytes}"
        )


@contextmanager
def _lock(path: Path, purpose: str | None = None) -> Generator[None]:
    """Hold the lock of a file, or that of the whole folder."""
    folder = path.parent / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    # A lock for each file would leave files behind for ever.
    name = purpose or f"{int(path.name[:8], 16) % _NUM_LOCKS:02d}"
    lock = filelock.FileLock(folder / f"{name}.lock", timeout=_WAIT_SECONDS)
    try:
        lock.acquire()
    except NotImplementedError:
        # A file system without locks: the same work may be done twice, and files appear whole.
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _warn(text: str) -> None:
    if not _state.has_warned:
        _state.has_warned = True
        _log.warning("%s", text)
