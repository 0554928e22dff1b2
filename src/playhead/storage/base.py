"""What every place that holds data can do: look, read, stream, list, write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from playhead.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ByteRange", "NoRangesError", "Stat", "Store"]


class Stat(NamedTuple):
    """What tells that an object changed."""

    size: int
    """Bytes."""
    version: int
    """Changes when the object does: nanoseconds since 1970 of the last change for a file, 63 bits
    of a hash of the ETag (else of the time of the last change) for an object; 0 is unknown."""


class ByteRange(NamedTuple):
    """Some bytes of an object."""

    uri: str
    """The object."""
    offset: int
    """First byte."""
    size: int
    """Bytes."""


class NoRangesError(StorageError):
    """A server that answers with the whole object when a part of it is asked for."""


class Store(Protocol):
    """Where the objects of one scheme lie.

    Every call has a deadline and a limit of tries, checks how much was answered, and raises a
    `SourceNotFoundError` for what is not there, a `StorageError` for what went on failing and a
    `DataError` for an object that ends before a range does. Used from any thread, and from a
    process that was forked.
    """

    def stats(self, uris: Sequence[str]) -> list[Stat]:
        """Look at objects, side by side.

        Raises
        ------
        SourceNotFoundError
            If one does not exist.
        StorageError
            If one cannot be looked at.
        """
        ...

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Read ranges of any objects, all at once with bounded concurrency, near ones together.

        Returns
        -------
        list[bytes]
            One for each range, of exactly its size.

        Raises
        ------
        SourceNotFoundError, DataError, StorageError
            As above.
        NoRangesError
            If the server gives whole objects only.
        """
        ...

    def read_files(self, uris: Sequence[str]) -> Sequence[bytes | None]:
        """Read whole objects, all at once with bounded concurrency.

        Returns
        -------
        Sequence[bytes | None]
            None for an object that does not exist, as the server says: what failed is an error.

        Raises
        ------
        StorageError
            As above.
        """
        ...

    def has_ranges(self, uri: str) -> bool:
        """Whether `read` can give parts of an object without reading all of it.

        Raises
        ------
        SourceNotFoundError, StorageError
            As above.
        """
        ...

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        """Give an object's bytes from `start` to its end, in blocks; the last may be shorter.

        Raises
        ------
        SourceNotFoundError, StorageError
            As above; an answer that is cut short is taken up where it ended, or raised.
        """
        ...

    def list(self, folder: str) -> list[str]:
        """Name the objects under a folder, at any depth, sorted; none if there are none.

        Raises
        ------
        StorageError
            If it cannot be listed.
        """
        ...

    def write(self, uri: str, data: bytes) -> None:
        """Write an object, whole or not at all.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        ...
