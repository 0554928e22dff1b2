"""A lock that one process of a job holds while it builds, and that its death sets free."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import filelock
import msgspec

from playhead.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["BEAT_SECONDS", "STALE_SECONDS", "build_lock", "machine_name"]

BEAT_SECONDS: Final = 1.0
"""How often the holder says that it lives."""

STALE_SECONDS: Final = 30.0
"""A holder on another machine that has been silent for so long is dead."""

_POLL_SECONDS = 0.1


class _Holder(msgspec.Struct, frozen=True):
    """Who holds the lock."""

    machine: str
    host: str
    pid: int


@contextmanager
def build_lock(
    path: Path,
    *,
    wait_seconds: float,
    stale_seconds: float = STALE_SECONDS,
    on_wait: Callable[[str], None] | None = None,
) -> Generator[None]:
    """Hold the lock of a pack.

    On one machine the kernel decides: a lock is free as soon as its process is dead, however it
    died. File systems whose locks do not reach other machines, or that have none, are covered by a
    heartbeat: a file beside the lock that its holder touches every second.

    Parameters
    ----------
    path
        The pack. The lock is the file of that name and `.lock`.
    wait_seconds
        How long to wait for another holder.
    stale_seconds
        How long a holder elsewhere may be silent before it counts as dead.
    on_wait
        Told once, with the holder's name, that this process waits.

    Raises
    ------
    BuildError
        If the wait is over; it says whom it waited for. If the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(path.parent, error) from None
    lock = filelock.FileLock(f"{path}.lock", thread_local=False)
    holder_path = Path(f"{path}.holder")
    wait = _Wait(path, holder_path, wait_seconds, stale_seconds, on_wait)
    while not _acquire(lock, wait):
        wait.pause()
    stop = threading.Event()
    holder_path.write_bytes(msgspec.json.encode(_self()))
    beat = threading.Thread(
        target=_beat, args=(holder_path, stop), name="playhead-lock", daemon=True
    )
    beat.start()
    try:
        yield
    finally:
        stop.set()
        beat.join()
        with suppress(OSError):
            holder_path.unlink()
        lock.release()


class _Wait:
    """One process's wait for a lock."""

    def __init__(
        self,
        path: Path,
        holder_path: Path,
        wait_seconds: float,
        stale_seconds: float,
        on_wait: Callable[[str], None] | None,
    ) -> None:
        self._path = path
        self._holder_path = holder_path
        self._wait_seconds = wait_seconds
        self._stale_seconds = stale_seconds
        self._on_wait = on_wait
        self._started = self._beat_at = time.monotonic()
        self._beat: int | None = None
        self.holder: _Holder | None = None
        self.silent = False

    def look(self) -> None:
        """Read who holds the lock, and whether it has been silent for too long by our own clock."""
        try:
            beat = self._holder_path.stat().st_mtime_ns
            self.holder = msgspec.json.decode(self._holder_path.read_bytes(), type=_Holder)
        except (OSError, msgspec.MsgspecError):
            self.holder, self._beat = None, None
            return
        if beat != self._beat:
            self._beat, self._beat_at = beat, time.monotonic()
        self.silent = time.monotonic() - self._beat_at >= self._stale_seconds

    def pause(self) -> None:
        """Wait a little; say once for whom; give up when the time is over."""
        waited = time.monotonic() - self._started
        who = "another process"
        if self.holder is not None:
            who = f"process {self.holder.pid} on {self.holder.host}"
        if waited > self._wait_seconds:
            raise BuildError(
                f"waited {waited:.0f} s for {who}, which builds the pack",
                where=str(self._path),
                fix="Look whether that process still works, end it if not, and start again",
            )
        if self._on_wait is not None and waited > BEAT_SECONDS:
            self._on_wait(f"waiting for {who}, which builds {self._path}")
            self._on_wait = None
        time.sleep(_POLL_SECONDS)


def _acquire(lock: filelock.BaseFileLock, wait: _Wait) -> bool:
    """Take the lock if it is free or its holder is dead."""
    wait.look()
    holder, me = wait.holder, _self()
    held = _try(lock)
    mine = holder is not None and holder.machine == me.machine
    if held is True:
        # The kernel has spoken for this machine; a holder elsewhere may not share its locks.
        if holder is None or mine or wait.silent:
            return True
        lock.release()
        return False
    if held is None:
        return holder is None or wait.silent or (mine and not _lives(holder))
    # A lock that its dead holder's machine never gave back. Two builders at once would only do the
    # same work twice, as packs appear whole.
    return holder is not None and wait.silent and not (mine and _lives(holder))


def _try(lock: filelock.BaseFileLock) -> bool | None:
    """Take the kernel's lock: whether it is ours; None where the file system has no locks."""
    path = Path(lock.lock_file)
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            # A folder that is gone or takes no files looks like a lock that is held.
            if not path.exists():
                path.touch()
            return False
    except NotImplementedError:
        return None
    except OSError as error:
        raise _not_writable(path.parent, error) from None
    return True


def _not_writable(folder: Path, error: OSError) -> BuildError:
    return BuildError(
        f"the folder of the packs cannot be written: {error.strerror}",
        where=str(folder),
        fix="Set indexes_root or PLAYHEAD_CACHE to a folder that can",
    )


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT_SECONDS):
        with suppress(OSError):
            os.utime(path)


def _lives(holder: _Holder) -> bool:
    """Whether a process of this machine lives."""
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _self() -> _Holder:
    return _Holder(machine=machine_name(), host=socket.gethostname(), pid=os.getpid())


def machine_name() -> str:
    """Name the place where a process number means something: a host, or a container of it."""
    name = socket.gethostname()
    with suppress(OSError):
        name += " " + str(Path("/proc/self/ns/pid").readlink())
    return name
