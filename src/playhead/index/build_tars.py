"""Finding the members of archives by name, in 25 bytes a member."""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from playhead.errors import ArchiveError
from playhead.formats import BadRowError
from playhead.index.build_audios import TurnPlaces
from playhead.index.foreign import member_offsets
from playhead.index.tarhop import Archive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from playhead.formats import RowAudio

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
    name_of
        What is looked for of a member's name; all of it by default.
    known
        Where its members begin, if an index says it, shape (N,).
    """

    def __init__(
        self,
        path: str,
        name_of: Callable[[str], str] = str,
        known: NDArray[np.int64] | None = None,
    ) -> None:
        names, offset, size = array("q"), array("q"), array("q")
        for member in Archive(path, known=known).hop():
            names.append(_hash(name_of(member.name)))
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

    def has(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Which of the names are members, shape (K,)."""
        wanted = np.array([_hash(name) for name in names], np.int64)
        return np.isin(wanted, self._hashes)

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
    offsets_from
        A pack of NeMo that says where their members begin; None where there is none.
    """

    def __init__(self, paths: Sequence[str], offsets_from: str | None = None) -> None:
        self._paths = paths
        self._offsets_from = offsets_from
        self._tars: dict[int, TarIndex] = {}
        self._collection: dict[tuple[int, Callable[[str], str]], TarIndex] = {}

    def find(self, tar: NDArray[np.int32], names: Sequence[str]) -> Places:
        """Find members by the number of their archive and their name; shapes (K,).

        Raises
        ------
        BadRowError
            If one is missing or ambiguous.
        """
        offset, size = np.zeros(len(tar), np.int64), np.zeros(len(tar), np.int64)
        for number in sorted({int(number) for number in tar}):
            at = np.flatnonzero(tar == number)
            offset[at], size[at] = self._index(number).find([names[int(i)] for i in at])
        return Places(offset, size)

    def find_turns(self, turns: Sequence[RowAudio], first_shard: int) -> TurnPlaces:
        """Find audio turns: members of a known archive, of any, or plain files.

        Parameters
        ----------
        turns
            The turns.
        first_shard
            Place of the first archive in the leaf's shard table.

        Raises
        ------
        BadRowError
            If a member is missing, or there are two of its name.
        """
        at = np.flatnonzero(np.array([turn.member is not None for turn in turns], np.bool_))
        tar = np.array([turn.tar for turn in turns], np.int32)[at]
        known, unknown = at[tar >= 0], at[tar < 0]
        file = np.full(len(turns), -1, np.int32)
        offset, size = np.zeros(len(turns), np.int64), np.zeros(len(turns), np.int64)
        file[known] = tar[tar >= 0]
        offset[known], size[known] = self.find(file[known], _names(turns, known))
        file[unknown], offset[unknown], size[unknown] = self._anywhere(_names(turns, unknown))
        file[at] += np.int32(first_shard)
        return TurnPlaces(file, offset, size)

    def _anywhere(self, names: list[str]) -> TurnPlaces:
        """Find members in all archives together, by their whole names or by the last part."""
        file = np.full(len(names), -1, np.int32)
        offset, size = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
        for name_of in (str, _last_part):
            todo = np.flatnonzero(file < 0)
            wanted = [name_of(names[int(i)]) for i in todo]
            for number in range(len(self._paths)) if wanted else ():
                index = self._collected(number, name_of)
                at = np.flatnonzero(index.has(wanted))
                twice = at[file[todo[at]] >= 0]
                if len(twice):
                    tars = self._paths[int(file[todo[twice[0]]])], self._paths[number]
                    raise BadRowError(
                        f"the member {wanted[int(twice[0])]!r} is in {tars[0]} and in {tars[1]}",
                        fix="Give every member a name of its own",
                    )
                places = index.find([wanted[int(i)] for i in at])
                file[todo[at]], offset[todo[at]], size[todo[at]] = number, *places
        if (file < 0).any():
            raise BadRowError(
                f"no member {names[int(np.argmin(file))]!r} in any of the tars", fix=_INDEX_FIX
            )
        return TurnPlaces(file, offset, size)

    def _collected(self, number: int, name_of: Callable[[str], str]) -> TarIndex:
        index = self._collection.get((number, name_of))
        if index is None:
            index = self._collection[number, name_of] = self._scan(number, name_of)
        return index

    def _index(self, number: int) -> TarIndex:
        index = self._tars.get(number)
        if index is None:
            index = self._tars[number] = self._scan(number)
        return index

    def _scan(self, number: int, name_of: Callable[[str], str] = str) -> TarIndex:
        path, pack = self._paths[number], self._offsets_from
        return TarIndex(path, name_of, None if pack is None else member_offsets(pack, path))

    def scan_all(self) -> None:
        """Scan all archives, so that members are counted which nothing asks for."""
        for number in range(len(self._paths)):
            # One that cannot be read is of no use, and nothing needs it.
            with suppress(ArchiveError):
                self._index(number)

    @property
    def num_unused(self) -> int:
        """Members that no row has asked for, of the archives that were scanned."""
        return sum(index.num_unused for index in self._tars.values())


def _names(turns: Sequence[RowAudio], at: NDArray[np.int64]) -> list[str]:
    return [turns[int(number)].member or "" for number in at]


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def _hash(name: str) -> int:
    """Hash a name within this process; `tar` writes `./a` where others write `a`."""
    return hash(name.removeprefix("./"))
