"""Processes that never outlive those that they work for (Linux only; elsewhere nothing is done)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["adopt_orphans", "ancestors", "children", "die_with", "end_children"]

# Of linux/prctl.h.
_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_END_SECONDS = 10.0


def die_with(parent: int, signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent ends, however it ends.

    It is the thread that started this process whose end counts.

    Parameters
    ----------
    parent
        Process id of the parent: if it has ended already, this process ends now.
    signal_number
        What is sent.
    """
    _prctl(_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of all that descends from this process and has lost its own."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def children(parent: int) -> frozenset[int]:
    """Return the processes whose parent is this one, those that wait to be reaped included."""
    numbers = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return frozenset(number for number in numbers if _parent(number) == parent)


def ancestors() -> frozenset[int]:
    """Return this process, its parent, and so on."""
    found: set[int] = set()
    number: int | None = os.getpid()
    while number:
        found.add(number)
        number = _parent(number)
    return frozenset(found)


def end_children(spare: frozenset[int]) -> None:
    """Kill and reap the children of this process, and whatever it then becomes the parent of.

    Parameters
    ----------
    spare
        Children that are left alone.
    """
    deadline = time.monotonic() + _END_SECONDS
    while (strays := children(os.getpid()) - spare) and time.monotonic() < deadline:
        for stray in strays:
            with suppress(ProcessLookupError):
                os.kill(stray, signal.SIGKILL)
        for stray in strays:
            with suppress(ChildProcessError):
                os.waitpid(stray, os.WNOHANG)
        time.sleep(0.001)


def _parent(number: int) -> int | None:
    """Return the parent of a process; None if there is no such process any more."""
    with suppress(OSError):
        # The name stands in brackets and may hold anything, brackets and blanks too.
        return int(Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return None


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)
