"""What a decoded row says of its transcript, its language and its channel."""

from __future__ import annotations

import math
import reprlib
from typing import TYPE_CHECKING, Any

from playhead.errors import ManifestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.blend.leaf import Leaf
    from playhead.formats.example import Place

__all__ = ["channel_of", "language_of_row", "text_of"]

_SHORT = reprlib.Repr()


def text_of(data: Mapping[str, Any], field: str, place: Place) -> str | None:
    """Return a field's text; numbers are taken as they would be printed.

    Raises
    ------
    ManifestError
        If it holds something else.
    """
    value = data.get(field)
    if value is None or isinstance(value, str):
        return value
    # The NaN of a table's empty cell is no transcript, and neither is what an object prints as.
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    raise ManifestError(
        f"the row's field {field!r} is {_SHORT.repr(value)}, which is not a text",
        where=str(place),
        fix="Write a string, or null where there is none, and index the manifest again",
    )


def language_of_row(leaf: Leaf, data: Mapping[str, Any], place: Place) -> str | None:
    """Return the language of a conversation: a tag's, else its row's; None where nobody says it.

    Raises
    ------
    ManifestError
        If it is no text.
    """
    field = leaf.options.lang_field
    for said in (leaf.tags, leaf.outer_tags, data):
        if said.get(field) is not None:
            return text_of(said, field, place)
    return None


def channel_of(leaf: Leaf, data: Mapping[str, Any], place: Place) -> int | None:
    """Find the channel to keep: an index, the row's field that holds one, or what the row says.

    Raises
    ------
    ManifestError
        If the field that should hold it is not there, or holds something else.
    """
    selector = leaf.options.channel_selector
    if selector is None:
        selector = data.get("channel_selector")
    elif isinstance(selector, str):
        if selector not in data:
            raise ManifestError(
                f"the row has no field {selector!r}, which channel_selector names",
                where=str(place),
                fix="Add the field, or give channel_selector an index",
            )
        selector = data[selector]
    if selector is None or (isinstance(selector, int) and not isinstance(selector, bool)):
        return selector
    raise ManifestError(
        f"the channel is {selector!r}", where=str(place), fix="Write the channel's index, from 0"
    )
