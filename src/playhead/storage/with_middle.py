"""Files that can only be read from their start, as ones that can be read from anywhere."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playhead.storage import access
from playhead.storage.compression import has_middle, open_whole

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["gives_ranges", "with_middle"]

_PIECE = 4 << 20


def gives_ranges(uri: str) -> bool:
    """Whether bytes can be read from the middle of a file or object where it lies.

    Raises
    ------
    SourceNotFoundError, StorageError
        If a server has to be asked, and does not have it or fails.

    Examples
    --------
    >>> gives_ranges("/data/a.tar"), gives_ranges("/data/a.tar.gz")
    (True, False)
    """
    return has_middle(uri) and access.has_ranges(uri)


@contextmanager
def with_middle(uri: str) -> Generator[str]:
    """Give a URI whose bytes can be read from anywhere, as long as the block lasts.

    Parameters
    ----------
    uri
        A file or object; a copy is made of one that is compressed, decompressed, of a `pipe:`, and
        of one whose server gives whole objects only, among the temporary files of the system.

    Raises
    ------
    SourceNotFoundError, DataError, StorageError, OSError
        As `open_whole`, and if the copy cannot be written.

    Examples
    --------
    >>> with with_middle("/data/a.tar") as path:
    ...     print(path)
    /data/a.tar
    """
    if gives_ranges(uri):
        yield uri
        return
    with tempfile.NamedTemporaryFile(prefix="playhead-") as copy:
        with open_whole(uri) as file:
            while piece := file.read(_PIECE):
                copy.write(piece)
        copy.flush()
        yield copy.name
