"""How often the kernel has killed something because the memory of the machine ran out."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

__all__ = ["host_kills"]

_ROOT = Path("/")


def host_kills(root: Path = _ROOT) -> int | None:
    """Count the kernel's kills for want of memory, in this control group and on the machine.

    Parameters
    ----------
    root
        The file system in which ``/proc`` and ``/sys`` are.

    Returns
    -------
    int | None
        A number that rises with each kill; None where the kernel does not tell.
    """
    counts: list[int] = []
    for path in (root / "proc/vmstat", *_group_files(root)):
        with suppress(OSError):
            counts += map(int, re.findall(r"^oom_kill (\d+)$", path.read_text(), re.MULTILINE))
    return sum(counts) if counts else None


def _group_files(root: Path) -> list[Path]:
    files: list[Path] = []
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            group = group.lstrip("/")
            if not controllers:
                files.append(root / "sys/fs/cgroup" / group / "memory.events")
            elif "memory" in controllers.split(","):
                files.append(root / "sys/fs/cgroup/memory" / group / "memory.oom_control")
    return files
