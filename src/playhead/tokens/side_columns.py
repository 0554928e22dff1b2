"""Columns that are made from the rows of a leaf: found beside its pack, or made by one process."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from playhead.errors import BuildError, IndexFileError, PlayheadError
from playhead.index.build import WAIT_SECONDS
from playhead.index.lock import build_lock
from playhead.index.partials import remove_partials
from playhead.tokens.base import digest_of
from playhead.tokens.extra import content_of_extra_fields
from playhead.tokens.jobs import Stretch, do_all, stretches
from playhead.tokens.partials import gaps, read_stretch, stored_stretches
from playhead.tokens.side_file import SideColumns, read_side, write_side

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from numpy.typing import DTypeLike, NDArray

    from playhead.blend.leaf import Leaf
    from playhead.index.build_pace import Progress
    from playhead.index.pack import LeafPack
    from playhead.index.pool import Workers

__all__ = [
    "Measure",
    "find_columns",
    "known_rows",
    "measure_rows",
    "named_os_errors",
    "new_columns",
    "open_columns",
    "side_path",
]

_log = logging.getLogger("playhead")


class Measure(Protocol):
    """What is found out of every row; travels to other processes."""

    @property
    def kind(self) -> str:
        """What the side files are called, such as `tokens`."""
        ...

    @property
    def digest(self) -> str:
        """Identity of all that enters beside the leaf: 16 hexadecimal digits."""
        ...

    @property
    def columns(self) -> Mapping[str, DTypeLike]:
        """Name and type of what it gives."""
        ...

    @property
    def runs_in_threads(self) -> bool:
        """Whether it lets other threads run meanwhile."""
        ...

    def of_rows(self, leaf: Leaf, pack: LeafPack, stretch: Stretch) -> dict[str, NDArray[Any]]:
        """Return its columns for some rows, each of shape (K,).

        Raises
        ------
        DataError
            If a row cannot be used; it names it.
        """
        ...


class _Task:
    """A measure of a leaf, in this process or in another."""

    def __init__(self, measure: Measure, leaf: Leaf, pack: LeafPack) -> None:
        self._measure, self._leaf, self._pack = measure, leaf, pack

    def __call__(self, stretch: Stretch) -> dict[str, NDArray[Any]]:
        return self._measure.of_rows(self._leaf, self._pack, stretch)


def side_path(leaf: Leaf, pack: LeafPack, kind: str, digest: str) -> Path:
    """Name the side file of a leaf in a pack.

    The name ends with the identity of the leaf's files and of what else says which of their texts
    are its own: `text_field`, `lang_field`, options of its type, tags, extra fields with the
    content of their files, transforms, and the tag that stands for audio in conversations.
    """
    options = leaf.options
    shaping: list[Any] = [
        pack.entry.source,
        options.text_field,
        options.lang_field,
        leaf.own,
        leaf.tags,
        leaf.extra_fields,
        content_of_extra_fields(leaf),
    ]
    if any(field.type == "text_sample" for field in leaf.extra_fields):
        shaping.append("longest line")
    if leaf.kind != "cut":
        shaping.append(options.audio_locator_tag)
        shaping.append(leaf.outer_tags.get(options.lang_field))
    if leaf.transforms:
        shaping.append(leaf.transforms)
    try:
        content = msgspec.json.encode(shaping, enc_hook=str, order="sorted")
    except UnicodeEncodeError:
        # Half of a surrogate pair, which a config in memory may have.
        content = json.dumps(shaping, default=str, sort_keys=True).encode()
    return Path(f"{pack.path}.{kind}-{digest}-{digest_of(content)}.arrow")


def find_columns(
    leaf: Leaf, pack: LeafPack, kind: str, digest: str
) -> Mapping[str, NDArray[Any]] | None:
    """Open the columns of a leaf that are there and belong to its rows as they are now.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    kind, digest
        Of the measure that made them.

    Returns
    -------
    Mapping
        Arrays of shape (N,), read-only; None if there are none, or what is there is old or damaged.
    """
    side = _usable(leaf, pack, kind, digest)
    return side.columns if side is not None and side.num_rows == pack.num_rows else None


def open_columns(
    leaf: Leaf,
    pack: LeafPack,
    measure: Measure,
    *,
    workers: Workers = 1,
    progress: Progress | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> Mapping[str, NDArray[Any]]:
    """Open the columns of a leaf, making what is missing.

    Any number of processes may call it at once: one works, the others wait, and if it dies another
    one takes its place. Where rows were appended, only those are looked at.

    Parameters
    ----------
    leaf
        The source.
    pack
        Its columns.
    measure
        What is found out of each row.
    workers
        How many threads or processes may work; or a cluster.
    progress
        Told the leaf's name, and how many of how many rows are done.
    wait_seconds
        How long to wait for another process.

    Returns
    -------
    Mapping
        Arrays of shape (N,), read-only.

    Raises
    ------
    DataError
        If a row cannot be used; it names it.
    StaleIndexError
        If a row is not the one that was indexed.
    BuildError
        If the side file cannot be written, or another process takes too long.
    """
    found = find_columns(leaf, pack, measure.kind, measure.digest)
    if found is not None:
        return found
    path = side_path(leaf, pack, measure.kind, measure.digest)
    with (
        named_os_errors(path),
        build_lock(path, wait_seconds=wait_seconds, on_wait=_log.warning),
    ):
        side = _usable(leaf, pack, measure.kind, measure.digest)
        if side is None or side.num_rows < pack.num_rows:
            columns = _made(leaf, pack, measure, side, workers=workers, progress=progress)
            fingerprint = pack.fingerprint()
            write_side(path, SideColumns(columns, pack.num_rows, fingerprint, measure.digest))
        remove_partials(path)
    found = find_columns(leaf, pack, measure.kind, measure.digest)
    if found is None:
        raise IndexFileError(
            "the file was replaced or damaged right after it was written",
            where=str(path),
            fix="Look after the disk, and start again",
        )
    return found


@contextmanager
def named_os_errors(path: Path) -> Generator[None]:
    """Say what the system says (a full disk, a file that may not be read) as an error of ours.

    Raises
    ------
    BuildError
        That names the file.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, PlayheadError):
            raise
        raise BuildError(
            f"the rows cannot be looked at or the file not be written: {error.strerror or error}",
            where=str(error.filename or path),
            fix="Look after the disk and its rights, and start again",
        ) from error


def _usable(leaf: Leaf, pack: LeafPack, kind: str, digest: str) -> SideColumns | None:
    """Return what a side file has of the rows that the leaf begins with now."""
    path = side_path(leaf, pack, kind, digest)
    try:
        side = read_side(path)
    except IndexFileError as error:
        _log.warning("%s", error)
        return None
    if side is None or side.digest != digest or side.num_rows > pack.num_rows:
        return None
    if any(len(column) != side.num_rows for column in side.columns.values()):
        return None
    return side if pack.fingerprint(side.num_rows) == side.fingerprint else None


def known_rows(leaf: Leaf, pack: LeafPack, measure: Measure) -> Stretch:
    """Return the rows that a side file knows already: none, or those that the leaf begins with."""
    side = _usable(leaf, pack, measure.kind, measure.digest)
    return Stretch(0, 0 if side is None else side.num_rows)


def measure_rows(
    leaf: Leaf,
    pack: LeafPack,
    measure: Measure,
    wanted: Sequence[Stretch],
    columns: Mapping[str, NDArray[Any]],
    *,
    first: int = 0,
    workers: Workers,
    progress: Progress | None,
) -> None:
    """Find out of rows what a measure says.

    Parameters
    ----------
    leaf, pack, measure, workers, progress
        As in `open_columns`.
    wanted
        The rows.
    columns
        Filled in: arrays whose first element is that of row `first`.
    """
    todo = [piece for one in wanted for piece in stretches(one.start, one.stop, pack.row_size)]
    done = pack.num_rows - sum(one.stop - one.start for one in wanted)
    for stretch, found in do_all(
        _Task(measure, leaf, pack),
        todo,
        workers=workers,
        in_threads=measure.runs_in_threads,
        on_death=_log.warning,
    ):
        for name, column in columns.items():
            column[stretch.start - first : stretch.stop - first] = found[name]
        done += stretch.stop - stretch.start
        if progress is not None:
            progress(leaf.name, done, pack.num_rows)


def _made(
    leaf: Leaf,
    pack: LeafPack,
    measure: Measure,
    known: SideColumns | None,
    *,
    workers: Workers,
    progress: Progress | None,
) -> dict[str, NDArray[Any]]:
    """Make the columns of all rows, taking over those that are known and what parts have made."""
    columns = new_columns(measure, pack.num_rows)
    done: list[Stretch] = []
    if known is not None:
        done.append(Stretch(0, known.num_rows))
        for name, column in columns.items():
            column[: known.num_rows] = known.columns[name]
    path = side_path(leaf, pack, measure.kind, measure.digest)
    for stretch in stored_stretches(path, pack):
        found = read_stretch(path, pack, stretch, measure.digest)
        if found is not None:
            done.append(stretch)
            for name, column in columns.items():
                column[stretch.start : stretch.stop] = found[name]
    wanted = list(gaps(done, Stretch(0, pack.num_rows)))
    measure_rows(leaf, pack, measure, wanted, columns, workers=workers, progress=progress)
    return columns


def new_columns(measure: Measure, num_rows: int) -> dict[str, NDArray[Any]]:
    """Return the columns of a measure for so many rows, to be filled in."""
    return {name: np.zeros(num_rows, dtype) for name, dtype in measure.columns.items()}
