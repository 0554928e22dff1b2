"""Byte ranges of local files, read with few calls and never short."""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from playhead.errors import DataError, SourceNotFoundError
from playhead.storage.base import Stat
from playhead.storage.retries import with_retries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from playhead.storage.base import ByteRange

__all__ = [
    "MERGE_GAP",
    "forget_replaced",
    "read_file",
    "read_held",
    "read_many",
    "read_ranges",
    "size",
    "stat",
    "status",
    "stream",
]

MERGE_GAP = 32 * 1024
"""Bytes between two ranges up to which one read is cheaper than two."""

Result = TypeVar("Result")


# Names that no file can have: nothing exists there.
_NO_NAMES = frozenset({errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})


class _Descriptor:
    """An open file; closed when nobody reads from it any more, which no other thread can hasten."""

    def __init__(self, path: str) -> None:
        self.number = _open(path)

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


class _Descriptors:
    """The files read last, kept open: opening costs more than reading one sample."""

    limit = 128

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Descriptor] = OrderedDict()

    def get(self, path: str) -> _Descriptor:
        with self._lock:
            descriptor = self._open.get(path)
            if descriptor is None:
                descriptor = self._open[path] = _Descriptor(path)
                if len(self._open) > self.limit:
                    self._open.popitem(last=False)
            else:
                self._open.move_to_end(path)
            return descriptor

    def forget(self, path: str) -> None:
        with self._lock:
            self._open.pop(path, None)

    def forget_other(self, path: str, now: os.stat_result) -> None:
        """Close a file whose name belongs to another one by now."""
        descriptor = self._open.get(path)
        if descriptor is None:
            return
        then = os.fstat(descriptor.number)
        if (then.st_dev, then.st_ino) != (now.st_dev, now.st_ino):
            self.forget(path)


_descriptors = _Descriptors()
# A thread of the parent may have held the lock when this process was forked.
os.register_at_fork(after_in_child=_descriptors.__init__)


def size(path: str) -> int:
    """Size of a file in bytes; a file that was replaced is read anew from now on.

    Raises
    ------
    SourceNotFoundError
        If there is none.
    OSError
        If it cannot be looked at, after some retries where that may help.
    """
    now = status(path)
    _descriptors.forget_other(path, now)
    return now.st_size


def status(path: str) -> os.stat_result:
    """What the system says of a file.

    Raises
    ------
    SourceNotFoundError
        If there is none.
    OSError
        If it cannot be looked at, after some retries where that may help.
    """
    try:
        return _with_retries(path, lambda: os.stat(path))  # noqa: PTH116 - paths are strings
    except ValueError as error:
        raise SourceNotFoundError(
            f"this cannot be a path: {error}", where=path, fix="Correct the path"
        ) from None


def stat(path: str) -> Stat:
    """Size of a file, and when it was changed.

    Raises
    ------
    SourceNotFoundError, OSError
        As `status`.
    """
    now = status(path)
    return Stat(now.st_size, now.st_mtime_ns)


def read_file(path: str) -> bytes:
    """Read a whole file.

    Raises
    ------
    SourceNotFoundError, DataError, OSError
        As `read_ranges`.
    """
    return read_ranges(path, [0], [size(path)])[0]


def stream(path: str, start: int, block_bytes: int) -> Iterator[bytes]:
    """Give the bytes of a file from `start` to its end, in blocks.

    Raises
    ------
    DataError
        If it is a pipe or a device.
    OSError
        If it cannot be read.
    """
    with os.fdopen(_open(path), "rb") as file:
        file.seek(start)
        while block := file.read(block_bytes):
            yield block


def _open(path: str) -> int:
    """Open a file for reading.

    Raises
    ------
    DataError
        If it is a pipe or a device.
    OSError
        If it cannot be opened.
    """
    # A pipe that nobody writes to would be waited for, maybe for ever.
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(number).st_mode
    if S_ISREG(mode) or S_ISDIR(mode):
        return number
    os.close(number)
    raise DataError(
        "this is a pipe or a device, not a file", where=path, fix="Name a file instead of it"
    )


def forget_replaced(path: str, now: os.stat_result) -> None:
    """Read a file anew from now on, if its name belongs to another one than it did.

    Parameters
    ----------
    path
        The file.
    now
        What the system says of it.
    """
    _descriptors.forget_other(path, now)


def read_ranges(
    path: str, offsets: Sequence[int] | NDArray[np.int64], sizes: Sequence[int] | NDArray[np.int64]
) -> list[bytes]:
    """Read byte ranges of a file, in any order, those that lie near each other together.

    Parameters
    ----------
    path
        The file.
    offsets
        First byte of each range.
    sizes
        Bytes of each range; ranges may overlap.

    Returns
    -------
    list[bytes]
        The ranges in the order asked for.

    Raises
    ------
    SourceNotFoundError
        If there is no such file.
    DataError
        If the file ends before a range does.
    OSError
        If it cannot be read, after some retries where that may help.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"0123456789")
    ...     file.flush()
    ...     read_ranges(file.name, [7, 0], [2, 3])
    [b'78', b'012']
    """

    def read(begin: int, count: int) -> bytes:
        return _with_retries(path, lambda: _read(path, begin, count))

    return _merged(read, offsets, sizes)


def read_held(
    descriptor: int,
    name: str,
    offsets: Sequence[int] | NDArray[np.int64],
    sizes: Sequence[int] | NDArray[np.int64],
) -> list[bytes]:
    """Read byte ranges of an open file, as `read_ranges` does.

    Parameters
    ----------
    descriptor
        The file.
    name
        What errors call it.
    offsets, sizes
        The ranges.

    Raises
    ------
    DataError
        If it ends before a range does.
    OSError
        If it cannot be read.
    """

    def read(begin: int, count: int) -> bytes:
        return with_retries(lambda: _pread(descriptor, name, begin, count), path=name)

    return _merged(read, offsets, sizes)


def _merged(
    read: Callable[[int, int], bytes],
    offsets: Sequence[int] | NDArray[np.int64],
    sizes: Sequence[int] | NDArray[np.int64],
) -> list[bytes]:
    first = np.asarray(offsets, np.int64)
    length = np.asarray(sizes, np.int64)
    order = np.argsort(first, kind="stable")
    starts = first[order]
    ends = np.maximum.accumulate(starts + length[order])
    opens = np.ones(len(order), bool)
    opens[1:] = starts[1:] > ends[:-1] + MERGE_GAP
    heads = np.flatnonzero(opens)
    group = np.cumsum(opens) - 1
    begins, stops = starts[heads], ends[np.append(heads[1:], len(order))[: len(heads)] - 1]
    blocks = [
        read(begin, stop - begin)
        for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)
    ]
    ranges = [b""] * len(order)
    places = zip(
        order.tolist(),
        group.tolist(),
        (starts - begins[group]).tolist(),
        length[order].tolist(),
        strict=True,
    )
    for place, number, start, count in places:
        block = blocks[number]
        ranges[place] = block if count == len(block) else block[start : start + count]
    return ranges


def read_many(ranges: Sequence[ByteRange]) -> list[bytes]:
    """Read byte ranges of any files, file by file.

    Raises
    ------
    SourceNotFoundError, DataError, OSError
        As `read_ranges`.
    """
    data: list[bytes] = [b""] * len(ranges)
    places: dict[str, list[int]] = {}
    for place, one in enumerate(ranges):
        places.setdefault(one.uri, []).append(place)
    for path, mine in places.items():
        some = [ranges[place] for place in mine]
        found = read_ranges(path, [one.offset for one in some], [one.size for one in some])
        for place, content in zip(mine, found, strict=True):
            data[place] = content
    return data


def _read(path: str, offset: int, count: int) -> bytes:
    descriptor = _descriptors.get(path)
    try:
        return _pread(descriptor.number, path, offset, count)
    except DataError:
        _descriptors.forget(path)
        raise


def _pread(descriptor: int, name: str, offset: int, count: int) -> bytes:
    data = os.pread(descriptor, count, offset)
    # One call gives at most 2 GiB, and signals may shorten it.
    while len(data) < count:
        more = os.pread(descriptor, count - len(data), offset + len(data))
        if not more:
            raise DataError(
                f"the file ends early: {count} bytes were expected and {len(data)} are there",
                where=f"{name}, byte {offset}",
                fix="If the file was rewritten, index it again; else restore it",
            )
        data += more
    return data


def _with_retries(path: str, act: Callable[[], Result]) -> Result:
    def forget(error: OSError) -> None:
        _descriptors.forget(path)
        if isinstance(error, FileNotFoundError) or error.errno in _NO_NAMES:
            raise SourceNotFoundError(
                "the file does not exist", where=path, fix="Restore it, or correct the path"
            ) from None

    return with_retries(act, path=path, on_error=forget)
