"""Files that can only be read from their start, as ones that can be read from anywhere."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playhead.storage.compression import has_middle, open_whole

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["with_middle"]

_PIECE = 4 << 20


@contextmanager
def with_middle(uri: str) -> Generator[str]:
    """Give a URI whose bytes can be read from anywhere, as long as the block lasts.

    Parameters
    ----------
    uri
        A file or object; a copy is made of one that is compressed or a `pipe:`, decompressed, among
        the temporary files of the system.

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
    if has_middle(uri):
        yield uri
        return
    with tempfile.NamedTemporaryFile(prefix="playhead-") as copy:
        with open_whole(uri) as file:
            while piece := file.read(_PIECE):
                copy.write(piece)
        copy.flush()
        yield copy.name
