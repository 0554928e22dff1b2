"""Writing the page of a report to a file, which never replaces anything but a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, StorageError
from playhead.report.page.document import MARK, page_of
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from playhead.report.figures import Figures

__all__ = ["check_target", "write_page", "write_report"]

_HEAD_BYTES = 1024


def write_report(figures: Figures, path: str | os.PathLike[str]) -> None:
    """Write the page of a report: one HTML file that needs no other and no network.

    Parameters
    ----------
    figures
        What it shows.
    path
        Where to; a report that is there is replaced.

    Raises
    ------
    ConfigError
        If the folder does not exist, or something is there that is no report.
    MissingExtraError
        If matplotlib is not installed.
    StorageError
        If the file cannot be written.
    """
    check_target(path)
    write_page(page_of(figures), path)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a page may not be written to, before anything is planned.

    Raises
    ------
    ConfigError
        If its folder does not exist or may not be written to, or something is there that is no
        report.
    """
    target, where = Path(path), os.fspath(path)
    other = "Give the name of a new file, or of a report"
    try:
        is_there, is_file = _exists(target), target.is_file()
        folder = target.parent
        has_folder, may_write = folder.is_dir(), os.access(folder, os.W_OK | os.X_OK)
        is_ours = is_file and _is_report(target)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"the report cannot be written here: {said}", where=where, fix=other
        ) from None
    if not has_folder:
        raise ConfigError(
            "the folder of the report does not exist",
            where=where,
            fix="Make it, or give a file in another one",
        )
    if is_there and not is_ours:
        what = "a folder" if target.is_dir() else "no report"
        raise ConfigError(f"what is here is {what}, and would be replaced", where=where, fix=other)
    if not may_write:
        raise ConfigError(
            "the folder of the report may not be written to",
            where=where,
            fix="Change its rights, or give a file in another one",
        )


def write_page(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page, whole or not at all.

    Raises
    ------
    StorageError
        If that fails.
    """
    try:
        with atomic_write(path) as file:
            file.write(page.encode())
    except OSError as error:
        # The file that the system names is a hidden one beside it.
        raise StorageError(
            f"the report cannot be written: {error.strerror or error}",
            where=os.fspath(path),
            fix="Give a file on a disk with room for it",
        ) from error


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK.encode() in file.read(_HEAD_BYTES)
