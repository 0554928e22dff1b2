"""Rows of a table as JSON: the same bytes for the same row, whenever and however it is read."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from playhead.formats.base import BadRowError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["json_rows", "python_values"]

_ENCODER = msgspec.json.Encoder()


def json_rows(columns: Mapping[str, pa.ChunkedArray]) -> list[bytes]:
    """Write each row of some columns as one JSON object, its keys in the order of the columns.

    - Strings, booleans, whole numbers, structs (objects) and lists (arrays) are what they are.
    - Floats are written with the fewest digits that give them back; NaN and infinities are null.
    - Bytes are base64.
    - Decimals are strings, with all their digits.
    - Dates, times and timestamps are strings, as in ``2024-01-31 09:30:00.250``, with the digits of
      their unit; a timestamp with a time zone is in UTC and ends in ``Z``.
    - Durations are whole numbers of their unit.
    - Maps are arrays of ``[key, value]``; values of dictionaries stand for themselves.

    Parameters
    ----------
    columns
        The columns by name, all of one length.

    Raises
    ------
    BadRowError
        If a text is not UTF-8, or a value has no form in JSON.
    """
    values = {name: python_values(column, name) for name, column in columns.items()}
    names = tuple(values)
    try:
        return [
            _ENCODER.encode(dict(zip(names, row, strict=True)))
            for row in zip(*values.values(), strict=True)
        ]
    except (TypeError, ValueError, OverflowError, UnicodeError) as error:
        raise BadRowError(
            f"a row cannot be written as JSON: {error}",
            fix=f"Store its columns ({', '.join(names)}) as texts or numbers",
        ) from None


def python_values(column: pa.ChunkedArray, name: str) -> list[Any]:
    """Return a column's values as what JSON is written from; see `json_rows`.

    Raises
    ------
    BadRowError
        If a text is not UTF-8, or the column's type has no form in JSON.
    """
    try:
        return [value for chunk in column.chunks for value in _values(chunk)]
    except UnicodeDecodeError:
        raise BadRowError(
            f"a text of the column {name!r} is not UTF-8", fix="Write the column anew, in UTF-8"
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadRowError(
            f"the column {name!r} of type {column.type} cannot be read as JSON: {error}",
            fix="Store it as texts or numbers, or leave it out",
        ) from None


def _values(array: Any) -> list[Any]:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _values(array.storage)
    if pa.types.is_dictionary(kind):
        return _values(array.dictionary_decode())
    if pa.types.is_fixed_size_list(kind):
        return _lists(array.cast(pa.list_(kind.value_type)))
    for is_nested, read in _NESTED:
        if is_nested(kind):
            return read(array)
    return _flat(_plain(array))


def _flat(array: Any) -> list[Any]:
    kind = array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    # Much faster than `to_pylist`, and the same values: NumPy has no missing ones among numbers.
    if is_text:
        try:
            return array.to_numpy(zero_copy_only=False).tolist()
        except pa.ArrowException:
            # It names the text that is not UTF-8 less well than this does.
            return array.to_pylist()
    if is_number and array.null_count == 0:
        return array.to_numpy(zero_copy_only=False).tolist()
    return array.to_pylist()


def _plain(array: pa.Array) -> pa.Array:
    """Turn what Python would read in ways of its own into texts and numbers."""
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # They are stored in UTC, whatever their zone.
        utc = array.cast(pa.int64()).cast(pa.timestamp(kind.unit))
        return pc.call_function("binary_join_element_wise", [utc.cast(pa.string()), "Z", ""])
    if pa.types.is_duration(kind):
        return array.cast(pa.int64())
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return array.cast(pa.string())
    return array


def _structs(array: Any) -> list[Any]:
    names = [array.type.field(number).name for number in range(array.type.num_fields)]
    if len(set(names)) < len(names):
        raise ValueError("a struct has two fields of one name")
    # Flattened, the children are missing where the struct is.
    children = [_values(child) for child in array.flatten()]
    rows = zip(*children, strict=True) if children else [()] * len(array)
    return _where_valid(array, [dict(zip(names, row, strict=True)) for row in rows])


def _lists(array: Any) -> list[Any]:
    offsets: list[int] = array.offsets.to_pylist()
    first = offsets[0]
    items = _values(array.values[first : offsets[-1]])
    spans = pairwise(offset - first for offset in offsets)
    return _where_valid(array, [items[start:end] for start, end in spans])


def _maps(array: Any) -> list[Any]:
    offsets: list[int] = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    keys, items = _values(array.keys[first:last]), _values(array.items[first:last])
    pairs = [list(pair) for pair in zip(keys, items, strict=True)]
    spans = pairwise(offset - first for offset in offsets)
    return _where_valid(array, [pairs[start:end] for start, end in spans])


def _where_valid(array: pa.Array, values: list[Any]) -> list[Any]:
    if array.null_count == 0:
        return values
    valid: list[bool] = array.is_valid().to_pylist()
    return [value if is_there else None for value, is_there in zip(values, valid, strict=True)]


_NESTED = (
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _maps),
    (pa.types.is_list, _lists),
    (pa.types.is_large_list, _lists),
)
