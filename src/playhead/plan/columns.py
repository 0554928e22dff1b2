"""What the plan knows of a leaf: its columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Kind", "KindCode", "LeafColumns"]

Kind = Literal["cut", "text", "conversation"]


class KindCode(IntEnum):
    """What a sample is, as a number."""

    CUT = 0
    """Audio, with or without text."""
    TEXT = 1
    """Text alone."""
    CONVERSATION = 2
    """Turns, of which any may be audio."""
    LONG_TEXT = 3
    """Text that may be cut into windows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafColumns:
    """The columns of one leaf, row by row in declared order."""

    key: str
    """Stable identity of the leaf; progress is kept under it."""
    name: str
    """What people call it; named in messages."""
    weight: int
    """Share of an infinite blend, relative to the other leaves; 0 draws nothing."""
    duration_us: NDArray[np.int64]
    """Lengths (µs), shape (N,); below 0 where a row has none."""
    fingerprint: Callable[[int], str]
    """Digest of the content of the first n rows."""
    explain_change: Callable[[str, int], str] | None = None
    """Says what differs in the first n rows from those of an older digest, and in which file."""
    shard: NDArray[np.int32] | None = None
    """Shard of each row, shape (N,); None where rows have no shards."""
    shard_bytes: NDArray[np.int64] | None = None
    """Size of each shard (bytes), indexed by the values of `shard`."""
    status: NDArray[np.int16] | None = None
    """Number of each row's status in `statuses`, shape (N,); -1 where the row says none."""
    statuses: tuple[str, ...] = ()
    """The statuses that rows have."""
    excluded_rows: NDArray[np.int64] | None = None
    """Rows that were excluded, ascending, shape (E,); they are only ever added to."""
    excluded_at: NDArray[np.int64] | None = None
    """When each of them was, shape (E,), from 1 on; later exclusions have higher numbers."""
    side: Callable[[str], Mapping[str, NDArray[Any]] | None] | None = None
    """Columns of a side file by its digest, shape (N,): `tokens`, or `cer`, `similarity` (NaN where
    a row says none) and `speaker` (true where held out); None where there is none.

    Where samples are measured in tokens, five go with `tokens` (uint32): `tokens`, all tokens of a
    row but those of a cut's own audio; `input`, those before the answer (0 of a cut), and `output`,
    the answer (`tokens` of a cut); `context` and `answer`, the same with one token for each
    stretch of audio."""
    slice_shard: NDArray[np.int32] | None = None
    """Shard of each row that passes take slices of, shape (N,); rows of a shard are consecutive.
    None where the leaf is not sliced."""
    kind: Kind = "cut"
    """What its samples are: audio, text alone, or turns."""
    windows: bool = False
    """Whether its texts may be cut into windows."""
    cache: dict[Any, Any] = field(default_factory=dict[Any, Any], init=False, repr=False)
    """What was computed of the columns, once each."""

    @property
    def num_rows(self) -> int:
        """How many rows the leaf has now."""
        return len(self.duration_us)

    @property
    def code(self) -> KindCode:
        """What its rows are, as a number."""
        if self.kind == "text":
            return KindCode.LONG_TEXT if self.windows else KindCode.TEXT
        return KindCode.CUT if self.kind == "cut" else KindCode.CONVERSATION

    def digest(self, rows: int) -> str:
        """`fingerprint` of the first rows, computed once per number of rows."""
        prints: dict[int, str] = self.cache.setdefault("digest", {})
        if rows not in prints:
            prints[rows] = self.fingerprint(rows)
        return prints[rows]
