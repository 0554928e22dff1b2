"""Lists of the shards that loaders need now and next, for all processes of a machine to see."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from playhead.storage.held import Held, hold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Shard", "WantedList", "wanted_shards"]

_SUFFIX = ".wanted"


class Shard(NamedTuple):
    """One state of a file or object."""

    uri: str
    """Where it is."""
    size: int
    """Bytes; 0 where nobody knows before it was read."""
    version: int
    """What `Stat.version` says of it."""

    @property
    def key(self) -> str:
        """What its copy is called: another state of the same object has another one."""
        return blake2b(
            f"{self.version} {self.size} {self.uri}".encode(), digest_size=16
        ).hexdigest()


class WantedList:
    """What one loader needs, first things first; it counts for as long as its process lives.

    Parameters
    ----------
    folder
        Where the shards are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}-{os.urandom(6).hex()}{_SUFFIX}"
        self._held: Held | None = None

    def publish(self, shards: Sequence[Shard]) -> None:
        """Replace the list.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        # The lock says that the writer lives; it goes along with the file that takes the name.
        fresh = self._path.with_suffix(".list")
        with suppress(OSError):
            fresh.unlink()
        held = hold(fresh, create=True)
        if held is None:
            return
        try:
            os.write(held.descriptor, msgspec.json.encode(shards))
            fresh.replace(self._path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            held.close()
            raise
        self.withdraw(keep_file=True)
        self._held = held

    def withdraw(self, *, keep_file: bool = False) -> None:
        """Need nothing any more."""
        if self._held is None:
            return
        if not keep_file:
            with suppress(OSError):
                self._path.unlink()
        self._held.close()
        self._held = None


def wanted_shards(folder: Path) -> dict[Shard, int]:
    """Return what living processes need, with how soon: the place in the list where it is first.

    Lists of dead processes are removed.
    """
    soonest: dict[Shard, int] = {}
    for path in folder.glob(f"*{_SUFFIX}"):
        dead = hold(path)
        if dead is not None:
            with closing(dead), suppress(OSError):
                path.unlink()
            continue
        try:
            shards = msgspec.json.decode(path.read_bytes(), type=list[Shard])
        except (OSError, msgspec.MsgspecError):
            continue
        for place, shard in enumerate(shards):
            soonest[shard] = min(place, soonest.get(shard, place))
    return soonest
