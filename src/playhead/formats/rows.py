"""Reading rows: blocks of JSON lines, single rows, and the paths that they hold."""

from __future__ import annotations

import json
import os
import posixpath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from playhead.errors import ManifestError
from playhead.formats.base import BadRowError
from playhead.paths import scheme

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from playhead.blend.leaf import Leaf

__all__ = [
    "CustomField",
    "CustomObject",
    "convert_row",
    "decode_block",
    "decode_row",
    "is_skipped",
    "is_url",
    "other_fields",
    "resolve_path",
]

Row = TypeVar("Row", bound=msgspec.Struct)

_REINDEX: Final = "Index the file again if it has changed, else correct the row"


class CustomObject(msgspec.Struct, gc=False):
    """A row's `custom` object."""

    skipme: Any = msgspec.field(default=None, name="_skipme")
    """Anything truthy drops the row."""


CustomField: TypeAlias = CustomObject | str | float | bool | list[Any] | None
"""A row's `custom` field, which may be anything: only an object is looked into."""


def decode_block(
    decoder: msgspec.json.Decoder[Row], row_type: type[Row], block: bytes
) -> list[Row]:
    """Decode a block of JSON lines into typed rows.

    Rows that only Python's own reader accepts (a `NaN` in some field, as `json.dumps` writes it)
    are read too, more slowly.

    Raises
    ------
    BadRowError
        If a row is not JSON or a field has the wrong type.
    """
    try:
        return decoder.decode_lines(block)
    except msgspec.ValidationError as error:
        raise BadRowError(_plain(str(error)), fix="Correct the field") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            return [
                msgspec.convert(json.loads(line), row_type)
                for line in block.split(b"\n")
                if line and not line.isspace()
            ]
        except msgspec.ValidationError as wrong_type:
            raise BadRowError(_plain(str(wrong_type)), fix="Correct the field") from None
        except (ValueError, RecursionError):
            raise BadRowError(
                f"the row is not valid JSON: {error}", fix="Write one JSON object on each line"
            ) from None


def decode_row(row: bytes, place: object) -> dict[str, Any]:
    """Decode one row whole.

    Parameters
    ----------
    row
        Its bytes.
    place
        Where it lies; anything that prints as such.

    Raises
    ------
    ManifestError
        If it is not a JSON object.
    """
    try:
        data: Any = msgspec.json.decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            data = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise ManifestError(
                f"the row is not valid JSON: {error}",
                where=str(place),
                fix="Index the manifest again if it has changed, else correct the row",
            ) from None
    if not isinstance(data, dict):
        raise ManifestError(
            f"the row is not a JSON object but {type(data).__name__}",
            where=str(place),
            fix="Write one JSON object on each line",
        )
    return data


def convert_row(row_type: type[Row], data: Mapping[str, Any]) -> Row:
    """Make a typed row of one that is decoded, as `decode_block` does of its bytes.

    Raises
    ------
    BadRowError
        If a field has the wrong type.
    """
    try:
        return msgspec.convert(data, row_type)
    except msgspec.ValidationError as error:
        raise BadRowError(f"the row is not what it should be: {error}", fix=_REINDEX) from None


def other_fields(leaf: Leaf, data: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Return what else a row says: its other fields, those of its `custom` object, the leaf's tags.

    Parameters
    ----------
    leaf
        The source.
    data
        The row.
    taken
        Fields that the sample holds elsewhere, which are left out.
    """
    left_out = {"_skipme", "id", *taken}
    fields = {name: value for name, value in data.items() if name not in left_out}
    if isinstance(fields.get("custom"), dict):
        fields.update(fields.pop("custom"))
        fields.pop("_skipme", None)
    elif fields.get("custom", 0) is None:
        del fields["custom"]
    return {**fields, **leaf.tags}


def is_skipped(top: object, custom: CustomField) -> bool:
    """Whether a row's `_skipme`, or that of its `custom` object, is truthy.

    Examples
    --------
    >>> is_skipped("too noisy", None), is_skipped("", None), is_skipped(0, None)
    (True, False, False)
    >>> is_skipped(None, CustomObject(skipme=1))
    True
    """
    return bool(top) or (isinstance(custom, CustomObject) and bool(custom.skipme))


def is_url(path: str) -> bool:
    """Whether a path has a scheme.

    Examples
    --------
    >>> is_url("s3://bucket/a.wav"), is_url("/data/a.wav")
    (True, False)
    """
    return scheme(path) != ""


def resolve_path(path: str, folder: str) -> str:
    """Find a file that a row names.

    A relative path is looked for in `folder`, the manifest's; if nothing is there, it is what it
    says, relative to the working directory, with `~` expanded. Where the folder is on a store, it
    is in there: nobody asks whether it exists. URLs stay as they are.

    Examples
    --------
    >>> resolve_path("/data/a.wav", "/manifests"), resolve_path("s3://b/a.wav", "/manifests")
    ('/data/a.wav', 's3://b/a.wav')
    >>> resolve_path("../audio/a.wav", "s3://b/manifests")
    's3://b/audio/a.wav'
    """
    if path.startswith("/") or is_url(path):
        return path
    if is_url(folder) and scheme(folder) != "pipe":
        name, _, key = folder.partition("://")
        return f"{name}://{posixpath.normpath(f'{key}/{path}')}"
    beside = os.path.join(folder, path)  # noqa: PTH118 - a Path costs microseconds a sample
    if os.path.exists(beside):  # noqa: PTH110 - same
        return beside
    return os.path.expanduser(path)  # noqa: PTH111 - same


def _plain(message: str) -> str:
    """Say a type error of a block as that of a row, without its number in the block."""
    head, at, path = message.partition(" - at `$")
    field = path.rstrip("`").lstrip("[0123456789]").lstrip(".")
    if not at:
        return message
    what = (
        f"the row's field {field!r} has the wrong type"
        if field
        else "the row is not what it should be"
    )
    return f"{what}: {head}"
