"""Stretches of a side file's rows that parts of the work have made, in files beside it."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from playhead.errors import IndexFileError
from playhead.index.partials import partials_folder
from playhead.tokens.jobs import Stretch
from playhead.tokens.side_file import SideColumns, read_side, write_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from playhead.index.pack import LeafPack

__all__ = ["gaps", "read_stretch", "stored_stretches", "write_stretch"]

_log = logging.getLogger("playhead")

_NAME = re.compile(r"([0-9a-f]{16})-(\d+)-(\d+)\.arrow")


def stored_stretches(path: Path, pack: LeafPack) -> list[Stretch]:
    """Find the stretches that were made for the rows of a pack as they are now, by their names.

    Parameters
    ----------
    path
        The side file.
    pack
        Its leaf's columns.
    """
    found: list[Stretch] = []
    with suppress(OSError):
        for file in partials_folder(path).iterdir():
            match = _NAME.fullmatch(file.name)
            if match is not None and match[1] == pack.fingerprint():
                found.append(Stretch(int(match[2]), int(match[3])))
    return sorted(found)


def write_stretch(
    path: Path, pack: LeafPack, stretch: Stretch, columns: dict[str, NDArray[Any]], digest: str
) -> None:
    """Write the columns of a stretch, whole or not at all.

    Parameters
    ----------
    path
        The side file.
    pack
        Its leaf's columns.
    stretch
        The rows.
    columns
        Arrays of shape (K,).
    digest
        What they were made with.
    """
    file = _file_of(path, pack, stretch)
    num_rows = stretch.stop - stretch.start
    try:
        write_side(file, SideColumns(columns, num_rows, pack.fingerprint(), digest))
    except FileNotFoundError:
        # Another process with the same part was faster, and all is made: the folder is gone.
        if file.parent.exists():
            raise


def read_stretch(
    path: Path, pack: LeafPack, stretch: Stretch, digest: str
) -> dict[str, NDArray[Any]] | None:
    """Read the columns of a stretch; None if it is not there or damaged, which is said.

    Parameters
    ----------
    path
        The side file.
    pack
        Its leaf's columns.
    stretch
        The rows.
    digest
        What they must have been made with.
    """
    file = _file_of(path, pack, stretch)
    try:
        side = read_side(file)
    except IndexFileError as error:
        _log.warning("%s", error)
        with suppress(OSError):
            file.unlink()
        return None
    if side is None or side.digest != digest or side.num_rows != stretch.stop - stretch.start:
        return None
    return side.columns


def gaps(done: Iterable[Stretch], within: Stretch) -> Iterator[Stretch]:
    """Give the stretches of some rows that are in none of those that are done, in order.

    Parameters
    ----------
    done
        Stretches, in any order; they may overlap.
    within
        The rows.

    Examples
    --------
    >>> [tuple(gap) for gap in gaps([Stretch(4, 6), Stretch(0, 2)], Stretch(1, 9))]
    [(2, 4), (6, 9)]
    """
    at = within.start
    for one in sorted(done):
        if one.start >= within.stop:
            break
        if one.start > at:
            yield Stretch(at, one.start)
        at = max(at, one.stop)
    if at < within.stop:
        yield Stretch(at, within.stop)


def _file_of(path: Path, pack: LeafPack, stretch: Stretch) -> Path:
    name = f"{pack.fingerprint()}-{stretch.start}-{stretch.stop}.arrow"
    return partials_folder(path) / name
