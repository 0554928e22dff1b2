"""The options of transforms, each of the form that it must have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["flag_of", "name_of", "names_of", "number_of", "range_of"]


def flag_of(options: Mapping[str, Any], key: str) -> bool:
    """Return a switch.

    Raises
    ------
    ConfigError
        If it is neither true nor false.
    """
    value = options[key]
    if not isinstance(value, bool):
        raise _error(key, value, "Write true or false")
    return value


def number_of(
    options: Mapping[str, Any], key: str, *, least: float = -math.inf, whole: bool = False
) -> float:
    """Return a number that is not less than `least`, and is whole if that is asked for.

    Raises
    ------
    ConfigError
        If it is none.

    Examples
    --------
    >>> number_of({"max_cer": 0.03}, "max_cer", least=0)
    0.03
    """
    value = options[key]
    if not _is_number(value) or value < least or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        bound = "" if least == -math.inf else f", {least:g} or more"
        raise _error(key, value, f"Write {kind}{bound}")
    return value


def range_of(options: Mapping[str, Any], key: str) -> tuple[float, float]:
    """Return the least and the most of something that is not negative.

    Raises
    ------
    ConfigError
        If they are not two numbers in this order.
    """
    value = options[key]
    if (
        not isinstance(value, (list, tuple))
        or len(value) != 2
        or not all(_is_number(end) for end in value)
        or not 0 <= value[0] <= value[1]
    ):
        raise _error(key, value, "Write the least and the most, such as [0.5, 6.0]")
    return float(value[0]), float(value[1])


def name_of(options: Mapping[str, Any], key: str) -> str | None:
    """Return a name, or None.

    Raises
    ------
    ConfigError
        If it is something else.
    """
    value = options[key]
    if value is not None and not isinstance(value, str):
        raise _error(key, value, "Write a name")
    return value


def names_of(options: Mapping[str, Any], key: str) -> frozenset[str]:
    """Return a set of names; one may stand alone.

    Raises
    ------
    ConfigError
        If they are no names.
    """
    value = options[key]
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise _error(key, value, "Write a list of names")
    return frozenset(names)


def _is_number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value)


def _error(key: str, value: object, fix: str) -> ConfigError:
    return ConfigError(f"`{key}` is {value!r}", fix=fix)
