"""Which files a Lhotse Shar consists of, and which of them belong together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, PlayheadError, SourceNotFoundError
from playhead.formats.base import FieldShard, SourcePair
from playhead.formats.shar_fields import TAKEN
from playhead.paths import scheme
from playhead.storage.compression import SUFFIXES, is_archive, plain_name
from playhead.storage.folders import names_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CUTS", "pairs_of_fields", "pairs_of_folder"]

CUTS = "cuts"
"""The field that holds the cuts."""

_IGNORED = ".idx"
_SHARDS = (".tar", ".jsonl")


def pairs_of_folder(folder: str) -> list[SourcePair]:
    """Find the shards of a folder, as Lhotse finds them.

    A field is a file's name up to its first dot; its shards are sorted by name, and the k-th shards
    of all fields belong together. Indexes (`.idx`), hidden files, folders, and files that are
    neither archives nor JSONL are no shards.

    A folder on a store is listed once.

    Raises
    ------
    SourceNotFoundError
        If there is no such folder.
    ConfigError
        If it is no folder or may not be looked at, holds no cuts, or its fields have different
        numbers of shards.
    StorageError
        If it is on a store that cannot be asked.
    """
    try:
        names = names_in(folder)
    except PlayheadError:
        raise
    except FileNotFoundError:
        raise SourceNotFoundError(
            "the folder does not exist", where=folder, fix="Correct shar_path"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the folder cannot be read: {getattr(error, 'strerror', None) or error}",
            where=folder,
            fix="Name a folder that SharWriter wrote in shar_path",
        ) from None
    shards: dict[str, list[str]] = {}
    for name in names:
        suffixes = Path(name).suffixes
        if name.startswith(".") or _IGNORED in suffixes:
            continue
        if any(suffix in _SHARDS for suffix in suffixes):
            shards.setdefault(name.partition(".")[0], []).append(os.path.join(folder, name))  # noqa: PTH118 - there are very many
    if CUTS not in shards:
        found = f"its files are {', '.join(names[:3])}, ..." if names else "it is empty"
        raise ConfigError(
            f"the folder holds no cuts: {found}",
            where=folder,
            fix="Name a folder that SharWriter wrote in shar_path",
        )
    return _paired(shards, folder)


def pairs_of_fields(fields: Mapping[str, Sequence[str]], leaf: str) -> list[SourcePair]:
    """Pair the shards of fields that are named one by one, in declared order.

    Parameters
    ----------
    fields
        The shards of each field; `cuts` is one of them.
    leaf
        Name of the leaf, for messages.

    Raises
    ------
    ConfigError
        If there are no cuts, or fields have different numbers of shards.
    """
    if not fields.get(CUTS):
        raise ConfigError(
            "shar_path names fields and no cuts",
            where=f"leaf {leaf}",
            fix="Add their shards: shar_path: {cuts: ..., recording: ...}",
        )
    return _paired(fields, f"leaf {leaf}")


def _paired(shards: Mapping[str, Sequence[str]], where: str) -> list[SourcePair]:
    cuts = shards[CUTS]
    others = {field: paths for field, paths in shards.items() if field != CUTS}
    for field, paths in others.items():
        if field in TAKEN or not field:
            raise ConfigError(
                f"a field cannot be called {field!r}",
                where=paths[0] if paths else where,
                fix="Give its files another name",
            )
        if len(paths) != len(cuts):
            raise ConfigError(
                f"the field {field!r} has {len(paths)} shards and cuts has {len(cuts)}"
                f"{_doubles(cuts) or _doubles(paths)}",
                where=where,
                fix="Restore the shards that are missing: the k-th ones belong together",
            )
    for path in (path for paths in shards.values() for path in paths):
        _check_suffix(path)
    for path in cuts:
        if is_archive(path):
            raise ConfigError("cuts are lines, not an archive", where=path, fix="Name JSONL files")
    return [
        SourcePair(
            manifest=manifest,
            fields=tuple(FieldShard(field, paths[place]) for field, paths in others.items()),
        )
        for place, manifest in enumerate(cuts)
    ]


def _check_suffix(path: str) -> None:
    # What comes out of a pipe nobody can tell.
    if is_archive(path) or plain_name(path).endswith(".jsonl") or scheme(path) == "pipe":
        return
    raise ConfigError(
        "a shard is a .tar or a .jsonl, compressed or not",
        where=path,
        fix="Rename the file, or take it away",
    )


def _doubles(paths: Sequence[str]) -> str:
    """Say which shard is there twice, compressed and not."""
    both = set(paths) & {path.removesuffix(suffix) for path in paths for suffix in SUFFIXES}
    both -= {path for path in both if not any(path + suffix in paths for suffix in SUFFIXES)}
    return f": {min(both)} is there compressed, too" if both else ""
