"""What parts of the work leave behind until one of them puts it together: files beside the pack."""

from __future__ import annotations

import hashlib
import shutil
import time
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from playhead.index.pack_table import PACK_VERSION
from playhead.index.scan_files import SCAN_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.build_pack import PackPlan
    from playhead.index.build_rows import ScanTask
    from playhead.index.source import Stamp

__all__ = ["partials_folder", "remove_forgotten", "remove_partials", "scan_paths", "stored_scans"]

_SUFFIX = ".parts"
# Nobody takes so long between two parts.
_FORGOTTEN_SECONDS = 7 * 86400.0
# Where a leaf's columns come from and what shapes them is in its source; the rest tells nothing.
_NOT_CONTENT = ("leaf", "reader", "dropped")


def partials_folder(path: Path) -> Path:
    """Name the folder of what is done for a file, such as a pack.

    Parameters
    ----------
    path
        The file that is to be made.
    """
    return Path(f"{path}{_SUFFIX}")


def scan_paths(plan: PackPlan) -> list[Path]:
    """Name the file of each task of a plan.

    Its name is the identity of what is in it: files with their sizes and times, options, and
    versions of formats. What was read for anything else has another name.

    Parameters
    ----------
    plan
        The pack.
    """
    folder = partials_folder(plan.target.path)
    unread = [
        (leaf.sources.source, part.stamps)
        for leaf in plan.leaves
        for part in leaf.parts
        if part.known is None
    ]
    return [
        folder / f"{_identity(task, source, stamps)}.scan"
        for task, (source, stamps) in zip(plan.tasks, unread, strict=True)
    ]


def stored_scans(plan: PackPlan) -> dict[int, Path]:
    """Find the tasks of a plan that are done: their places, and their files.

    Parameters
    ----------
    plan
        The pack.
    """
    folder = partials_folder(plan.target.path)
    names: set[str] = set()
    with suppress(OSError):
        names = {path.name for path in folder.iterdir()}
    if not names:
        return {}
    return {place: path for place, path in enumerate(scan_paths(plan)) if path.name in names}


def remove_partials(path: Path) -> None:
    """Remove what parts did for a file that is made.

    Parameters
    ----------
    path
        The file.
    """
    shutil.rmtree(partials_folder(path), ignore_errors=True)


def remove_forgotten(folder: Path) -> None:
    """Remove what parts did that nobody put together, and to which nothing was added for a week.

    Parameters
    ----------
    folder
        Where the files are that were to be made.
    """
    oldest = time.time() - _FORGOTTEN_SECONDS
    for partials in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            if partials.stat().st_mtime < oldest:
                shutil.rmtree(partials, ignore_errors=True)


def _identity(task: ScanTask, source: str, stamps: Sequence[Stamp]) -> str:
    shaping = [getattr(task, one.name) for one in fields(task) if one.name not in _NOT_CONTENT]
    content = msgspec.json.encode([SCAN_VERSION, PACK_VERSION.decode(), source, stamps, shaping])
    return hashlib.blake2b(content, digest_size=16).hexdigest()
