"""The bytes of an archive as its headers are looked for: of a file, an object, or a stream."""

from __future__ import annotations

import os
import sys
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from playhead.errors import SourceNotFoundError
from playhead.index.known_headers import KnownHeaders
from playhead.index.object_blocks import LEAST_BLOCK, ObjectBlocks
from playhead.storage import access
from playhead.storage.compression import open_whole
from playhead.storage.with_middle import gives_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import numpy as np
    from numpy.typing import NDArray

    from playhead.storage.compression import Readable

__all__ = ["TarBytes", "open_tar"]

_PIECE: Final = 1 << 20
_AHEAD_BYTES: Final = 8 << 20


class TarBytes(Protocol):
    """Bytes that are read from front to back, with gaps."""

    @property
    def pread(self) -> Callable[[int, int], bytes]:
        """Read so many bytes from an offset; fewer only at the end."""
        ...

    @property
    def size(self) -> int:
        """How many there are; of a stream a number above all others until its end was seen."""
        ...

    def look_ahead(self, offset: int) -> None:
        """Hear that what follows an offset will be wanted, little by little."""
        ...


@contextmanager
def open_tar(
    uri: str, least_block: int = LEAST_BLOCK, known: NDArray[np.int64] | None = None
) -> Generator[TarBytes]:
    """Open an archive: offsets are those of the tar, also where it is compressed.

    Parameters
    ----------
    uri
        The archive.
    least_block
        Bytes that a request of an object asks for at least.
    known
        Where its members begin, if an index says it, shape (N,).

    Raises
    ------
    SourceNotFoundError
        If there is none.
    StorageError, OSError
        If it cannot be read.
    """
    if not gives_ranges(uri):
        with open_whole(uri) as file:
            yield _Stream(file)
    elif access.is_remote(uri) and known is not None:
        yield KnownHeaders(uri, access.size(uri), known)
    elif access.is_remote(uri):
        with closing(ObjectBlocks(uri, access.size(uri), least_block)) as blocks:
            yield blocks
    else:
        try:
            file = Path(uri).open("rb", buffering=0)  # noqa: SIM115  (closed below)
        except FileNotFoundError as error:
            raise SourceNotFoundError("there is no such archive", where=uri) from error
        with file:
            yield _File(file.fileno())


class _File:
    """A local file: short reads are cheap, and the kernel can be asked to fetch ahead."""

    def __init__(self, descriptor: int) -> None:
        # Nothing stands between a header and the system's call: there are millions of them.
        self.pread = partial(os.pread, descriptor)
        self.size = os.fstat(descriptor).st_size
        self._descriptor = descriptor

    def look_ahead(self, offset: int) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, offset, _AHEAD_BYTES, os.POSIX_FADV_WILLNEED)


class _Stream:
    """What only comes from its start; offsets must not go back."""

    def __init__(self, file: Readable) -> None:
        self.size = sys.maxsize
        self._file = file
        self._start = 0
        self._data = b""

    def pread(self, size: int, offset: int) -> bytes:
        while self._start + len(self._data) < offset + size and self.size == sys.maxsize:
            kept = self._data[max(0, offset - self._start) :]
            self._start += len(self._data) - len(kept)
            piece = self._file.read(_PIECE)
            self._data = kept + piece
            if not piece:
                self.size = self._start + len(kept)
        at = offset - self._start
        return self._data[at : at + size]

    def look_ahead(self, offset: int) -> None:
        """Nothing comes sooner than it comes."""
