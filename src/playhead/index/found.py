"""What a search for data files found, and that no two of them share an `.idx`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, PlayheadError
from playhead.index.sidecars import Kind, Sidecar
from playhead.paths import index_path, scheme

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Blend", "Discovery", "Problem", "merge", "place"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something that is named and cannot be indexed."""

    path: str
    """The file or folder."""
    kind: Kind
    """What it was taken for."""
    error: PlayheadError
    """Why not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Blend:
    """A part of a config that names data."""

    config: str
    """The YAML file."""
    section: str | None
    """Its dotted name in the file; None for the file as a whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Discovery:
    """What was found."""

    sidecars: tuple[Sidecar, ...] = ()
    """Data files and their `.idx`, in the order of their first mention."""
    problems: tuple[Problem, ...] = ()
    """What is named and is not there."""
    notes: tuple[str, ...] = ()
    """What a person should know, one sentence each."""
    blends: tuple[Blend, ...] = ()
    """The configs, and the parts of each, that data were found in."""


def merge(discoveries: Iterable[Discovery]) -> Discovery:
    """Put discoveries together, each data file once.

    Parameters
    ----------
    discoveries
        Of several commands' arguments.

    Raises
    ------
    ConfigError
        Two data files, or two readings of one, would have the same `.idx`; or an `.idx` would lie
        outside its root.
    """
    found = list(discoveries)
    owner: dict[str, Sidecar] = {}
    for sidecar in (sidecar for one in found for sidecar in one.sidecars):
        first = owner.setdefault(os.path.abspath(sidecar.idx), sidecar)  # noqa: PTH100  (no resolving)
        if first.kind != sidecar.kind:
            raise ConfigError(
                f"the file {sidecar.path} is named as {first.kind} and as {sidecar.kind}, "
                "whose indexes differ",
                where=sidecar.idx,
                fix="Use one type of entry for it, or two `indexes_root`s",
            )
        if not _is_same_file(first.path, sidecar.path):
            raise ConfigError(
                f"the files {first.path} and {sidecar.path} would have the same index",
                where=sidecar.idx,
                fix="Name the files by absolute paths, or use two `indexes_root`s",
            )
    return Discovery(
        sidecars=tuple(owner.values()),
        problems=tuple(dict.fromkeys(problem for one in found for problem in one.problems)),
        notes=tuple(dict.fromkeys(note for one in found for note in one.notes)),
        blends=tuple(dict.fromkeys(blend for one in found for blend in one.blends)),
    )


def place(path: str, kind: Kind, indexes_root: str | None) -> Sidecar:
    """Say where the `.idx` of a data file belongs.

    Parameters
    ----------
    path
        The data file.
    kind
        What it is.
    indexes_root
        A folder, or None for beside the data.

    Raises
    ------
    ConfigError
        The path leads out of the root.
    """
    idx = index_path(path, indexes_root)
    if indexes_root is not None and ".." in Path(path).parts:
        inside = os.path.abspath(indexes_root)  # noqa: PTH100  (no resolving of links)
        if os.path.commonpath([inside, os.path.abspath(idx)]) != inside:  # noqa: PTH100
            raise ConfigError(
                f"the index of {path} would lie outside {indexes_root}",
                where=idx,
                fix="Name the data by an absolute path",
            )
    return Sidecar(path=path, kind=kind, idx=idx)


def _is_same_file(one: str, other: str) -> bool:
    if one == other:
        return True
    if scheme(one) or scheme(other):
        return False
    return os.path.abspath(one) == os.path.abspath(other)  # noqa: PTH100
