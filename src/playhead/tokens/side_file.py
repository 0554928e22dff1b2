"""Columns beside a pack, in an Arrow file of their own whose every byte is checked."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from playhead.errors import IndexFileError
from playhead.storage.atomic import atomic_write, remove_stale
from playhead.storage.seal import OPEN_SEAL, SEAL_KEY, sealed, why_broken

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["SIDE_VERSION", "SideColumns", "read_side", "write_side"]

SIDE_VERSION: Final = "1"
"""Version of the files' layout."""

_PREFIX = "playhead.side."
_REBUILD = "Delete the file: it is made again"


class SideColumns(NamedTuple):
    """What a side file holds."""

    columns: dict[str, NDArray[Any]]
    """Arrays of shape (n,), read-only."""
    num_rows: int
    """n, the rows of the leaf that it covers, from the first on."""
    fingerprint: str
    """What `LeafPack.fingerprint(n)` was for them."""
    digest: str
    """What the columns were made with."""


def write_side(path: Path, content: SideColumns) -> None:
    """Write a side file, whole or not at all.

    Parameters
    ----------
    path
        The file, replaced in one step.
    content
        What it is to hold.
    """
    metadata = {
        "version": SIDE_VERSION,
        "digest": content.digest,
        "rows": str(content.num_rows),
        "fingerprint": content.fingerprint,
    }
    batch = pa.record_batch(
        [pa.array(column) for column in content.columns.values()], names=list(content.columns)
    ).replace_schema_metadata(
        {**{_PREFIX + key: value for key, value in metadata.items()}, SEAL_KEY: OPEN_SEAL}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = memoryview(sink.getvalue())
    remove_stale(path.parent)
    with atomic_write(path) as file:
        file.writelines(sealed(data))


def read_side(path: Path) -> SideColumns | None:
    """Map a side file; None if it is not there, or is of another version.

    Raises
    ------
    IndexFileError
        If it is damaged: a single bit that is not as it was written is noticed.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None
    why = why_broken(memoryview(mapped))
    if why is not None:
        raise _damaged(path, why)
    try:
        return _parsed(mapped)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise _damaged(path, error) from None


def _parsed(mapped: mmap.mmap) -> SideColumns | None:
    reader = pa.ipc.open_file(pa.py_buffer(mapped))
    metadata: Mapping[bytes, bytes] = reader.schema.metadata
    said = {key.decode(): value.decode() for key, value in metadata.items()}
    if said[_PREFIX + "version"] != SIDE_VERSION:
        return None
    batch = reader.get_batch(0)
    columns = {
        name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names
    }
    for column in columns.values():
        column.flags.writeable = False
    return SideColumns(
        columns=columns,
        num_rows=int(said[_PREFIX + "rows"]),
        fingerprint=said[_PREFIX + "fingerprint"],
        digest=said[_PREFIX + "digest"],
    )


def _damaged(path: Path, why: object) -> IndexFileError:
    return IndexFileError(f"the file is damaged: {why}", where=str(path), fix=_REBUILD)
