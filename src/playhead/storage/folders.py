"""Folders, of disks and of stores."""

from __future__ import annotations

import os
from pathlib import Path

from playhead.paths import scheme
from playhead.storage import access

__all__ = ["archives_under", "is_folder", "names_in"]


def is_folder(uri: str) -> bool:
    """Whether this is a folder; on a store its name tells, which has no suffix.

    Examples
    --------
    >>> is_folder("s3://bucket/shar"), is_folder("s3://bucket/a.tar")
    (True, False)
    """
    if not access.is_remote(uri):
        return os.path.isdir(uri)  # noqa: PTH112 - paths are strings
    if scheme(uri) == "pipe":
        return False
    return "." not in uri.partition("?")[0].rstrip("/").rpartition("/")[2]


def names_in(folder: str) -> list[str]:
    """Name the files or objects directly in a folder, without the folder, sorted.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If a local one does not exist, or is none; a store has none that holds nothing.
    StorageError, OSError
        If it cannot be listed.
    """
    if not access.is_remote(folder):
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())
    start = len(folder.rstrip("/")) + 1
    inside = [uri[start:] for uri in access.list_files(folder)]
    return [name for name in inside if name and "/" not in name]


def archives_under(folder: str) -> list[str]:
    """Name the tars under a folder, at any depth, sorted by their paths.

    Raises
    ------
    StorageError, OSError
        If it cannot be listed.
    """
    if access.is_remote(folder):
        return [uri for uri in access.list_files(folder) if uri.endswith(".tar")]
    return [str(path) for path in sorted(Path(folder).rglob("*.tar")) if path.is_file()]
