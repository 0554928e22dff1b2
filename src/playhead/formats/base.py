"""What an input type has to say of its files and rows; all else is the same for all types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from playhead.errors import ManifestError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Example, Place

__all__ = ["BadRowError", "Format", "RowColumns", "SourcePair", "Unmeasured"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePair:
    """A manifest and the archives that hold the audio of its rows."""

    manifest: str
    """Path of the manifest."""
    tars: tuple[str, ...] = ()
    """Paths of the archives; empty where rows name plain files."""
    numbers: tuple[int, ...] = ()
    """The shard number of each archive, where several serve one manifest by `shard_id`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmeasured:
    """A row that does not say how long it is."""

    index: int
    """Place among the kept rows."""
    path: str
    """The audio file whose header says it."""
    start: float
    """Where the sample begins in the file, in seconds."""


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
    """An input type: which files it has, what a row says, and what sample a row is."""

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

    def example(self, leaf: Leaf, place: Place, row: bytes, audio: bytes | None) -> Example:
        """Make the sample of one row.

        Parameters
        ----------
        leaf
            The source.
        place
            Where the row and its audio lie.
        row
            The row's bytes.
        audio
            The payload of the archive's member; None where the row names a plain file.

        Raises
        ------
        ManifestError
            If the row cannot be used.
        """
        ...
