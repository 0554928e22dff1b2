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
    from collections.abc import Callable, Iterator

__all__ = ["BEAT_SECONDS", "STALE_SECONDS", "build_lock"]

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
) -> Iterator[None]:
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
        If the wait is over; it says whom it waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(f"{path}.lock", thread_local=False)
    holder_path = Path(f"{path}.holder")
    _acquire(lock, holder_path, path, wait_seconds, stale_seconds, on_wait)
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


def _acquire(
    lock: filelock.BaseFileLock,
    holder_path: Path,
    path: Path,
    wait_seconds: float,
    stale_seconds: float,
    on_wait: Callable[[str], None] | None,
) -> None:
    started = time.monotonic()
    me = _self()
    silence = _Silence(holder_path)
    said = False
    while True:
        holder, silent = silence.look()
        held = _try(lock)
        free = holder is None or silent >= stale_seconds
        if held is not False and (free or (held is True and holder.machine == me.machine)):
            return
        if held is False and holder is not None and free and not _lives(holder, me):
            # A lock that its dead holder's machine never gave back; two builders at once would
            # only do the same work twice, as packs appear in one step.
            return
        if held is True:
            lock.release()
        if held is None and holder is not None and holder.machine == me.machine:
            if not _lives(holder, me):
                return
        name = "another process" if holder is None else f"process {holder.pid} on {holder.host}"
        waited = time.monotonic() - started
        if waited > wait_seconds:
            raise BuildError(
                f"waited {waited:.0f} s for {name}, which builds the pack",
                where=str(path),
                fix="Look whether that process still works, end it if not, and start again",
            )
        if on_wait is not None and not said and waited > BEAT_SECONDS:
            on_wait(f"waiting for {name}, which builds {path}")
            said = True
        time.sleep(_POLL_SECONDS)


class _Silence:
    """How long the holder's file has not been touched, by this machine's own clock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: int | None = None
        self._since = time.monotonic()

    def look(self) -> tuple[_Holder | None, float]:
        """Read who holds the lock and for how long it has been silent."""
        try:
            touched = self._path.stat().st_mtime_ns
            holder = msgspec.json.decode(self._path.read_bytes(), type=_Holder)
        except (OSError, msgspec.MsgspecError):
            return None, 0.0
        if touched != self._seen:
            self._seen, self._since = touched, time.monotonic()
        return holder, time.monotonic() - self._since


def _try(lock: filelock.BaseFileLock) -> bool | None:
    """Take the kernel's lock: whether it is ours; None where the file system has no locks."""
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return False
    except NotImplementedError:
        return None
    except PermissionError:
        raise BuildError(
            "the folder of the packs cannot be written",
            where=lock.lock_file,
            fix="Set indexes_root or PLAYHEAD_CACHE to a folder that can",
        ) from None
    return True


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(BEAT_SECONDS):
        with suppress(OSError):
            os.utime(path)


def _lives(holder: _Holder, me: _Holder) -> bool:
    """Whether a process of this machine lives; others are judged by their heartbeat alone."""
    if holder.machine != me.machine:
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _self() -> _Holder:
    host = socket.gethostname()
    # Process numbers mean nothing outside their namespace: a container is a machine of its own.
    space = "/proc/self/ns/pid"
    machine = host
    with suppress(OSError):
        machine += " " + str(Path(space).readlink())
    return _Holder(machine=machine, host=host, pid=os.getpid())
