"""Shares of a blend: weights after temperature, multiplied down the tree, rounded once."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from playhead.config.values import convert
from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.config import Spot

__all__ = ["UNIT", "shares", "temperatures", "whole_weight"]

UNIT = 1 << 32
"""The whole blend in units of a leaf's weight."""
# Powers differ in the last bit between C libraries; decimals of a fixed precision do not.
_DECIMALS = Context(prec=20)


def shares(weights: Sequence[Any], temperature: float, where: Spot) -> list[Fraction]:
    """Shares of siblings: w**t over the sum of all, or the same for all where none has a weight.

    Parameters
    ----------
    weights
        Declared weights; None where an entry has none.
    temperature
        Exponent t; 1 keeps the weights, 0 makes those above 0 equal.
    where
        The list of the siblings, for messages.

    Raises
    ------
    ConfigError
        When only some have a weight, one is no number or below 0, or all are 0.

    Examples
    --------
    >>> from playhead.config import Spot
    >>> shares([3, 1], 1.0, Spot("blend.yaml"))
    [Fraction(3, 4), Fraction(1, 4)]
    """
    missing = [place for place, weight in enumerate(weights) if weight is None]
    if len(missing) == len(weights):
        return [Fraction(1, len(weights))] * len(weights)
    if missing:
        raise ConfigError(
            f"{len(missing)} of {len(weights)} siblings have no weight",
            where=str(where.at(missing[0])),
            fix="Give all entries of a level a weight, or none",
        )
    numbers = [_weight(weight, where.at(place)) for place, weight in enumerate(weights)]
    if temperature != 1:
        exponent = Decimal(repr(temperature))
        numbers = [number and _DECIMALS.power(number, exponent) for number in numbers]
    parts = _whole(numbers)
    total = sum(parts)
    if not total:
        raise ConfigError(
            "all weights are 0", where=str(where), fix="Give an entry a weight above 0"
        )
    return [Fraction(part, total) for part in parts]


def whole_weight(share: Fraction) -> int:
    """A share of the blend in units of 2**-32; a share above 0 is at least one unit.

    Examples
    --------
    >>> whole_weight(Fraction(1, 4)), whole_weight(Fraction(0))
    (1073741824, 0)
    """
    return max(1, round(share * UNIT)) if share else 0


def temperatures(value: float | tuple[float, ...] | None, depth: int, where: Spot) -> list[float]:
    """The exponent of every level of a tree.

    Parameters
    ----------
    value
        None, a number for all levels, or one number per level.
    depth
        How deep `input_cfg` is nested.
    where
        The option, for messages.

    Raises
    ------
    ConfigError
        When the numbers do not fit the depth.
    """
    if isinstance(value, tuple):
        if len(value) != depth:
            levels = "1 level" if depth == 1 else f"{depth} levels"
            raise ConfigError(
                f"`reweight_temperature` has {len(value)} numbers, and input_cfg has {levels}",
                where=str(where),
                fix="Give one number per level, or a single one for all",
            )
        return list(value)
    return [1.0 if value is None else value] * depth


def _weight(value: Any, where: Spot) -> Decimal:
    try:
        number = convert(value, float)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigError(
            f"the weight {value!r} is not a number of at least 0",
            where=str(where),
            fix="Give a finite number, 0 to leave the data out",
        )
    # As it is written, not as the nearest binary fraction: 0.1 and 0.2 are exactly 1 to 2.
    return Decimal(repr(number))


def _whole(numbers: Sequence[Decimal]) -> list[int]:
    """Whole numbers in the same proportions."""
    digits = -min(0, *(int(number.as_tuple().exponent) for number in numbers))
    return [int(number.scaleb(digits, _DECIMALS)) for number in numbers]
