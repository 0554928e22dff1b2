"""What an input type has to say of its files and rows; all else is the same for all types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from playhead.errors import ManifestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example, Part, Place

__all__ = [
    "BadRowError",
    "FieldShard",
    "Format",
    "RowAudio",
    "RowColumns",
    "Sample",
    "ScannedFormat",
    "SourcePair",
    "TableBlock",
    "TableFormat",
    "TableRow",
    "Unmeasured",
]


class FieldShard(NamedTuple):
    """A file whose k-th record belongs to the k-th row of a manifest."""

    field: str
    """What it gives to the row, such as `recording`."""
    path: str
    """A tar of pairs of members (data, then JSON), JSONL, or plain lines, by its suffix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePair:
    """A manifest and the archives that hold the audio of its rows."""

    manifest: str
    """Path of the manifest."""
    tars: tuple[str, ...] = ()
    """Paths of the archives; empty where rows name plain files."""
    numbers: tuple[int, ...] = ()
    """The shard number of each archive, where several serve one manifest by `shard_id`."""
    fields: tuple[FieldShard, ...] = ()
    """Files that run parallel to the manifest, record by row."""
    left_out: tuple[int, ...] = ()
    """Lines of the manifest that are left out unread, counted from 0, ascending."""

    @property
    def files(self) -> tuple[str, ...]:
        """All its files: the manifest, its archives, its fields, in this order."""
        return (self.manifest, *self.tars, *(shard.path for shard in self.fields))


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmeasured:
    """A row that does not say how long it is."""

    index: int
    """Place among the kept rows."""
    path: str
    """The audio file whose header says it."""
    start: float
    """Where the sample begins in the file, in seconds."""


class RowAudio(NamedTuple):
    """One of several audios of a row."""

    member: str | None = None
    """Name of the archive's member that holds it; None where it is a plain file."""
    path: str | None = None
    """The plain file, resolved."""
    start: float = 0.0
    """Where it begins in the file or member, seconds."""
    duration_us: int = -1
    """Its length; -1 where the index has to look at its header."""
    tar: int = 0
    """Index in the pair's `tars` of the archive that holds it; -1 looks in all of them."""


class Sample(NamedTuple):
    """Members of an archive that belong together."""

    row: int
    """Which one is the row, counted among the archive's members."""
    audio: tuple[int, ...] = ()
    """Which ones are its audio."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowColumns:
    """What the index keeps of a block of rows; arrays have shape (K,), K the rows that are kept."""

    num_rows: int
    """Rows read, those that are dropped included."""
    kept: NDArray[np.int64]
    """Place of each kept row in the block."""
    duration_us: NDArray[np.int64]
    """Microseconds; 0 where `unmeasured` names the row."""
    num_samples: NDArray[np.int64]
    """Samples at `rate`; 0 is unknown."""
    rate: NDArray[np.int32]
    """Hz; 0 is unknown."""
    channels: NDArray[np.int16]
    """Channels of the sample; 0 is unknown."""
    tar: NDArray[np.int32]
    """Index in the pair's `tars`; -1 where the row names a plain file."""
    members: list[str] | None = None
    """Name of the archive's member that holds the audio, for each kept row of a tarred source."""
    unmeasured: list[Unmeasured] = field(default_factory=list)
    """Kept rows without a duration."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows left out on purpose, by reason."""
    status: list[str | None] | None = None
    """`validation_status` of each kept row; None where no row has one."""
    ids: list[str] | None = None
    """Id of every row read, in order; needed where `fields` of the pair have records that bear it:
    plain lines have none."""
    audios: list[list[RowAudio]] | None = None
    """All audio of each kept row, in order, where a row may have several or none: the length of the
    row is then their sum. None where every row has one."""


class BadRowError(ManifestError):
    """A row of a block cannot be used; who knows its file and byte raises it again with them.

    Parameters
    ----------
    what
        What is wrong with it.
    fix
        What to do.
    """

    def __init__(self, what: str, *, fix: str) -> None:
        super().__init__(what, fix=fix)
        self.what = what
        self.fix = fix


class Format(Protocol):
    """An input type whose rows are lines: which files it has, what a row and its sample are.

    Lines are JSON objects unless the class says ``lines_are_json = False``: then blank lines are
    rows too, which `columns` counts and leaves out or not. A type whose audio lies in archives may
    have a method ``member(row) -> str | None``, the name that `columns` gave to the member: then a
    member is compared with its row whenever it is read.

    A class that says ``rows_are_members = True`` may have manifests that are tars, whose members
    are rows and their audio. It then has ``samples(leaf, names) -> Iterator[Sample]``, which groups
    the members of a tar by their names, and, where samples have audio, ``bind(leaf, wanted, there)
    -> list[int]``: which of the members `there` each audio of a row (`RowAudio.member`) means. Both
    raise `BadRowError` where they cannot tell.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """Pair the leaf's manifests with its archives, in declared order.

        Raises
        ------
        ConfigError
            If they do not pair; the difference is named.
        """
        ...

    def columns(self, leaf: Leaf, pair: SourcePair, block: bytes) -> RowColumns:
        """Read a block of rows, one a line, none of them blank.

        Raises
        ------
        BadRowError
            If a row cannot be used; which one is found by giving fewer.
        """
        ...

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row.

        Parameters
        ----------
        leaf
            The source.
        place
            Where the row and its audio lie.
        row
            The row's bytes.
        parts
            What lies elsewhere: the payload of the archive's member (field `audio`), or the record
            of each field that has one for this row. Empty where the row names plain files, and
            where no audio is wanted. Of rows with `RowColumns.audios` one for each, in order, with
            their lengths; plain files, and audio that is not wanted, come without bytes.

        Raises
        ------
        ManifestError
            If the row cannot be used.
        """
        ...


class TableRow(NamedTuple):
    """One row of a table, as it is read for a batch."""

    row: bytes
    """The row without its audio, as JSON: the same bytes whenever it is read."""
    audio: bytes | None
    """The encoded audio; None where none is wanted or the row names a file."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TableBlock:
    """Some rows of a table as the index reads them."""

    columns: RowColumns
    """What the index keeps of them."""
    rows: list[bytes]
    """Each kept row as JSON, without its audio; see `TableRow.row`."""
    place: NDArray[np.int64]
    """Number of each kept row in its file, shape (K,)."""


@runtime_checkable
class ScannedFormat(Protocol):
    """An input type that makes rows of its files itself when they are indexed; the pack has them.

    `scan` tells it from a `Format`.
    """

    def sources(self, leaf: Leaf) -> list[SourcePair]:
        """One pair a file, in declared order; `Format.sources`."""
        ...

    def scan(
        self, leaf: Leaf, pair: SourcePair, on_bad: Callable[[BadRowError], None] | None
    ) -> Iterator[TableBlock]:
        """Read a file for the index, some rows at a time.

        Parameters
        ----------
        leaf, pair
            The source and the file.
        on_bad
            Told of each row that cannot be used, which is left out then; None raises.

        Raises
        ------
        BadRowError
            If a row cannot be used.
        DataError
            If the file cannot be read.
        """
        ...

    def example(self, leaf: Leaf, place: Place, row: bytes, parts: Sequence[Part]) -> Example:
        """Make the sample of one row; `Format.example`. `parts` holds the audio if there is any."""
        ...


@runtime_checkable
class TableFormat(ScannedFormat, Protocol):
    """An input type that reads its files itself, because its rows are not lines.

    `load` tells it from a `ScannedFormat`, whose rows have to be in the pack.
    """

    def groups(self, leaf: Leaf, pair: SourcePair) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each stretch of rows that is read as one ends in the file, and its bytes; (G,)."""
        ...

    def load(
        self, leaf: Leaf, path: str, places: NDArray[np.int64], *, with_audio: bool
    ) -> list[TableRow]:
        """Read rows by their numbers in the file, in the order that is asked for.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        ...
