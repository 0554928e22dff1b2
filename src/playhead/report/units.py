"""Lengths as people read them."""

from __future__ import annotations

__all__ = ["US_PER_HOUR", "in_unit"]

US_PER_HOUR = 3_600_000_000
"""Microseconds of an hour."""


def in_unit(length: float, *, in_tokens: bool) -> float:
    """Return a length in seconds, or in tokens.

    Parameters
    ----------
    length
        In µs, or in tokens.
    in_tokens
        Which of the two.

    Examples
    --------
    >>> in_unit(1_500_000, in_tokens=False), in_unit(12, in_tokens=True)
    (1.5, 12.0)
    """
    return float(length) if in_tokens else length / 1_000_000
