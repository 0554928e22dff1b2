"""What the rows of conversations have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from playhead.formats.base import BadRowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf

__all__ = ["conversation_custom", "typed_row"]

_TAKEN = frozenset({"id", "conversations", "custom", "_skipme"})

Row = TypeVar("Row", bound=msgspec.Struct)


def typed_row(data: Mapping[str, Any], row_type: type[Row]) -> Row:
    """Check a decoded row as its block was checked.

    Raises
    ------
    BadRowError
        If a field has the wrong type.
    """
    try:
        return msgspec.convert(data, row_type)
    except msgspec.ValidationError as error:
        raise BadRowError(
            f"a field of the row has the wrong type: {error}",
            fix="Index the manifest again if it has changed, else correct the field",
        ) from None


def conversation_custom(leaf: Leaf, data: Mapping[str, Any]) -> dict[str, Any]:
    """A row's other fields, those of its `custom` object, then the leaf's tags."""
    others = {key: value for key, value in data.items() if key not in _TAKEN}
    custom = data.get("custom")
    if isinstance(custom, dict):
        others.update((key, value) for key, value in custom.items() if key != "_skipme")
    elif custom is not None:
        others["custom"] = custom
    return {**others, **leaf.tags}
