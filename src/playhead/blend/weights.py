"""Shares of a blend: weights after temperature, multiplied down the tree, rounded once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["UNIT", "shares", "temperatures", "whole_weight"]

UNIT = 1 << 32
"""The whole blend in units of a leaf's weight."""


def shares(weights: Sequence[Any], temperature: float, where: str) -> list[float]:
    """Shares of siblings: w**t over the sum of all, or the same for all where none has a weight.

    Parameters
    ----------
    weights
        Declared weights; None where an entry has none.
    temperature
        Exponent; 1 keeps the weights, 0 makes those above 0 equal.
    where
        Place of the siblings, for messages.

    Raises
    ------
    ConfigError
        When only some have a weight, one is no number or below 0, or all are 0.

    Examples
    --------
    >>> shares([3, 1], 1.0, "here")
    [0.75, 0.25]
    """
    if all(weight is None for weight in weights):
        return [1 / len(weights)] * len(weights)
    if any(weight is None for weight in weights):
        without = sum(weight is None for weight in weights)
        raise ConfigError(
            f"{without} of {len(weights)} entries have no weight",
            where=where,
            fix="Give all entries of a level a weight, or none",
        )
    numbers = [_weight(weight, where) for weight in weights]
    if temperature != 1:
        numbers = [number**temperature if number else 0.0 for number in numbers]
    total = math.fsum(numbers)
    if not total:
        raise ConfigError("all weights are 0", where=where, fix="Give one entry a weight above 0")
    return [number / total for number in numbers]


def whole_weight(share: float) -> int:
    """A share of the blend in units of 2**-32; a share above 0 is at least one unit."""
    return max(1, round(share * UNIT)) if share else 0


def temperatures(value: Any, depth: int, where: str, notes: list[str]) -> list[float]:
    """The exponent of every level of a tree.

    Parameters
    ----------
    value
        None, a number for all levels, or one number per level.
    depth
        How deep `input_cfg` is nested.
    where
        Place of the option, for messages.
    notes
        Gets a note where one number stands for several levels.

    Raises
    ------
    ConfigError
        When a list does not fit the depth, or something is no number.
    """
    if value is None:
        return [1.0] * depth
    if isinstance(value, (list, tuple)):
        if len(value) != depth:
            raise ConfigError(
                f"reweight_temperature has {len(value)} numbers, which does not match the"
                f" {depth} levels of input_cfg",
                where=where,
                fix="Give one number per level, or a single one",
            )
        return [_temperature(item, where) for item in value]
    if depth > 1:
        notes.append(f"reweight_temperature {value} is used at all {depth} levels of input_cfg")
    return [_temperature(value, where)] * depth


def _weight(value: Any, where: str) -> float:
    number = _number(value)
    if number is None or number < 0:
        raise ConfigError(
            f"the weight {value!r} is not a number of at least 0",
            where=where,
            fix="Give a finite number",
        )
    return number


def _temperature(value: Any, where: str) -> float:
    number = _number(value)
    if number is None or number < 0:
        raise ConfigError(
            f"reweight_temperature {value!r} is not a number of at least 0",
            where=where,
            fix="1 keeps the weights, 0 makes them equal",
        )
    return number


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
