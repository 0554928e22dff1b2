"""What a rebuild found to be different, file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from playhead.index.columns import COLUMNS
from playhead.index.pack_table import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from playhead.index.pack import LeafPack
    from playhead.index.pack_table import ShardTable

__all__ = ["MAX_CHANGES", "MAX_FILES", "history"]

MAX_FILES: Final = 20
"""Files that one change names."""

MAX_CHANGES: Final = 16
"""Changes that are remembered."""

_PIECE_ROWS = 1 << 18
_AUDIO = ("audio_offset", "audio_size")
_KINDS = (
    (("duration_us", "num_samples"), "durations differ"),
    (("row_offset", "row_size"), "rows lie elsewhere in the file"),
    (("row_crc",), "rows differ"),
    (_AUDIO, "members lie elsewhere in the archive"),
)


class Rows(Protocol):
    """What reads some rows of a column."""

    def __call__(self, name: str, start: int, stop: int) -> NDArray:
        """Read rows `start` to `stop`."""
        ...


class _Piece(NamedTuple):
    """Some rows before and now."""

    start: int
    old: Mapping[str, NDArray]
    new: Mapping[str, NDArray]


def history(
    old: LeafPack, rows: Rows, shards: ShardTable, read: Iterable[str], fingerprint: str
) -> list[Change]:
    """Return a leaf's changes with the one from `old` to what was read now, if there is one.

    Parameters
    ----------
    old
        The leaf as the pack had it.
    rows
        Reads some of its rows now: name of a column, first row, row after the last.
    shards
        Its files now.
    read
        The manifests that were read; the others are as they were.
    fingerprint
        Of all its rows now.
    """
    before = old.entry.history
    if old.fingerprint() == fingerprint:
        return before
    files = _differences(old, rows, shards, set(read))
    change = Change(
        fingerprint=old.fingerprint(),
        num_rows=old.num_rows,
        files=files[:MAX_FILES],
        more=max(len(files) - MAX_FILES, 0),
    )
    return [*before, change][-MAX_CHANGES:]


def _differences(
    old: LeafPack, rows: Rows, shards: ShardTable, read: set[str]
) -> list[tuple[str, str]]:
    then, now = _stretches(old.shards), _stretches(shards)
    found = [(uri, "is no longer part of the leaf") for uri in then if uri not in now]
    for uri, stretch in now.items():
        new_rows = stretch.stop - stretch.start
        if uri not in then:
            found.append((uri, f"is new, {new_rows} rows"))
            continue
        old_rows = then[uri].stop - then[uri].start
        if old_rows != new_rows:
            found.append((uri, f"{old_rows} rows became {new_rows}"))
        elif uri in read:
            found += _difference(uri, _pieces(old, then[uri], rows, stretch), shards)
    kept = [uri for uri in then if uri in now]
    if kept != [uri for uri in now if uri in then]:
        found.append((kept[0], "the files stand in another order"))
    return found


def _stretches(shards: ShardTable) -> dict[str, slice]:
    """Rows of each manifest; a manifest that is named twice counts by its last place."""
    ends = np.cumsum(shards.rows).tolist()
    return {
        uri: slice(end - rows, end)
        for uri, rows, end in zip(shards.uris, shards.rows.tolist(), ends, strict=True)
        if rows
    }


def _pieces(old: LeafPack, then: slice, rows: Rows, now: slice) -> Iterator[_Piece]:
    """Give the rows of one manifest before and now, some at a time."""
    for start in range(0, now.stop - now.start, _PIECE_ROWS):
        first, last = now.start + start, min(now.start + start + _PIECE_ROWS, now.stop)
        at = slice(then.start + start, then.start + start + last - first)
        yield _Piece(
            start,
            {name: getattr(old, name)[at] for name in COLUMNS},
            {name: rows(name, first, last) for name in COLUMNS},
        )


def _difference(uri: str, pieces: Iterator[_Piece], shards: ShardTable) -> list[tuple[str, str]]:
    """Say how as many rows of one manifest differ: the weightiest difference only."""
    count = [0] * len(_KINDS)
    first: list[tuple[int, str]] = [(0, uri)] * len(_KINDS)
    for piece in pieces:
        for kind, (names, _) in enumerate(_KINDS):
            differs = np.zeros(len(piece.new["shard"]), np.bool_)
            for name in names:
                differs |= piece.old[name] != piece.new[name]
            if differs.any() and count[kind] == 0:
                at = int(np.argmax(differs))
                where = shards.uris[piece.new["tar"][at]] if names == _AUDIO else uri
                first[kind] = (piece.start + at, where)
            count[kind] += int(differs.sum())
    for number, (row, where), (_, what) in zip(count, first, _KINDS, strict=True):
        if number:
            return [(where, f"{number} {what}, the first at row {row}")]
    return []
