"""Finding the members of archives by name, in 25 bytes a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.formats import BadRowError
from playhead.index.tar import scan_tar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ArchiveIndex", "TarIndex"]

_INDEX_FIX = "Make the manifest and the tar from the same data"


class Places(NamedTuple):
    """Where members lie in their archives; arrays of shape (K,)."""

    offset: NDArray[np.int64]
    """First byte of the payload."""
    size: NDArray[np.int64]
    """Bytes of payload."""


class TarIndex:
    """The members of one archive, sorted by a hash of their names.

    Parameters
    ----------
    path
        The archive.
    """

    def __init__(self, path: str) -> None:
        members = scan_tar(path)
        hashes = _hashes(members.names)
        order = np.argsort(hashes, kind="stable")
        self.path = path
        self._hashes = hashes[order]
        self._offset = members.payload[order]
        self._size = members.size[order]
        self._used = np.zeros(len(order), np.bool_)
        self._double = np.zeros(len(order), np.bool_)
        np.equal(self._hashes[1:], self._hashes[:-1], out=self._double[:-1])

    @property
    def num_unused(self) -> int:
        """Members that no row has asked for."""
        return int((~self._used).sum())

    def find(self, names: Sequence[str]) -> Places:
        """Find members by name.

        Raises
        ------
        BadRowError
            If one is missing, or there are two of that name.
        """
        wanted = _hashes(names)
        at = np.searchsorted(self._hashes, wanted)
        found = np.minimum(at, max(len(self._hashes) - 1, 0))
        missing = self._hashes[found] != wanted if len(self._hashes) else np.ones(len(at), np.bool_)
        if missing.any():
            name = names[int(np.argmax(missing))]
            raise BadRowError(f"no member {name!r} in the tar {self.path}", fix=_INDEX_FIX)
        if self._double[found].any():
            index = int(np.argmax(self._double[found]))
            places = self._offset[self._hashes == wanted[index]].tolist()
            raise BadRowError(
                f"the tar {self.path} holds {names[index]!r} more than once, at bytes {places}",
                fix="Give every member a name of its own",
            )
        self._used[found] = True
        return Places(self._offset[found], self._size[found])


class ArchiveIndex:
    """The archives of a source, each scanned when a row first asks for it.

    Parameters
    ----------
    paths
        The archives.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._tars: dict[int, TarIndex] = {}

    def find(self, tar: NDArray[np.int32], names: Sequence[str]) -> Places:
        """Find members by the number of their archive and their name; shapes (K,).

        Raises
        ------
        BadRowError
            If one is missing or ambiguous.
        """
        offset, size = np.zeros(len(tar), np.int64), np.zeros(len(tar), np.int64)
        for number in np.unique(tar).tolist():
            index = self._tars.get(number)
            if index is None:
                index = self._tars[number] = TarIndex(self._paths[number])
            at = np.flatnonzero(tar == number)
            offset[at], size[at] = index.find([names[i] for i in at.tolist()])
        return Places(offset, size)

    @property
    def num_unused(self) -> int:
        """Members that no row has asked for, of the archives that were scanned."""
        return sum(index.num_unused for index in self._tars.values())


def _hashes(names: Sequence[str]) -> NDArray[np.int64]:
    """Hash names within this process; `tar` writes `./a` where others write `a`."""
    return np.array([hash(name.removeprefix("./")) for name in names], np.int64)
