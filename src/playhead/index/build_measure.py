"""Lengths of audio files from their headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.formats import BadRowError
from playhead.formats.columns import microseconds
from playhead.formats.headers import Header, read_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.formats import Unmeasured

__all__ = ["Lengths", "measure"]


class Lengths(NamedTuple):
    """What headers say; arrays of shape (M,)."""

    duration_us: NDArray[np.int64]
    num_samples: NDArray[np.int64]
    rate: NDArray[np.int32]
    channels: NDArray[np.int16]


def measure(rows: Sequence[Unmeasured]) -> Lengths:
    """Read the headers of the files of rows without a duration, several at a time.

    A sample reaches from where it starts to the end of its file.

    Raises
    ------
    BadRowError
        If a file cannot be read, does not say its length, or ends before the sample starts.
    """
    headers: list[Header] = []
    for found in read_headers([row.path for row in rows]):
        if isinstance(found, BadRowError):
            raise found
        headers.append(found)
    rate = np.array([header.rate for header in headers], np.int64)
    start = np.floor(np.array([row.start for row in rows]) * rate + 0.5).astype(np.int64)
    samples = np.array([header.frames for header in headers], np.int64) - start
    if (samples < 0).any():
        at = int(np.argmax(samples < 0))
        raise BadRowError(
            f"the offset {rows[at].start} s is behind the end of {rows[at].path}",
            fix="Correct the offset",
        )
    return Lengths(
        microseconds(samples / rate),
        samples,
        rate.astype(np.int32),
        np.array([header.channels for header in headers], np.int16),
    )
