"""Which class reads which input type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from playhead.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.formats.base import Format

__all__ = ["format_names", "get_format", "register"]

_FORMATS: dict[str, Format] = {}

FormatType = TypeVar("FormatType", bound="Format")


def register(*names: str) -> Callable[[type[FormatType]], type[FormatType]]:
    """Make a class the reader of the input types `names`."""

    def add(cls: type[FormatType]) -> type[FormatType]:
        reader = cls()
        for name in names:
            _FORMATS[name] = reader
        return cls

    return add


def format_names() -> list[str]:
    """Names of the input types that can be read.

    Examples
    --------
    >>> "lhotse_shar" in format_names()
    True
    """
    return sorted(_FORMATS)


def get_format(type_name: str) -> Format:
    """Return the reader of an input type.

    Raises
    ------
    NotSupportedError
        If there is none.
    """
    if type_name not in _FORMATS:
        raise NotSupportedError(
            f"the input type {type_name!r} cannot be read",
            fix=f"Use one of {', '.join(format_names())}",
        )
    return _FORMATS[type_name]
