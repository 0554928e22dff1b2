"""Whether files are those that were indexed, found out when they are first read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.errors import StaleIndexError
from playhead.fetch.member_checks import REINDEX
from playhead.storage import access

if TYPE_CHECKING:
    from playhead.fetch.kept import Kept

__all__ = ["Freshness"]


class Freshness:
    """Compares the sizes of files with what the index knows of them, each once in a process.

    Parameters
    ----------
    kept
        What knows the files of which there are whole copies.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._known: set[str] = set()
        # Bytes as they were indexed, and whether there is a whole copy.
        self._new: dict[str, tuple[int, bool]] = {}

    def expect(self, path: str, indexed: int, *, kept: bool = False) -> None:
        """Have a file compared by the next `check`.

        Parameters
        ----------
        path
            The file.
        indexed
            Its bytes when it was indexed.
        kept
            Whether it is read from a whole copy.
        """
        if path not in self._known:
            self._new[path] = indexed, kept

    def check(self) -> None:
        """Look at all files that are new, those of one store side by side.

        Raises
        ------
        StaleIndexError
            If one has another size.
        SourceNotFoundError, StorageError, OSError
            If one is not there or cannot be looked at.
        """
        if not self._new:
            return
        new, self._new = self._new, {}
        copies = [path for path, (_, kept) in new.items() if kept]
        others = [path for path, (_, kept) in new.items() if not kept]
        found = dict(zip(copies, self._kept.sizes(copies), strict=True))
        remote = list(filter(access.is_remote, others))
        found.update(
            (path, stat.size) for path, stat in zip(remote, access.stats(remote), strict=True)
        )
        for path, (indexed, _) in new.items():
            # Looking at a file of a disk also lets go of it if it was replaced.
            size = found[path] if path in found else access.size(path)
            if size != indexed:
                raise StaleIndexError(
                    f"the file has {size} bytes and had {indexed} when it was indexed",
                    where=path,
                    fix=REINDEX,
                )
            self._known.add(path)
