"""What a file of a checkpoint holds, read without running any of it and without its tensors."""

from __future__ import annotations

import codecs
import json
import lzma
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import ConfigError, DataError, PlayheadError, SourceNotFoundError
from playhead.inspect.pickles import read_pickle

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = [
    "MOST_BYTES",
    "Payload",
    "content_of",
    "load_payload",
    "opened",
    "read_torch_zip",
    "too_large",
]

MOST_BYTES: Final = 512 << 20
"""Bytes that are read of a file at most, tensors aside."""

_ZIP = b"PK\x03\x04"
# Of an old torch file the first of five pickles is this number; the fourth is what was saved.
_TORCH_MAGIC = 0x1950A86A20F9469CFC6C
_PICKLES_BEFORE = 2
_FIRST_BYTES = 16 << 20
# An archive may say that it is compressed in ways in which torch never does.
_DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError)
_NOTHING_ELSE = "the file is neither a torch file, nor a pickle, nor JSON"


@dataclass(frozen=True, slots=True)
class Payload:
    """What was read of one file."""

    file: str
    """The file."""
    content: Any
    """Plain containers, numbers, texts and what stands for the rest."""
    note: str | None = None
    """What people should know of how it was read."""


def load_payload(
    file: str | Path, *, allow_full_load: bool = False, most_full_load_bytes: int = MOST_BYTES
) -> Payload:
    """Read what a torch file, a pickle or JSON holds; of tensors no more than their shape.

    Parameters
    ----------
    file
        The file.
    allow_full_load
        Let `torch.load` run what stands in the file where it cannot be read otherwise.
    most_full_load_bytes
        A file that holds more beside its tensors is refused; with `allow_full_load` it is not.

    Raises
    ------
    SourceNotFoundError
        When there is no such file.
    ConfigError
        When it cannot be opened, is empty, or is something else.
    DataError
        When it is damaged.
    """
    where = str(file)
    try:
        with opened(Path(file)) as stream:
            return Payload(where, content_of(stream, most_full_load_bytes, where))
    except (ConfigError, DataError):
        if not allow_full_load:
            raise
    except OSError as error:
        if isinstance(error, PlayheadError):
            raise
        raise _unreadable(error, where) from error
    note = f"{where} was loaded by torch, which runs what stands in it"
    return Payload(where, _loaded_in_full(where), note)


def content_of(stream: BinaryIO, most_bytes: int, where: str) -> Any:
    """Return what an open file holds.

    Parameters
    ----------
    stream
        The file, at its start; it can be searched.
    most_bytes
        Bytes that are read at most.
    where
        The file, for messages.

    Raises
    ------
    ConfigError
        When it is empty, larger, or something else.
    DataError
        When it is damaged.
    """
    head = stream.read(16)
    if not head:
        raise ConfigError("the file is empty", where=where, fix="Save the checkpoint again")
    if head.startswith(_ZIP):
        return read_torch_zip(stream, most_bytes, where)
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < (1 << 40):
        raise ConfigError(
            "the file holds tensors alone (safetensors)",
            where=where,
            fix="Name the file beside it that holds the state of the loader",
        )
    stream.seek(0)
    if head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return _read_json(stream, most_bytes, where)
    return _read_pickles(stream, most_bytes, where, is_certain=head.startswith(b"\x80"))


def read_torch_zip(stream: BinaryIO, most_bytes: int, where: str) -> Any:
    """Return what `torch.save` put into a file, with tensors as their shapes.

    Parameters
    ----------
    stream, most_bytes, where
        As for `content_of`.

    Raises
    ------
    ConfigError
        When it is another kind of archive, or larger.
    DataError
        When it is damaged.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            names = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if not names:
                raise ConfigError(
                    "the file is a zip archive that torch did not write: it has no data.pkl",
                    where=where,
                    fix="Name the checkpoint",
                )
            name = min(names, key=len)
            if archive.getinfo(name).file_size > most_bytes:
                raise too_large(archive.getinfo(name).file_size, most_bytes, where)
            with archive.open(name) as member:
                data = member.read(most_bytes + 1)
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        ValueError,
        KeyError,
        IndexError,
        OverflowError,
        MemoryError,
        OSError,
        *_DECOMPRESSION_ERRORS,
    ) as error:
        if isinstance(error, ConfigError):
            raise
        raise DataError(
            "the file is damaged: its archive ends early or is not whole",
            where=where,
            fix="Wait until it is written, or name another one",
        ) from error
    if len(data) > most_bytes:
        raise too_large(len(data), most_bytes, where)
    return _content_of_pickle(data, where)


def _read_pickles(stream: BinaryIO, most_bytes: int, where: str, *, is_certain: bool) -> Any:
    """Read a pickle, or the one that matters of an old torch file; of large files only so much."""
    data = stream.read(min(_FIRST_BYTES, most_bytes))
    while True:
        try:
            return _content_of_pickle(data, where)
        except DataError as error:  # noqa: PERF203 - the next turn has more bytes
            if not is_certain:
                raise ConfigError(_NOTHING_ELSE, where=where, fix="Name a checkpoint") from error
            more = stream.read(max(0, min(len(data), most_bytes - len(data))))
            if more:
                data += more
                continue
            if stream.read(1):
                raise too_large(None, most_bytes, where) from error
            raise


def _content_of_pickle(data: bytes, where: str) -> Any:
    first = read_pickle(data, where=where)
    if first.content != _TORCH_MAGIC:
        return first.content
    end = first.end
    for _ in range(_PICKLES_BEFORE):
        end = read_pickle(data, end, where=where).end
    return read_pickle(data, end, where=where).content


def _read_json(stream: BinaryIO, most_bytes: int, where: str) -> Any:
    text = stream.read(most_bytes + 1)
    if len(text) > most_bytes:
        raise too_large(None, most_bytes, where)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            # One value a line, as manifests have them: whole, and no state.
            return None
        raise DataError(
            f"the file is not complete JSON: {error}",
            where=where,
            fix="Wait until it is written, or name another one",
        ) from error


def opened(path: Path) -> BinaryIO:
    """Open a plain file; pipes and devices, which may have no end, are refused.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    SourceNotFoundError
        When there is no such file.
    ConfigError
        When it is none, or may not be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(
                "this is not a regular file", where=str(path), fix="Name a checkpoint"
            )
        return path.open("rb")
    except FileNotFoundError as error:
        raise SourceNotFoundError(
            "there is no such file", where=str(path), fix="Correct the path"
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"this can be no path: {error}", where=repr(str(path)), fix="Correct the path"
        ) from error
    except OSError as error:
        raise _unreadable(error, str(path)) from error


def _unreadable(error: OSError, where: str) -> ConfigError:
    return ConfigError(
        f"the file cannot be read: {error.strerror or error}",
        where=where,
        fix="Give the right to read it, or name another one",
    )


def too_large(size: int | None, most_bytes: int, where: str) -> ConfigError:
    """Return the error of a file that holds more than is read.

    Parameters
    ----------
    size
        Bytes that it holds; None if unknown.
    most_bytes
        Bytes that are read at most.
    where
        The file.
    """
    has = "more" if size is None else f"{size / (1 << 20):,.0f} MiB"
    return ConfigError(
        f"the file has {has} beside its tensors, and {most_bytes >> 20:,} MiB are read at most",
        where=where,
        fix="Raise --max-full-load-mb if it is what you want to look at",
    )


def _loaded_in_full(path: str) -> Any:
    import torch  # noqa: PLC0415  (slow, and only where asked)

    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise DataError(
            f"torch cannot load the file either: {type(error).__name__}: {error}",
            where=path,
            fix="Name another one",
        ) from error
