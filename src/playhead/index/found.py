"""What a search for data files found, and that no two of them share an `.idx`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import ConfigError, PlayheadError
from playhead.index.sidecars import Kind, Sidecar
from playhead.paths import index_path, scheme

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Blend", "Discovery", "Problem", "merge", "owners", "place"]


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
    owner = owners(sidecar for one in found for sidecar in one.sidecars)
    return Discovery(
        sidecars=tuple(owner.values()),
        problems=tuple(dict.fromkeys(problem for one in found for problem in one.problems)),
        notes=tuple(dict.fromkeys(note for one in found for note in one.notes)),
        blends=tuple(dict.fromkeys(blend for one in found for blend in one.blends)),
    )


def owners(sidecars: Iterable[Sidecar]) -> dict[str, Sidecar]:
    """Say which data file each `.idx` belongs to, in the order of their first mention.

    Parameters
    ----------
    sidecars
        Data files and their `.idx`; one may come several times.

    Raises
    ------
    ConfigError
        Two data files, or two readings of one, would have the same `.idx`.
    """
    owner: dict[str, Sidecar] = {}
    for sidecar in sidecars:
        first = owner.setdefault(_plain(sidecar.idx), sidecar)
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
                fix="Name the files by absolute paths and by one URL each, or use two "
                "`indexes_root`s",
            )
    return owner


def place(path: str, kind: Kind, indexes_root: str | None) -> Sidecar:
    """Say where the `.idx` of a data file belongs.

    Parameters
    ----------
    path
        The data file.
    kind
        What it is.
    indexes_root
        A folder, also of a store, or None for beside the data.

    Raises
    ------
    ConfigError
        The path leads out of the root.
    """
    idx = index_path(path, indexes_root)
    if indexes_root is not None and ".." in path.split("/"):
        # A store takes `..` for a name like others, a disk does not.
        inside = os.path.abspath(indexes_root)  # noqa: PTH100  (no resolving of links)
        if scheme(indexes_root) or os.path.commonpath([inside, _plain(idx)]) != inside:
            raise ConfigError(
                f"the index of {path} would lie outside {indexes_root}",
                where=idx,
                fix="Name the data by an absolute path",
            )
    return Sidecar(path=path, kind=kind, idx=idx)


def _plain(path: str) -> str:
    return path if scheme(path) else os.path.abspath(path)  # noqa: PTH100  (no resolving)


def _is_same_file(one: str, other: str) -> bool:
    return one == other or _plain(one) == _plain(other)
