"""Numbers as configs have them: a few decimals, never below what they stand for."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

__all__ = ["in_decimals", "rounded_up"]


def rounded_up(value: float, decimals: int) -> float:
    """Return the least number of so many decimals that is not below a value.

    Examples
    --------
    >>> rounded_up(1.230001, 2), rounded_up(1.25, 2)
    (1.24, 1.25)
    """
    return float(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING))


def in_decimals(units: int, decimals: int) -> float:
    """Return a whole number of units, of which 10**decimals make one, as the nearest float.

    Examples
    --------
    >>> in_decimals(318_557, 5)
    3.18557
    """
    return float(Decimal(units).scaleb(-decimals))
