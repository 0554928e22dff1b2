"""Names of members that begin with `./`, or do not: one name, which servers tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playhead.storage.ais_objects import Wanted

__all__ = ["Spelling"]

_HERE: Final = "./"


class Spelling:
    """Knows which archives write their members as `./a`, once one was found to."""

    def __init__(self) -> None:
        self._prefix: dict[str, str] = {}

    def of(self, wanted: Wanted) -> Wanted:
        """What to ask for first: as the archive writes it, if that is known, else as it is.

        Examples
        --------
        >>> from playhead.storage.ais_objects import Wanted
        >>> spelling, one = Spelling(), Wanted("ais://b/a.tar", "1.flac")
        >>> spelling.learn(Spelling.other(one))
        >>> spelling.of(one).member
        './1.flac'
        """
        prefix = self._prefix.get(wanted.uri)
        if prefix is None or not wanted.member:
            return wanted
        return wanted._replace(member=prefix + wanted.member.removeprefix(_HERE))

    @staticmethod
    def other(wanted: Wanted) -> Wanted:
        """The same member in the other spelling.

        Examples
        --------
        >>> from playhead.storage.ais_objects import Wanted
        >>> Spelling.other(Wanted("ais://b/a.tar", "./1.flac")).member
        '1.flac'
        """
        bare = wanted.member.removeprefix(_HERE)
        return wanted._replace(member=_HERE + bare if bare == wanted.member else bare)

    def learn(self, wanted: Wanted) -> None:
        """Note that this spelling was the right one where the other was wrong."""
        self._prefix[wanted.uri] = _HERE if wanted.member.startswith(_HERE) else ""
