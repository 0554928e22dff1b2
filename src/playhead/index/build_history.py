"""What a rebuild found to be different, file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from playhead.index.pack_table import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from playhead.index.pack import LeafPack
    from playhead.index.pack_table import ShardTable

__all__ = ["MAX_CHANGES", "MAX_FILES", "history"]

MAX_FILES: Final = 20
"""Files that one change names."""

MAX_CHANGES: Final = 16
"""Changes that are remembered."""

_AUDIO = ("audio_offset", "audio_size")
_KINDS = (
    (("duration_us", "num_samples"), "durations differ"),
    (("row_offset", "row_size"), "rows lie elsewhere in the file"),
    (_AUDIO, "members lie elsewhere in the archive"),
)


def history(
    old: LeafPack, columns: Mapping[str, NDArray], shards: ShardTable, fingerprint: str
) -> list[Change]:
    """Return a leaf's changes with the one from `old` to what was read now, if there is one.

    Parameters
    ----------
    old
        The leaf as the pack had it.
    columns
        Its rows now.
    shards
        Its files now.
    fingerprint
        Of all its rows now.
    """
    before = old.entry.history
    if old.fingerprint() == fingerprint:
        return before
    files = _differences(old, columns, shards)
    change = Change(
        fingerprint=old.fingerprint(),
        num_rows=old.num_rows,
        files=files[:MAX_FILES],
        more=max(len(files) - MAX_FILES, 0),
    )
    return [*before, change][-MAX_CHANGES:]


def _differences(
    old: LeafPack, columns: Mapping[str, NDArray], shards: ShardTable
) -> list[tuple[str, str]]:
    then, now = _stretches(old.shards), _stretches(shards)
    found = [(uri, "is no longer part of the leaf") for uri in then if uri not in now]
    for uri, rows in now.items():
        if uri not in then:
            found.append((uri, f"is new, {rows.stop - rows.start} rows"))
        elif then[uri].stop - then[uri].start != rows.stop - rows.start:
            old_rows = then[uri].stop - then[uri].start
            found.append((uri, f"{old_rows} rows became {rows.stop - rows.start}"))
        else:
            before = {name: column[then[uri]] for name, column in old.columns().items()}
            after = {name: column[rows] for name, column in columns.items()}
            found += _difference(uri, before, after, shards)
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


def _difference(
    uri: str, old: Mapping[str, NDArray], new: Mapping[str, NDArray], shards: ShardTable
) -> list[tuple[str, str]]:
    """Say how as many rows of one manifest differ."""
    for names, what in _KINDS:
        differs = np.zeros(len(new["shard"]), np.bool_)
        for name in names:
            differs |= old[name] != new[name]
        if differs.any():
            first = int(np.argmax(differs))
            if names == _AUDIO:
                uri = shards.uris[new["tar"][first]]
            return [(uri, f"{int(differs.sum())} {what}, the first at row {first}")]
    return []
