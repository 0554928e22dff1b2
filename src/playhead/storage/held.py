"""Files whose lock this process holds, and that no process forked from it holds on to."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Held", "hold"]

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})

# A lock belongs to an open file, which a forked process would share: a worker that was forked while
# a thread of its parent held one would keep it for as long as it lives.
_guard = threading.Lock()
_open: set[int] = set()


def _let_go_in_child() -> None:
    for descriptor in _open:
        os.close(descriptor)
    _open.clear()
    _guard.release()


os.register_at_fork(
    before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_let_go_in_child
)


class Held:
    """An open file whose lock is held until it is closed; the lock dies with the process.

    Parameters
    ----------
    descriptor
        The open file.
    exclusive
        Whether nobody else may hold it.

    Attributes
    ----------
    descriptor, is_exclusive
        The same.
    """

    def __init__(self, descriptor: int, *, exclusive: bool) -> None:
        self.descriptor = descriptor
        self.is_exclusive = exclusive
        self._process = os.getpid()

    @property
    def exists(self) -> bool:
        """Whether the file still has a name."""
        return os.fstat(self.descriptor).st_nlink > 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self.descriptor).st_size

    def share(self) -> None:
        """Let others hold it as well; for a moment nobody does, which the caller has to cover."""
        fcntl.flock(self.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self.is_exclusive = False

    def close(self) -> None:
        """Close the file, and with it give up the lock; doing so again does nothing."""
        with _guard:
            # In a forked process the number may belong to another file by now.
            if self._process == os.getpid() and self.descriptor in _open:
                _open.discard(self.descriptor)
                os.close(self.descriptor)


def hold(path: Path, *, shared: bool = False, create: bool = False) -> Held | None:
    """Open a file and take its lock, if nobody has it; never waits.

    Parameters
    ----------
    path
        The file.
    shared
        Whether others may hold it in the same way; then it can only be read.
    create
        Whether to make it if it does not exist.

    Returns
    -------
    Held | None
        None if it is locked, or does not exist (any more).

    Raises
    ------
    ConfigError
        If there are no locks where it lies.
    OSError
        If it cannot be opened.
    """
    flags = (os.O_RDONLY if shared else os.O_RDWR) | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    with _guard:
        try:
            descriptor = os.open(path, flags, 0o644)
        except (FileNotFoundError, NotADirectoryError):
            return None
        _open.add(descriptor)
    held = Held(descriptor, exclusive=not shared)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return None
    except OSError as error:
        held.close()
        if error.errno in _NO_LOCKS:
            raise ConfigError(
                f"files cannot be locked there: {error.strerror}",
                where=str(path.parent),
                fix="Set cache_dir to a folder of a disk of this machine",
            ) from None
        raise
    # Whoever had it before may have removed it.
    if not held.exists:
        held.close()
        return None
    return held
