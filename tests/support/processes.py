"""Looks at processes from outside, by what the kernel says of them."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def gone(pid, seconds=20.0):
    """Whether a process has ended, or does within some seconds; one to be reaped has."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)


def marked(mark):
    """The processes with this text in their environment, those that are about to be reaped not."""
    found = set()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in environ.read_bytes():
                found.add(int(environ.parent.name))
    return found


def none_marked(mark, seconds=20.0):
    """Whether no such process is left, or none is within some seconds."""
    deadline = time.monotonic() + seconds
    while marked(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
