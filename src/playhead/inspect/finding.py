"""Which files of a checkpoint are read, and where in them positions stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.errors import ConfigError, PlayheadError, SourceNotFoundError
from playhead.inspect.containers import MOST_BYTES, load_payload
from playhead.inspect.distributed import METADATA, load_distributed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playhead.inspect.containers import Payload

__all__ = ["MOST_FILES", "candidates", "load_payloads", "nothing_found"]

MOST_FILES: Final = 4096
"""Files of a folder that are read at most, in the order of their names."""

_SUFFIXES = (".json", ".ckpt", ".pt", ".pth", ".pkl", ".bin")
_STEP = re.compile(r"eval-step-(\d+)")
_MAIN = ("meta.pt", "checkpoint/meta.pt")
_DEEPEST = 3


def load_payloads(
    path: str | Path,
    *,
    allow_full_load: bool = False,
    most_full_load_bytes: int = MOST_BYTES,
    refused: list[str] | None = None,
) -> Iterator[Payload]:
    """Read the files that may hold a state, the likeliest first.

    Parameters
    ----------
    path
        A file, a folder, or an `eval-step-N` folder beside `checkpoints`.
    allow_full_load, most_full_load_bytes
        As for `load_payload`.
    refused
        Gets why each file that cannot be read was passed over.

    Raises
    ------
    SourceNotFoundError
        When there is nothing of that name.
    ConfigError
        When it is a file and none that can be read.
    DataError
        When it is a file and damaged.
    """
    given = Path(path)
    reasons = [] if refused is None else refused
    try:
        is_folder = given.is_dir()
    except (OSError, ValueError):
        is_folder = False
    if not is_folder:
        if given.name == METADATA:
            yield load_distributed(given.parent, most_full_load_bytes=most_full_load_bytes)
            return
        yield load_payload(
            given, allow_full_load=allow_full_load, most_full_load_bytes=most_full_load_bytes
        )
        return
    for file in candidates(given, refused=reasons):
        try:
            if file.name == METADATA:
                yield load_distributed(file.parent, most_full_load_bytes=most_full_load_bytes)
            else:
                yield load_payload(
                    file,
                    allow_full_load=allow_full_load,
                    most_full_load_bytes=most_full_load_bytes,
                )
        except PlayheadError as error:  # noqa: PERF203 - one bad file hides no other
            reasons.append(str(error))


def candidates(folder: str | Path, *, refused: list[str] | None = None) -> list[Path]:
    """Return the files of a folder that may hold a state, in the order in which they are read.

    Of `eval-step-N`, first the checkpoint of that step; then `meta.pt`, whole checkpoints, other
    files, and the same of folders below.

    Parameters
    ----------
    folder
        The folder.
    refused
        Gets why folders below and files were passed over.

    Raises
    ------
    ConfigError
        When it may not be read.
    """
    given = Path(folder)
    found: dict[Path, None] = {}
    step = _STEP.fullmatch(given.absolute().name)
    if step is not None:
        number = step[1]
        beside = given.absolute().parent / "checkpoints"
        names = (f"step={number}", f"step={number}-last", f"step-{number}", f"step-{number}-last")
        for name in names:
            found |= dict.fromkeys(_main_files(beside / f"{name}.ckpt"))
    reasons = [] if refused is None else refused
    try:
        found |= dict.fromkeys(_files_of(given, _DEEPEST, reasons))
    except OSError as error:
        raise ConfigError(
            f"the folder cannot be read: {error.strerror or error}",
            where=str(folder),
            fix="Give the right to read it, or name another one",
        ) from error
    files = list(found)
    if len(files) > MOST_FILES:
        reasons.append(f"{given}: of {len(files):,} files the first {MOST_FILES:,} are read")
    return files[:MOST_FILES]


def _main_files(path: Path) -> Iterator[Path]:
    """A checkpoint, or the files that matter of one that is a folder."""
    if _is_file(path):
        yield path
    for name in (*_MAIN, METADATA):
        if _is_file(path / name):
            yield path / name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # In a folder that may not be read, which is said where its files are listed.
        return False


def _files_of(folder: Path, depth: int, refused: list[str]) -> Iterator[Path]:
    yield from _main_files(folder)
    inside = sorted(folder.iterdir())
    for suffix in (".ckpt", *(other for other in _SUFFIXES if other != ".ckpt")):
        for path in inside:
            if path.suffix == suffix:
                yield from _main_files(path)
    for path in inside if depth else ():
        try:
            if path.is_dir() and not path.is_symlink():
                yield from _files_of(path, depth - 1, refused)
        except OSError as error:  # noqa: PERF203 - one bad folder hides no other
            refused.append(f"the folder {path} cannot be read: {error.strerror or error}")


def nothing_found(path: str | Path, reasons: Sequence[str], *, files: int) -> PlayheadError:
    """Return the error that says why no position was found, with the last ten reasons.

    Parameters
    ----------
    path
        What was looked at.
    reasons
        Why files were passed over.
    files
        How many were read and hold none.
    """
    fix = "Name a file or a folder in which the state of the loader was saved"
    if not files and not reasons:
        return SourceNotFoundError("no file here could be a checkpoint", where=str(path), fix=fix)
    what = f"no position of a loader is in {files} file{'s' * (files != 1)} that could be read"
    if reasons:
        what += f"; {len(reasons)} could not: " + " | ".join(reasons[-10:])
    return ConfigError(what, where=str(path), fix=fix)
