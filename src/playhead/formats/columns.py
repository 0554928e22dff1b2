"""Seconds as integers: how declared lengths become columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from playhead.formats.base import BadRowError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["MAX_SECONDS", "microseconds", "rates", "sample_counts", "statuses_of"]

MAX_SECONDS = 1e8
"""A sample of more than three years is a mistake."""


def microseconds(seconds: ArrayLike) -> NDArray[np.int64]:
    """Round seconds to whole microseconds, half to even, of the decimal that was written.

    A length of n/16000 s has a half microsecond for every odd n, so the result is decided by
    comparing with the double that is nearest to the half, never by a rounded product.

    Raises
    ------
    BadRowError
        If a length is negative, not a number, or more than `MAX_SECONDS`.

    Examples
    --------
    >>> microseconds([0.0000625, 0.0001875, 5.1, 1e-7]).tolist()
    [62, 188, 5100000, 0]
    """
    values = np.asarray(seconds, np.float64)
    good = (values >= 0) & (values <= MAX_SECONDS)
    if not good.all():
        raise BadRowError(
            f"the duration is {float(values[np.argmin(good)])!r} seconds",
            fix=f"Write a number from 0 to {MAX_SECONDS:.0f}",
        )
    below = np.floor(values * 1e6)
    half = (2 * below + 1) / 2e6
    up = (values > half) | ((values == half) & (below % 2 == 1))
    return (below + up).astype(np.int64)


def sample_counts(seconds: ArrayLike, rate: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count samples as Lhotse does: half a sample is rounded up; 0 where the rate is 0 (unknown).

    Examples
    --------
    >>> sample_counts([1.0, 0.00003125, 2.0], np.array([16000, 16000, 0], np.int32)).tolist()
    [16000, 1, 0]
    """
    # Lhotse rounds the product to eight decimals first, which makes ties of what is nearly one.
    product = np.asarray(seconds, np.float64) * rate
    return np.floor(product + (0.5 + 5e-9)).astype(np.int64)


def rates(declared: Sequence[float | None]) -> NDArray[np.int32]:
    """Check sampling rates: whole numbers of Hz, 0 for None.

    Raises
    ------
    BadRowError
        If one is not a positive whole number.
    """
    values = np.array([value or 0 for value in declared], np.float64)
    good = (values >= 0) & (values < 2**31) & (values == np.floor(values))
    if not good.all():
        raise BadRowError(
            f"the sampling rate is {float(values[np.argmin(good)])!r} Hz",
            fix="Write a positive whole number",
        )
    return values.astype(np.int32)


def statuses_of(values: Sequence[Any]) -> list[str | None] | None:
    """What rows say under `validation_status`, as texts; None where none says anything.

    Examples
    --------
    >>> statuses_of(["pass", None, 3]), statuses_of([None, None])
    (['pass', None, '3'], None)
    """
    if all(value is None for value in values):
        return None
    return [None if value is None else str(value) for value in values]
