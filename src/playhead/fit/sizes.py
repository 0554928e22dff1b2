"""Sizes as a config takes them: multiples, never rising with length, equal neighbours one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.fit.bucket import Bound

__all__ = ["Merge", "merged", "multiples", "never_rising", "takes_all_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """A bucket that became part of its longer neighbour."""

    bound: Bound
    """The bucket that is gone."""
    into: Bound
    """The bucket that takes its samples."""
    batch_size: int
    """The size of both."""


def takes_all_of(large: Bound, small: Bound) -> bool:
    """Whether a bucket takes every sample that another takes.

    Examples
    --------
    >>> takes_all_of(10.0, 5.0), takes_all_of((10, 7), (5, 9))
    (True, False)
    """
    if isinstance(large, tuple):
        assert isinstance(small, tuple)
        return small[0] <= large[0] and small[1] <= large[1]
    assert not isinstance(small, tuple)
    return small <= large


def never_rising(bounds: Sequence[Bound], sizes: Sequence[int]) -> tuple[int, ...]:
    """Lower sizes until no bucket has a larger one than a bucket all of whose samples it takes.

    Parameters
    ----------
    bounds
        The buckets as a config has them, shortest first.
    sizes
        Batch size of each; 0 is a bucket that the config will not have, and binds no other.

    Returns
    -------
    tuple[int, ...]
        The largest such sizes, none above what it was.

    Examples
    --------
    >>> never_rising([1.0, 2.0, 3.0, 4.0], [8, 5, 0, 6])
    (8, 5, 0, 5)
    >>> never_rising([(1, 5), (1, 9), (2, 6), (2, 9)], [8, 4, 9, 5])
    (8, 4, 8, 4)
    """
    # What is lowered was above a size that binds all that are above it, so one look is enough.
    return tuple(
        min(
            [
                size,
                *(
                    sizes[small]
                    for small in range(large)
                    if sizes[small] and takes_all_of(bounds[large], bounds[small])
                ),
            ]
        )
        for large, size in enumerate(sizes)
    )


def multiples(sizes: Sequence[int], multiple_of: int) -> tuple[int, ...]:
    """Round sizes down to multiples.

    Examples
    --------
    >>> multiples([17, 8, 7], 8)
    (16, 8, 0)
    """
    return tuple(size // multiple_of * multiple_of for size in sizes)


def merged(
    bounds: Sequence[Bound], sizes: Sequence[int], most: int | None = None
) -> tuple[tuple[Bound, ...], tuple[int, ...], tuple[Merge, ...]]:
    """Make neighbours of equal size one bucket, the longer one, where bounds are one number.

    Parameters
    ----------
    bounds
        The buckets as a config has them, shortest first.
    sizes
        Batch size of each.
    most
        The largest size that was allowed: buckets that reach it are equal for no reason of memory,
        and stay apart.

    Returns
    -------
    bounds, sizes, merges
        What is left, and what became part of what. Pairs of lengths are left as they are.

    Examples
    --------
    >>> bounds, sizes, merges = merged([1.0, 2.0, 3.0], [8, 4, 4])
    >>> bounds, sizes
    ((1.0, 3.0), (8, 4))
    >>> merges
    (Merge(bound=2.0, into=3.0, batch_size=4),)
    """
    if any(isinstance(bound, tuple) for bound in bounds):
        return tuple(bounds), tuple(sizes), ()
    left: list[tuple[Bound, int]] = []
    merges: list[Merge] = []
    for bound, size in zip(bounds, sizes, strict=True):
        if left and left[-1][1] == size != most:
            merges.append(Merge(bound=left.pop()[0], into=bound, batch_size=size))
        left.append((bound, size))
    return tuple(bound for bound, _ in left), tuple(size for _, size in left), tuple(merges)
