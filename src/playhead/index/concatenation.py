"""Which rows that follow each other are joined into one sample."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from playhead.blend.leaf import Concatenation

__all__ = ["JoinedContent", "joined_content", "joined_durations", "joined_rows"]


def joined_rows(duration_us: NDArray[np.int64], how: Concatenation) -> NDArray[np.int64]:
    """Find where each sample begins among the rows.

    A sample takes the next row as long as it stays within `max_duration`, gaps included; a row that
    is longer by itself is a sample of its own. What follows a row never changes what is before it,
    so the samples of a leaf that grows stay the same, but for the last.

    Parameters
    ----------
    duration_us
        Lengths of the rows (µs), shape (N,).
    how
        The longest sample and the gap.

    Returns
    -------
    NDArray[np.int64]
        Shape (S + 1,): the first row of each sample, then N.

    Examples
    --------
    >>> from playhead.blend.leaf import Concatenation
    >>> seconds = np.array([500, 1500, 800, 700, 2000]) * 1000
    >>> joined_rows(seconds, Concatenation(max_duration=2.5)).tolist()
    [0, 2, 4, 5]
    """
    gap = _microseconds(how.gap)
    rows = len(duration_us)
    # Row i ends at end[i + 1] of a line on which every row is followed by its gap.
    end = np.zeros(rows + 1, np.int64)
    np.cumsum(duration_us + gap, out=end[1:])
    limit = end[:-1] + (_microseconds(how.max_duration) + gap)
    following = np.searchsorted(end, limit, side="right") - 1
    after: list[int] = np.maximum(following, np.arange(1, rows + 1)).tolist()
    starts: list[int] = []
    row = 0
    while row < rows:
        starts.append(row)
        row = after[row]
    return np.array([*starts, rows], np.int64)


def joined_durations(
    duration_us: NDArray[np.int64], starts: NDArray[np.int64], how: Concatenation
) -> NDArray[np.int64]:
    """Lengths of the samples (µs), gaps included, shape (S,).

    Parameters
    ----------
    duration_us
        Lengths of the rows (µs), shape (N,).
    starts
        What `joined_rows` found.
    how
        The longest sample and the gap.
    """
    if len(starts) < 2:
        return np.zeros(0, np.int64)
    gaps = (np.diff(starts) - 1) * _microseconds(how.gap)
    return np.add.reduceat(duration_us, starts[:-1]) + gaps


class JoinedContent(NamedTuple):
    """What tells the samples of joined rows from others."""

    fingerprint: Callable[[int], str]
    """Digest of the first n samples, 16 hex digits."""
    explain_change: Callable[[str, int], str]
    """Says what changed since n samples had a digest."""


def joined_content(
    of_rows: Callable[[int], str],
    explain_rows: Callable[[str, int], str],
    starts: NDArray[np.int64],
    how: Concatenation,
) -> JoinedContent:
    """Make digests of samples out of those of their rows.

    Samples are the same where their rows are, where they begin and end at the same rows, and where
    the same gap is between them. As a sample at the end takes what fits of rows that are appended,
    the last one may be another one then.

    Parameters
    ----------
    of_rows
        Digest of the first n rows, 16 hex digits.
    explain_rows
        Says what changed since n rows had a digest.
    starts
        What `joined_rows` found.
    how
        The longest sample and the gap.
    """

    @lru_cache(maxsize=16)
    def borders(samples: int) -> int:
        digest = blake2b(starts[: samples + 1].astype("<i8").tobytes(), digest_size=8)
        digest.update(_microseconds(how.gap).to_bytes(8, "little"))
        return int.from_bytes(digest.digest(), "little")

    def fingerprint(samples: int) -> str:
        return f"{int(of_rows(int(starts[samples])), 16) ^ borders(samples):016x}"

    def explain_change(before: str, samples: int) -> str:
        if samples >= len(starts):
            return f"there were {samples} samples or more, and there are {len(starts) - 1}"
        # Only where the borders are the same does this give the digest of rows back.
        rows = f"{int(before, 16) ^ borders(samples):016x}"
        return explain_rows(rows, int(starts[samples]))

    return JoinedContent(fingerprint, explain_change)


def _microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)
