"""From a value as YAML, an environment variable or a caller gives it to an option's type."""

from __future__ import annotations

from contextlib import suppress
from math import isnan
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MISSING", "convert"]

MISSING = "???"
"""What configs write where somebody else fills a value in: the same as no value."""

_TRUTHS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def convert(value: Any, hint: Any) -> Any:
    """Convert a value to a type.

    Numbers and truth values may be texts, as they are in environment variables; whole numbers may
    have a fraction of 0; a tuple may be a list.

    Parameters
    ----------
    value
        What a config says.
    hint
        The type: `bool`, `int`, `float`, `str`, `None`, a `Literal`, a tuple of any length of one
        of them, a union of them, or `Any`.

    Raises
    ------
    ValueError
        With what the value should have been.

    Examples
    --------
    >>> convert("1e3", float), convert(2.0, int | None), convert([1, "2"], tuple[int, ...])
    (1000.0, 2, (1, 2))
    """
    if hint is Any:
        return value
    origin = get_origin(hint)
    if origin is Union or origin is UnionType:
        converted = _one_of(value, get_args(hint))
    elif origin is Literal:
        converted = value if isinstance(value, str) and value in get_args(hint) else _FAILED
    elif origin is tuple:
        converted = _items(value, get_args(hint)[0])
    else:
        converted = _SCALARS[hint](value)
    if converted is _FAILED:
        raise ValueError(_name(hint))
    return converted


def _one_of(value: Any, hints: tuple[Any, ...]) -> Any:
    if value is None and NoneType in hints:
        return None
    for hint in (hint for hint in hints if hint is not NoneType):
        with suppress(ValueError):
            return convert(value, hint)
    return _FAILED


def _items(value: Any, hint: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return _FAILED
    return tuple(convert(item, hint) for item in cast("list[Any]", value))


def _truth(value: Any) -> Any:
    return value if isinstance(value, bool) else _TRUTHS.get(str(value).lower(), _FAILED)


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else _FAILED


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        with suppress(ValueError):
            return int(value)
    number = _float(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number % 1 != 0:
        return _FAILED
    return int(number)


def _float(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return _FAILED
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return _FAILED
    return _FAILED if isnan(number) else number


_FAILED = object()
_SCALARS: dict[Any, Callable[[Any], Any]] = {
    bool: _truth,
    int: _whole,
    float: _float,
    str: _text,
}


def _name(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if origin is tuple:
        return f"a list, each item {_name(get_args(hint)[0])}"
    if origin is Union or origin is UnionType:
        return " or ".join(_name(part) for part in get_args(hint) if part is not NoneType)
    return _NAMES[hint]
