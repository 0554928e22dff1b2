"""Copying many files from any store to a disk: each whole or not at all, and none twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import StorageError
from playhead.storage import access
from playhead.storage.atomic import atomic_write, remove_stale

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

__all__ = ["Copied", "Copy", "Look", "copy_all", "look_at"]

# Where an index or a pack of the same length differs from another, its end differs too: an index
# ends with the size of its data, a pack with what it says of its files.
_TAIL_BYTES = 4096


class Copy(NamedTuple):
    """A file and where it goes."""

    source: str
    """A path or a URI."""
    target: str
    """A path."""


class Look(NamedTuple):
    """What is known of a copy before it is made."""

    size: int | None
    """Bytes of the source; None where there is none."""
    is_done: bool
    """Whether the target is there, as long, and with the same end."""


class Copied(NamedTuple):
    """What became of a copy."""

    copy: Copy
    """The copy."""
    error: OSError | ValueError | None
    """Why it failed; None if it did not."""


def look_at(copies: Sequence[Copy], *, workers: int, force: bool = False) -> list[Look]:
    """Find out which files exist, and which of them are where they go already.

    Parameters
    ----------
    copies
        The files.
    workers
        Threads.
    force
        Call nothing done.

    Raises
    ------
    StorageError, OSError
        If a store or a disk fails.
    """
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda copy: _look(copy, force=force), copies))


def copy_all(copies: Sequence[Copy], *, workers: int) -> Generator[Copied]:
    """Copy files, and say of each when it is done.

    What killed runs left in the folders is removed first.

    Parameters
    ----------
    copies
        The files; those that are there are replaced.
    workers
        Threads.
    """
    for folder in {Path(copy.target).parent for copy in copies}:
        remove_stale(folder)
    with ThreadPoolExecutor(workers) as pool:
        for done in as_completed([pool.submit(_copied, copy) for copy in copies]):
            yield done.result()


def _look(copy: Copy, *, force: bool) -> Look:
    try:
        size = access.size(copy.source)
    except FileNotFoundError:
        return Look(None, is_done=False)
    return Look(size, is_done=not force and _is_there(copy, size))


def _is_there(copy: Copy, size: int) -> bool:
    target = Path(copy.target)
    try:
        if target.stat().st_size != size:
            return False
    except (FileNotFoundError, NotADirectoryError):
        return False
    tail = min(size, _TAIL_BYTES)
    one, other = (access.read_ranges(path, [size - tail], [tail]) for path in copy)
    return one == other


def _copied(copy: Copy) -> Copied:
    try:
        _copy(copy)
    except (OSError, ValueError) as error:
        return Copied(copy, error)
    return Copied(copy, None)


def _copy(copy: Copy) -> None:
    size = access.size(copy.source)
    count = 0
    with atomic_write(copy.target) as file:
        for block in access.stream(copy.source):
            file.write(block)
            count += len(block)
        if count != size:
            raise StorageError(
                f"the file has {size:,} bytes, and {count:,} came",
                where=copy.source,
                fix="Copy it again when nobody writes to it",
            )
