"""Finding the members of archives by name, in 25 bytes a member."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.formats import BadRowError
from playhead.index.tarhop import Archive

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
        names, offset, size = array("q"), array("q"), array("q")
        for member in Archive(path).hop():
            names.append(_hash(member.name))
            offset.append(member.payload)
            size.append(member.size)
        order = np.argsort(np.array(names, np.int64), kind="stable")
        self.path = path
        self._hashes = np.array(names, np.int64)[order]
        self._offset = np.array(offset, np.int64)[order]
        self._size = np.array(size, np.int64)[order]
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
        wanted = np.array([_hash(name) for name in names], np.int64)
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
        for number in sorted({int(number) for number in tar}):
            index = self._tars.get(number)
            if index is None:
                index = self._tars[number] = TarIndex(self._paths[number])
            at = np.flatnonzero(tar == number)
            offset[at], size[at] = index.find([names[int(i)] for i in at])
        return Places(offset, size)

    @property
    def num_unused(self) -> int:
        """Members that no row has asked for, of the archives that were scanned."""
        return sum(index.num_unused for index in self._tars.values())


def _hash(name: str) -> int:
    """Hash a name within this process; `tar` writes `./a` where others write `a`."""
    return hash(name.removeprefix("./"))
