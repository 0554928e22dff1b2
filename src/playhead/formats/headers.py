"""What the headers of audio files say of their lengths, wherever the files lie."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import soundfile

from playhead.errors import PlayheadError, SourceNotFoundError
from playhead.formats.base import BadRowError
from playhead.storage import access
from playhead.storage.base import ByteRange
from playhead.storage.limits import limits
from playhead.storage.range_file import RangeFile

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Encoded", "Header", "read_header", "read_headers"]

Encoded: TypeAlias = "str | bytes | ByteRange"
"""An audio file: its path or URI, its bytes, or where in another file they are."""

_MAX_FRAMES = 1 << 48
_THREADS: Final = 8
# Most headers are shorter; what else libsndfile wants of a file it reads then.
_LEAST_BYTES: Final = 64 << 10


class Header(NamedTuple):
    """What an audio file says of itself."""

    frames: int
    """Samples of each channel."""
    rate: int
    """Hz."""
    channels: int
    """Number of channels."""


def read_header(source: Encoded) -> Header:
    """Read the header of an audio file, and no more of a file on a store than that takes.

    Raises
    ------
    BadRowError
        If it is not audio that libsndfile knows, or does not say its length.
    StorageError
        If a store cannot give it.
    """
    name = source if isinstance(source, str) else "its audio"
    if isinstance(source, str) and _is_missing(source):
        raise _missing(name)
    file = _opened(source)
    try:
        info: Any = soundfile.info(file)
    except (soundfile.LibsndfileError, OSError, RuntimeError, TypeError, UnicodeError) as error:
        _raise_failure(file)
        said = str(error).rpartition(": ")[2].rstrip(".") or type(error).__name__
        raise BadRowError(
            f"the row has no duration, and the header of {name} cannot be read: {said}",
            fix="Add the duration to the row, or correct its audio",
        ) from None
    _raise_failure(file)
    if not 0 <= info.frames < _MAX_FRAMES or info.samplerate <= 0:
        raise BadRowError(
            f"the row has no duration, and neither does the header of {name}",
            fix="Add the duration to the row",
        )
    return Header(info.frames, info.samplerate, info.channels)


def read_headers(sources: Sequence[Encoded]) -> list[Header | BadRowError]:
    """Read many headers, several at a time, of files on stores many.

    Returns
    -------
    list[Header | BadRowError]
        What each says, or why nobody knows.

    Raises
    ------
    StorageError
        If a store cannot give one.
    """
    if not sources:
        return []
    are_remote = any(access.is_remote(one) for one in map(_uri, sources))
    with ThreadPoolExecutor(limits().concurrency if are_remote else _THREADS) as pool:
        return list(pool.map(_looked, sources))


def _looked(source: Encoded) -> Header | BadRowError:
    try:
        return read_header(source)
    except BadRowError as error:
        return error


def _uri(source: Encoded) -> str:
    if isinstance(source, ByteRange):
        return source.uri
    return source if isinstance(source, str) else ""


def _is_missing(path: str) -> bool:
    try:
        return not access.is_remote(path) and not os.path.exists(path)  # noqa: PTH110 - paths are strings
    except ValueError:
        return False


def _missing(name: str) -> BadRowError:
    return BadRowError(
        f"the row has no duration, and its audio {name} does not exist",
        fix="Correct the path, or restore the file",
    )


def _opened(source: Encoded) -> Any:
    if isinstance(source, bytes):
        return BytesIO(source)
    if isinstance(source, ByteRange):
        return _Watched(*source, least_bytes=_LEAST_BYTES)
    if not access.is_remote(source):
        return source
    try:
        return _Watched(source, least_bytes=_LEAST_BYTES)
    except SourceNotFoundError:
        raise _missing(source) from None


class _Watched(RangeFile):
    """A file that libsndfile asks for bytes: it would print an error, and go on."""

    failure: PlayheadError | OSError | None = None

    def read(self, size: int = -1) -> bytes:
        if self.failure is None:
            try:
                return super().read(size)
            except (PlayheadError, OSError) as error:
                self.failure = error
        return b""


def _raise_failure(file: object) -> None:
    if isinstance(file, _Watched) and file.failure is not None:
        raise file.failure
