"""Files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
import zlib
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["atomic_write", "remove_stale", "sync_folder"]

# The lock is taken just after the file is made: younger files are left alone.
_GRACE_SECONDS = 60.0
# A file of another machine cannot be asked for its lock: nobody writes one file for so long.
_FOREIGN_SECONDS = 7 * 86400.0

_counter = count()
_TEMP_NAME = re.compile(r"\.playhead-([0-9a-f]{8})-\d+-\d+-\d+\.tmp")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Generator[IO[bytes]]:
    """Open a file for writing that takes its name only once it is whole and on disk.

    The bytes go to a hidden temporary file in the same folder, which is flushed to the disk and
    renamed over `path` when the block ends without an exception; the folder is flushed too.
    Whatever kills the process, `path` is the old file or the whole new one. A failure leaves
    neither a trace nor a change; a kill leaves a temporary file, which `remove_stale` removes.

    Parameters
    ----------
    path
        The file to replace or to make; its folder is made if it does not exist.

    Yields
    ------
    IO[bytes]
        The temporary file, opened for binary writing; `.name` is its path.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "numbers.bin")
    >>> with atomic_write(target) as file:
    ...     _ = file.write(b"123")
    >>> target.read_bytes()
    b'123'
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    name = f".playhead-{_machine()}-{os.getpid()}-{time.time_ns()}-{next(_counter)}.tmp"
    temporary = target.parent / name
    file = temporary.open("xb")
    try:
        with file:
            # The lock dies with the process, which is how others know that the file is stale.
            # A file system without locks only loses the cleaning.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(target)
        sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_stale(folder: str | os.PathLike[str]) -> int:
    """Remove the temporary files that killed processes left in a folder.

    Only files of `atomic_write` are looked at, and only those whose writer is dead: its lock is
    free (same machine), or nothing was written for a week (another machine).

    Parameters
    ----------
    folder
        Where to look, not below it. A folder that does not exist holds nothing.

    Returns
    -------
    int
        The number of files removed.
    """
    removed = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMP_NAME.fullmatch(entry.name)
            if match is not None and _is_stale(entry.path, match[1]):
                with suppress(OSError):
                    Path(entry.path).unlink()
                    removed += 1
    return removed


def sync_folder(folder: Path) -> None:
    """Flush the names of the files of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems refuse to flush a folder; the rename itself stays atomic.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _machine() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _is_stale(path: str, machine: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            age = time.time() - os.fstat(file.fileno()).st_mtime
            if machine != _machine():
                return age > _FOREIGN_SECONDS
            if age < _GRACE_SECONDS:
                return False
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
