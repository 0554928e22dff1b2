"""Meters of CPU time and memory, and how a measurement hands its figures back; for every Python."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Settings", "cpu_of", "cpu_seconds", "main", "median_cpu", "most_memory_of"]

_TICKS = os.sysconf("SC_CLK_TCK")


class Settings(argparse.Namespace):
    """What the driver tells a measurement."""

    data: Path
    """Folder of the synthetic corpora."""
    quick: bool
    """Whether to do a small part of the work."""


def cpu_seconds() -> float:
    """CPU time of this process and of its children, those that still run included (s)."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _of_live_children()


def cpu_of(act: Callable[[], object]) -> float:
    """CPU time of a call (s)."""
    begin = cpu_seconds()
    act()
    return cpu_seconds() - begin


def median_cpu(act: Callable[[], object], repeats: int = 3) -> float:
    """Median CPU time of a call (s)."""
    return statistics.median(cpu_of(act) for _ in range(repeats))


def most_memory_of(act: Callable[[], object]) -> float:
    """Most memory of this process in a call above that before it, pages of files left out (MB).

    Looking takes time: a call whose time counts is measured apart.
    """
    before = peak = _own_kilobytes()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, _own_kilobytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        act()
    finally:
        done.set()
        watcher.join()
    return (peak - before) / 1024


def main(measure: Callable[[Settings], dict[str, float]]) -> None:
    """Run a measurement as the driver asks, and print its figures as the last line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--quick", action="store_true")
    figures = measure(parser.parse_args(namespace=Settings()))
    sys.stdout.write("\n" + json.dumps(figures) + "\n")


def _own_kilobytes() -> int:
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])


def _of_live_children() -> float:
    me = str(os.getpid())
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name, in brackets, may hold anything; what follows it are numbers.
            facts = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if facts[1] == me and facts[0] != "Z":
            ticks += int(facts[11]) + int(facts[12])
    return ticks / _TICKS
