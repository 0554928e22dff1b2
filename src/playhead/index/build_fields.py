"""The files that run parallel to a manifest: which record of each belongs to which row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from playhead.errors import ArchiveError, DataError, ManifestError
from playhead.formats import BadRowError
from playhead.index.columns import Parts
from playhead.index.source import read_lines
from playhead.index.tarhop import Archive
from playhead.paths import scheme
from playhead.storage.compression import is_archive, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from playhead.formats import FieldShard, SourcePair

__all__ = ["FieldFiles", "FieldRows"]

_BLOCK = 512
_JSON_LINES = (".jsonl", ".json")
_FIX = "Write the shards of all fields from the same data"


class _Named(msgspec.Struct, gc=False):
    cut_id: str


_DECODER = msgspec.json.Decoder(_Named)


class _Record(NamedTuple):
    """What a field has for one row."""

    id: str | None
    """The row's id, as the record bears it; None for a line of text, which bears none."""
    offset: int
    """First byte in the file, decompressed."""
    size: int
    """Bytes."""
    line: bytes | None
    """The bytes of a record that is a line."""
    is_absent: bool
    """Whether the field has nothing for the row."""


class FieldRows(NamedTuple):
    """What the fields of some rows are."""

    parts: Parts
    """Where they lie."""
    lines: list[bytes] | None
    """The lines of each row's fields that are lines, each after a newline, where rows are
    embedded: these are no parts then."""
    texts: list[bytes] | None
    """The lines of each row's fields that are text, each after a newline; None without any."""


class FieldFiles:
    """The files that run parallel to one manifest, read in step with it.

    Parameters
    ----------
    pair
        The manifest and its fields.
    first_shard
        Place of the manifest in the leaf's shard table.
    codes
        Number of each field among those of the leaf.
    embed
        Whether lines go into the pack.
    """

    def __init__(
        self, pair: SourcePair, first_shard: int, codes: Mapping[str, int], *, embed: bool
    ) -> None:
        first = first_shard + 1 + len(pair.tars)
        self._manifest = pair.manifest
        self._files = [
            _FieldFile(shard, codes[shard.field], first + number)
            for number, shard in enumerate(pair.fields)
        ]
        self._embed = embed

    def __bool__(self) -> bool:
        return bool(self._files)

    def rows(self, first: int, ids: Sequence[str | None], kept: NDArray[np.int64]) -> FieldRows:
        """Find the records of some rows.

        Parameters
        ----------
        first
            How many rows of the manifest come before them.
        ids
            Ids of all of them; None for rows that have none.
        kept
            Which of them are kept.

        Raises
        ------
        BadRowError
            If a record bears another id, or a line of text is none.
        DataError
            If a file ends before the manifest does, or is damaged.
        """
        chosen = kept.tolist()
        count = np.zeros(len(chosen), np.int64)
        found: list[tuple[int, int, int, int, int]] = []
        lines = [b""] * len(chosen) if self._embed else None
        texts: list[bytes] | None = None
        for file in self._files:
            records = file.take(first, ids, self._manifest)
            for row, number in enumerate(chosen):
                record = records[number]
                if record.id is None and record.line is not None:
                    _check_text(record.line, record.offset, file.path)
                    texts = texts or [b""] * len(chosen)
                    texts[row] += b"\n" + record.line
                if record.line is not None and lines is not None:
                    lines[row] += b"\n" + record.line
                elif not record.is_absent:
                    count[row] += 1
                    found.append((row, file.code, file.number, record.offset, record.size))
        found.sort(key=lambda part: part[0])
        columns = np.array(found, np.int64).reshape(-1, 5).T
        return FieldRows(
            Parts(
                count,
                columns[1].astype(np.int16),
                columns[2].astype(np.int32),
                columns[3],
                columns[4],
                np.full(len(found), -1),
            ),
            lines,
            texts,
        )

    def forget(self, before: int) -> None:
        """Let go of the records of rows that are done."""
        for file in self._files:
            file.forget(before)

    def finish(self, num_rows: int) -> None:
        """Check that no file has more records than the manifest has rows.

        Raises
        ------
        DataError
            If one does.
        """
        for file in self._files:
            file.finish(num_rows, self._manifest)


class _FieldFile:
    """One file, its records taken in order."""

    def __init__(self, shard: FieldShard, code: int, number: int) -> None:
        self.code = code
        self.number = number
        self._shard = shard
        self._records = _records(shard)
        self._ahead: list[_Record] = []
        self._before = 0

    @property
    def path(self) -> str:
        """The file."""
        return self._shard.path

    def take(self, first: int, ids: Sequence[str | None], manifest: str) -> list[_Record]:
        end = first + len(ids)
        while self._before + len(self._ahead) < end:
            record = next(self._records, None)
            if record is None:
                have = self._before + len(self._ahead)
                raise DataError(
                    f"the file of the field {self._shard.field!r} has {have} records, and there are"
                    f" more rows in {manifest}",
                    where=self._shard.path,
                    fix="Restore the file, or write it again: it may be cut short",
                )
            self._ahead.append(record)
        records = self._ahead[first - self._before : end - self._before]
        for record, row_id in zip(records, ids, strict=True):
            if record.id is None or row_id is None:
                continue
            if record.id != row_id and record.id.removeprefix("./") != row_id.removeprefix("./"):
                raise BadRowError(
                    f"the row's id is {row_id!r} and the field {self._shard.field!r} has "
                    f"{record.id!r} there ({self._shard.path}, byte {record.offset})",
                    fix=_FIX,
                )
        return records

    def forget(self, before: int) -> None:
        del self._ahead[: before - self._before]
        self._before = before

    def finish(self, num_rows: int, manifest: str) -> None:
        if len(self._ahead) > num_rows - self._before or next(self._records, None) is not None:
            raise DataError(
                f"the file of the field {self._shard.field!r} has more records than the {num_rows}"
                f" rows in {manifest}",
                where=self._shard.path,
                fix=_FIX,
            )


def _records(shard: FieldShard) -> Iterator[_Record]:
    if is_archive(shard.path):
        return _of_tar(shard.path)
    return _of_lines(shard.path) if _is_json(shard.path) else _of_text(shard.path)


def _is_json(path: str) -> bool:
    # What a command writes is what it names, as far as anybody can tell.
    is_named = scheme(path) == "pipe" and ".jsonl" in path
    return is_named or plain_name(path).endswith(_JSON_LINES)


def _of_tar(path: str) -> Iterator[_Record]:
    """Members by two: the data, then what they are."""
    members = Archive(path).hop()
    for data in members:
        meta = next(members, None)
        stem = _stem(data.name)
        if meta is None or _stem(meta.name) != stem:
            said = "there is none" if meta is None else f"there is {meta.name!r}"
            raise ArchiveError(
                f"the member {data.name!r} should be followed by its JSON, and {said}",
                where=f"{path}, byte {data.header:,}",
                fix="Write the archive again, as Lhotse's SharWriter does",
            )
        end = meta.payload + (meta.size + _BLOCK - 1 & -_BLOCK)
        is_absent = data.name.endswith(".nodata")
        yield _Record(stem, data.header, end - data.header, None, is_absent)


def _stem(name: str) -> str:
    # As Lhotse cuts it: the last suffix of the last part.
    folder, slash, base = name.rpartition("/")
    head, dot, _ = base.rpartition(".")
    return folder + slash + (head if dot and head else base)


def _of_lines(path: str) -> Iterator[_Record]:
    for block in read_lines(path):
        at = 0
        for number, line in enumerate(block.data.split(b"\n")):
            text = line.strip()
            if text:
                try:
                    row_id = _DECODER.decode(text).cut_id
                except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
                    raise ManifestError(
                        f"the line is not an object with a cut_id: {error}",
                        where=f"{path}:{block.first_line + number + 1}, byte {block.offset + at}",
                        fix="Write it again, as Lhotse's SharWriter does",
                    ) from None
                yield _Record(row_id, block.offset + at, len(line), text, is_absent=False)
            at += len(line) + 1


def _check_text(line: bytes, offset: int, path: str) -> None:
    """Refuse what could not be read later."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise BadRowError(
            f"the line is not UTF-8: {error.reason} at its byte {error.start}; it begins at byte"
            f" {offset} of {path}",
            fix="Write the file in UTF-8",
        ) from None


def _of_text(path: str) -> Iterator[_Record]:
    """Every line, blank ones included; what follows the last newline only if there is something."""
    for block in read_lines(path):
        at = 0
        lines = block.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            text = line.removesuffix(b"\r")
            yield _Record(None, block.offset + at, len(text), text, is_absent=False)
            at += len(line) + 1
