"""How a damaged pack is said, and its table of files, which is read when it is first asked for."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from playhead.errors import IndexFileError
from playhead.index.pack_checks import check_files
from playhead.index.pack_table import (
    SHARDS_CHECK_KEY,
    SHARDS_KEY,
    ShardTable,
    decode_shards,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from playhead.index.pack_table import LeafEntry

__all__ = ["REBUILD", "FileTable", "PackVersionError", "named_damage"]

REBUILD: Final = "Build it again: `playhead index --force`, or `playhead pack` if a config names it"
"""What to do about a pack that cannot be used."""


class PackVersionError(IndexFileError):
    """A pack of another version."""


@contextmanager
def named_damage(path: str) -> Generator[None]:
    """Say what reading a pack fails with as an error of ours.

    Raises
    ------
    IndexFileError
        In place of what says that something cannot be read as it is.
    """
    try:
        yield
    except IndexFileError:
        raise
    except (
        *(pa.ArrowException, OSError, KeyError, ValueError, IndexError, StopIteration),
        msgspec.MsgspecError,
    ) as error:
        raise IndexFileError(f"the pack is damaged: {error}", where=path, fix=REBUILD) from None


class FileTable:
    """The files of a pack.

    Parameters
    ----------
    path
        The pack.
    metadata
        What the pack says of itself.
    leaves
        Whose files they are.

    Raises
    ------
    KeyError
        If there is none.
    """

    def __init__(
        self, path: str, metadata: Mapping[bytes, bytes], leaves: Sequence[LeafEntry]
    ) -> None:
        self._path = path
        self._data = metadata[SHARDS_KEY]
        self._checksum = metadata.get(SHARDS_CHECK_KEY)
        self._leaves = leaves

    @cached_property
    def shards(self) -> ShardTable:
        """The files of all leaves.

        Raises
        ------
        IndexFileError
            If the table is damaged.
        """
        with named_damage(self._path):
            shards = decode_shards(self._data, self._checksum)
            check_files(self._leaves, len(shards))
        return shards
