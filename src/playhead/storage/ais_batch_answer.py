"""The answer to a batch request: a tar whose members are counted and matched by their names."""

from __future__ import annotations

import tarfile
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final

from playhead.storage.ais_objects import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.storage.ais_objects import Wanted

__all__ = ["BatchAnswer", "answer_name"]

_MISSING: Final = "__404__/"


def answer_name(wanted: Wanted) -> str:
    """What the member of the answer is called.

    Examples
    --------
    >>> from playhead.storage.ais_objects import Wanted
    >>> answer_name(Wanted("ais://speech/2024/a.tar", "./1.flac"))
    'speech/2024/a.tar/1.flac'
    """
    name = name_of(wanted.uri)
    return normpath("/".join(filter(None, (name.bucket, name.key, wanted.member))))


class BatchAnswer:
    """What has come of what one batch request asks for.

    Parameters
    ----------
    asked
        What it asks for, nothing twice, and no two objects whose members have one name.

    Attributes
    ----------
    found
        What came.
    absent
        What is said not to be there, or came empty, which before 5.0 looks the same.
    broke_off
        Whether the request or its connection failed: an answer that ends by itself does not.
    """

    def __init__(self, asked: Sequence[Wanted]) -> None:
        self.found: dict[Wanted, bytes] = {}
        self.absent: set[Wanted] = set()
        self.broke_off = False
        self._asked = asked
        self._received = 0
        self._waiting: dict[str, list[Wanted]] = {}
        for one in asked:
            self._waiting.setdefault(answer_name(one), []).append(one)

    @property
    def rest(self) -> list[Wanted]:
        """What it is still silent about; nothing if all members came, whatever they are called."""
        if self._received >= len(self._asked):
            return []
        return [one for one in self._asked if one not in self.found and one not in self.absent]

    def read(self, raw: Any) -> None:
        """Take what comes until it ends; what came before an error stays.

        Parameters
        ----------
        raw
            Where the tar is read from.

        Raises
        ------
        TarError
            If it ends inside a member.
        OSError, HTTPError
            If the connection does.
        """
        with tarfile.open(fileobj=raw, mode="r|", bufsize=64 << 10) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is not None:
                    self.take(member.name, file.read())

    def take(self, name: str, data: bytes) -> None:
        """Count one member, and give it to what has its name, and its size where that is known.

        Parameters
        ----------
        name
            What it is called.
        data
            What it holds.
        """
        self._received += 1
        waiting = self._waiting.get(normpath(name.removeprefix(_MISSING)), [])
        if name.startswith(_MISSING):
            # An archive that cannot be opened is named without the member.
            for some in (waiting,) if waiting else self._members_of(name.removeprefix(_MISSING)):
                self.absent.add(some.pop(0))
            return
        for place, one in enumerate(waiting):
            if one.size in (None, len(data)):
                del waiting[place]
                if data:
                    self.found[one] = data
                else:
                    self.absent.add(one)
                return

    def _members_of(self, name: str) -> list[list[Wanted]]:
        archive = normpath(name)
        return [
            some
            for some in self._waiting.values()
            if some and some[0].member and answer_name(some[0]._replace(member="")) == archive
        ]
