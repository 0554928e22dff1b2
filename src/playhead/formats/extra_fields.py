"""Fields that lines of text files add to rows: the same line for the same row, always."""

from __future__ import annotations

import mmap
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import ConfigError, DataError, SourceNotFoundError
from playhead.formats.cut_rows import main_cut
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.blend.leaf import ExtraField
    from playhead.formats.example import Example

__all__ = ["ExtraLines"]

_CHUNK_BYTES = 16 << 20
# How files of gzip, zstd, bzip2 and xz begin.
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zX")


class ExtraLines:
    r"""The lines of the text files of a leaf's `extra_fields`.

    - ``text_iter``: line i belongs to row i of the leaf, in declared order; rows that are dropped
      when the index is built are not counted. There must be as many lines as rows.
    - ``text_sample``: a sample's key chooses the line, for each field apart.

    A line ends with ``\n`` or ``\r\n``; white space around it is left out, and a blank line is an
    empty text. Files are opened when a line is first asked for, once a process, and mapped into
    memory.

    Parameters
    ----------
    fields
        What `Leaf.extra_fields` holds.
    """

    def __init__(self, fields: Sequence[ExtraField]) -> None:
        self._fields = tuple(fields)
        self._files: dict[str, _Lines] = {}

    def __reduce__(self) -> tuple[type[ExtraLines], tuple[tuple[ExtraField, ...]]]:
        return type(self), (self._fields,)

    def __bool__(self) -> bool:
        return bool(self._fields)

    def check(self, num_rows: int) -> None:
        """Look whether the files have the lines that rows need.

        Parameters
        ----------
        num_rows
            Rows of the leaf.

        Raises
        ------
        SourceNotFoundError
            If a file does not exist.
        ConfigError
            If a file has not as many lines as rows, or none to choose from.
        """
        for field in self._fields:
            count = len(self._lines(field))
            if field.type == "text_iter" and count != num_rows:
                raise ConfigError(
                    f"the extra field `{field.name}` has {count} lines for {num_rows} rows",
                    where=field.path,
                    fix="Give it a line for each row that is kept, in the order of the rows:"
                    " rows that are dropped (_skipme) have none",
                )
            if field.type == "text_sample" and count == 0 and num_rows:
                raise ConfigError(
                    f"the extra field `{field.name}` has no lines to choose from",
                    where=field.path,
                    fix="Write a line into the file, or remove the field",
                )

    def digest(self, num_rows: int) -> str:
        """Identify the lines that the first rows may get: 16 hexadecimal digits.

        Parameters
        ----------
        num_rows
            How many rows: of a file with a line for each row, those of further rows do not count.

        Raises
        ------
        SourceNotFoundError, ConfigError
            If a file cannot be used.
        """
        digest = blake2b(digest_size=8)
        for field in self._fields:
            lines = self._lines(field)
            count = min(num_rows, len(lines)) if field.type == "text_iter" else len(lines)
            digest.update(f"{field.name}:{count}:".encode())
            digest.update(lines.digest(count))
        return digest.hexdigest()

    def sampled(self) -> dict[str, list[str]]:
        """Return the lines of every field whose lines are chosen by samples' keys, by its name.

        Raises
        ------
        DataError
            If a line is not UTF-8.
        """
        return {
            field.name: [lines.read(number) for number in range(len(lines))]
            for field in self._fields
            if field.type == "text_sample"
            for lines in (self._lines(field),)
        }

    def add(
        self,
        example: Example,
        row: int,
        sample_key: int,
        fixed: Mapping[str, int] | None = None,
    ) -> None:
        """Give a sample its lines, as `custom` fields; they win over what the row says.

        Parameters
        ----------
        example
            The sample.
        row
            Its row in the leaf.
        sample_key
            The key of its own randomness, 64 bits.
        fixed
            Numbers of lines by the name of their field, where no key chooses them.

        Raises
        ------
        DataError
            If the file has no such line any more, or the line is not UTF-8.
        """
        if not self._fields:
            return
        fixed = fixed or {}
        found = {
            field.name: self._line(field, row, sample_key, fixed.get(field.name))
            for field in self._fields
        }
        example.custom = {**example.custom, **found}
        if example.cut_data is not None:
            example.cut_data = data = dict(example.cut_data)
            cut = main_cut(data)
            cut["custom"] = {**(cut.get("custom") or {}), **found}

    def _line(self, field: ExtraField, row: int, sample_key: int, fixed: int | None) -> str:
        lines = self._lines(field)
        number = row if fixed is None else fixed
        if field.type == "text_sample" and fixed is None:
            number = _chosen(field.name, sample_key, len(lines))
        if number >= len(lines):
            raise DataError(
                f"the extra field `{field.name}` has {len(lines)} lines and line {number + 1} is "
                "wanted",
                where=field.path,
                fix="Restore the file, or give it a line for each row",
            )
        return lines.read(number)

    def _lines(self, field: ExtraField) -> _Lines:
        lines = self._files.get(field.path)
        if lines is None:
            lines = self._files[field.path] = _Lines(field.path)
        return lines


class _Lines:
    """A text file in memory, a local one as a map, and where its lines begin."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._data = _mapped(path)
        except FileNotFoundError:
            raise SourceNotFoundError(
                "the file of an extra field does not exist", where=path, fix="Correct its path"
            ) from None
        except IsADirectoryError:
            raise ConfigError(
                "the file of an extra field is a folder", where=path, fix="Correct its path"
            ) from None
        if self._data[:4].startswith(_COMPRESSED):
            raise ConfigError(
                "the file of an extra field is compressed, and lines are taken from its middle",
                where=path,
                fix="Unpack it",
            )
        self._starts = _line_starts(self._data)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def digest(self, count: int) -> bytes:
        """Identify the first lines."""
        digest = blake2b(digest_size=16)
        end = int(self._starts[count])
        for at in range(0, end, _CHUNK_BYTES):
            digest.update(self._data[at : min(at + _CHUNK_BYTES, end)])
        return digest.digest()

    def read(self, number: int) -> str:
        """One line without its end and the white space around it."""
        start, end = int(self._starts[number]), int(self._starts[number + 1])
        line = self._data[start:end]
        try:
            return line.decode("utf-8-sig" if number == 0 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise DataError(
                f"the line is not UTF-8: {error.reason} at its byte {error.start}",
                where=f"{self._path}:{number + 1}, byte {start}",
                fix="Write the file in UTF-8",
            ) from None


def _mapped(path: str) -> mmap.mmap | bytes:
    if access.is_remote(path):
        return b"".join(access.stream(path))
    with Path(path).open("rb") as file:
        size = file.seek(0, 2)
        # Nothing cannot be mapped.
        return mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) if size else b""


def _line_starts(data: mmap.mmap | bytes) -> NDArray[np.int64]:
    """First byte of each line, then the size; what follows the last line end is a line too."""
    size = len(data)
    ends = [
        np.flatnonzero(np.frombuffer(data[at : at + _CHUNK_BYTES], np.uint8) == 10) + (at + 1)
        for at in range(0, size, _CHUNK_BYTES)
    ]
    starts = np.concatenate([[0], *ends]).astype(np.int64)
    return starts if starts[-1] == size else np.append(starts, size)


def _chosen(name: str, sample_key: int, count: int) -> int:
    """A number below `count`, the same for the same key; 0 where there is none."""
    key = int(sample_key).to_bytes(8, "little")
    drawn = int.from_bytes(blake2b(name.encode(), digest_size=8, key=key).digest(), "little")
    return drawn * count >> 64
