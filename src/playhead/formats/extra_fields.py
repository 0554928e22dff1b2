"""Fields that lines of text files add to the rows of a leaf."""

from __future__ import annotations

import mmap
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import ConfigError, DataError, SourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import ExtraField
    from playhead.formats.example import Example

__all__ = ["ExtraLines"]

_NEWLINE = 0x0A
_PIECE = 16 << 20


class ExtraLines:
    """The extra fields of a leaf; which line a row gets depends on the row or the sample's key.

    Parameters
    ----------
    fields
        What the leaf declares.

    Raises
    ------
    SourceNotFoundError
        If a file does not exist.
    ConfigError
        If a file cannot be read, or has no line.
    """

    def __init__(self, fields: Sequence[ExtraField]) -> None:
        self._fields = [(field, _Lines(field.path)) for field in fields]

    def check(self, num_rows: int, leaf: str) -> None:
        """Check that every row has a line of its own where it needs one.

        Raises
        ------
        ConfigError
            If a file has fewer lines than the leaf has rows; it names both numbers.
        """
        for field, lines in self._fields:
            if field.type == "text_iter" and len(lines) < num_rows:
                raise ConfigError(
                    f"the extra field {field.name!r} has {len(lines)} lines for the {num_rows} rows"
                    f" of leaf {leaf}",
                    where=field.path,
                    fix="Write a line for every row that is kept, in the order of the manifests",
                )

    def add(self, example: Example, row: int, sample_key: int) -> None:
        """Give a sample its fields.

        Parameters
        ----------
        example
            The sample; its `custom` is replaced.
        row
            Its row in the leaf.
        sample_key
            Its key, 64 bits.

        Raises
        ------
        DataError
            If a line is no text.
        """
        found: dict[str, str] = {}
        for field, lines in self._fields:
            if field.type == "text_iter":
                number = row
            else:
                own = blake2b(field.name.encode(), key=sample_key.to_bytes(8, "little"))
                number = int.from_bytes(own.digest()[:8], "little") * len(lines) >> 64
            found[field.name] = lines.text(number)
        example.custom = {**example.custom, **found}


class _Lines:
    """The lines of a file, by number."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            with Path(path).open("rb") as file:
                # A map outlives its file, and none can be made of an empty one.
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise SourceNotFoundError(
                "the text file of an extra field does not exist",
                where=path,
                fix="Correct the path in extra_fields",
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the text file of an extra field cannot be used: {error}",
                where=path,
                fix="Give a file with at least one line",
            ) from None
        self._ends = _line_ends(self._data)

    def __len__(self) -> int:
        return len(self._ends)

    def text(self, number: int) -> str:
        start = int(self._ends[number - 1]) if number else 0
        line = self._data[start : int(self._ends[number])]
        try:
            return line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"the line is not UTF-8: {error.reason}",
                where=f"{self._path}:{number + 1}, byte {start}",
                fix="Write the file as UTF-8",
            ) from None


def _line_ends(data: mmap.mmap) -> NDArray[np.int64]:
    """The byte behind each line; the last one needs no newline."""
    size = len(data)
    ends: list[NDArray[np.int64]] = []
    for start in range(0, size, _PIECE):
        piece = np.frombuffer(data[start : start + _PIECE], np.uint8)
        ends.append(np.flatnonzero(piece == _NEWLINE) + (start + 1))
    found = np.concatenate(ends)
    return found if len(found) and found[-1] == size else np.append(found, size)
