"""What the header of an audio file, or of one in memory, says of its length."""

from __future__ import annotations

import os
from io import BytesIO
from typing import NamedTuple

import soundfile

from playhead.formats.base import BadRowError

__all__ = ["Header", "read_header"]

_MAX_FRAMES = 1 << 48


class Header(NamedTuple):
    """What an audio file says of itself."""

    frames: int
    """Samples of each channel."""
    rate: int
    """Hz."""
    channels: int
    """Number of channels."""


def _is_missing(path: str) -> bool:
    try:
        return not os.path.exists(path)  # noqa: PTH110 - paths are strings
    except ValueError:
        return False


def read_header(source: str | bytes) -> Header:
    """Read the header of a file, by its path or its bytes.

    Raises
    ------
    BadRowError
        If it is not audio that libsndfile knows, or does not say its length.
    """
    name = source if isinstance(source, str) else "its audio"
    if isinstance(source, str) and _is_missing(source):
        raise BadRowError(
            f"the row has no duration, and its audio {name} does not exist",
            fix="Correct the path, or restore the file",
        )
    try:
        info = soundfile.info(source if isinstance(source, str) else BytesIO(source))
    except (soundfile.LibsndfileError, OSError, RuntimeError, TypeError, UnicodeError) as error:
        said = str(error).rpartition(": ")[2].rstrip(".") or type(error).__name__
        raise BadRowError(
            f"the row has no duration, and the header of {name} cannot be read: {said}",
            fix="Add the duration to the row, or correct its audio",
        ) from None
    if not 0 <= info.frames < _MAX_FRAMES or info.samplerate <= 0:
        raise BadRowError(
            f"the row has no duration, and neither does the header of {name}",
            fix="Add the duration to the row",
        )
    return Header(info.frames, info.samplerate, info.channels)
