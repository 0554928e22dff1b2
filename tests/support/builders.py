"""Processes that build packs, the first of which is held inside the build until it is killed."""

from __future__ import annotations

import os
import time
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from playhead.index import build
from playhead.index.build_scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playhead.index.build_rows import Rows, ScanTask

HELD_SECONDS = 60.0


def hold_the_first_builder(notes: Path) -> None:
    """From now on, this process says when it builds, and waits to be killed if nobody did before.

    Every process that calls this with the same file writes a line with its number to it for each
    manifest that it reads, with the lock of the pack held and the first rows of it spooled.
    """

    def noted(task: ScanTask) -> Iterator[Rows]:
        rows = scan(task)
        yield from islice(rows, 1)
        with notes.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if builders(notes) == [os.getpid()]:
            time.sleep(HELD_SECONDS)
            raise AssertionError(f"not killed within {HELD_SECONDS} s")
        yield from rows

    build.scan = noted


def builders(notes: Path) -> list[int]:
    """The numbers of the processes that have built so far; the first is held."""
    if not notes.exists():
        return []
    return [int(line) for line in notes.read_text().split("\n")[:-1]]


def held_builder(notes: Path, seconds: float) -> int:
    """The process that is held, once there is one."""
    deadline = time.monotonic() + seconds
    while not builders(notes):
        assert time.monotonic() < deadline, f"nobody builds after {seconds} s"
        time.sleep(0.005)
    return builders(notes)[0]


def holders(folder: Path) -> list[int]:
    """The processes that hold the locks of packs below a folder, as they say."""
    return [msgspec.json.decode(path.read_bytes())["pid"] for path in folder.rglob("*.holder")]
