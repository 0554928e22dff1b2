"""Which files are read from whole copies on this machine, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.storage.access import is_remote
from playhead.storage.get_batch import served_by_aistore, wants_get_batch
from playhead.storage.shard_cache import must_be_whole, shard_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from playhead.storage.shard_cache import CacheSettings

__all__ = ["Kept", "is_kept", "kept_among"]


def is_kept(uri: str, *, by_shard: bool) -> bool:
    """Whether a file is read from a whole copy.

    Parameters
    ----------
    uri
        The file.
    by_shard
        Whether it is read in a pass that goes from shard to shard: such a pass needs most of a
        file, and soon.

    Examples
    --------
    >>> is_kept("s3://b/a.tar", by_shard=True), is_kept("/data/a.tar", by_shard=True)
    (True, False)
    >>> is_kept("/data/a.tar.gz", by_shard=False)
    True
    """
    if by_shard and is_remote(uri) and not (served_by_aistore(uri) and wants_get_batch()):
        return True
    # Asked last: it may take a request.
    return must_be_whole(uri)


def kept_among(uris: Sequence[str], *, by_shard: bool) -> list[int]:
    """Which of many files are read from whole copies; those that begin and end alike go together.

    Parameters
    ----------
    uris
        The files.
    by_shard
        As `is_kept`.
    """
    known: dict[tuple[str, str], bool] = {}
    kept: list[int] = []
    for number, uri in enumerate(uris):
        alike = "" if uri.startswith("/") else uri[: uri.find("/", 8)], uri[-5:]
        if alike not in known:
            known[alike] = is_kept(uri, by_shard=by_shard)
        if known[alike]:
            kept.append(number)
    return kept


class Kept:
    """Reads files from whole copies.

    Parameters
    ----------
    settings
        Where they are.
    """

    def __init__(self, settings: CacheSettings) -> None:
        self._settings = settings

    def sizes(self, uris: Sequence[str]) -> list[int]:
        """Bytes of files where they lie, compressed if they are; all are looked at at once.

        Raises
        ------
        SourceNotFoundError, StorageError, OSError
            If one is not there or cannot be looked at.
        """
        return [shard.size for shard in shard_cache(self._settings).look(uris)]

    def read(
        self, uri: str, offsets: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> list[bytes] | None:
        """Read byte ranges; see `ShardCache.read`."""
        return shard_cache(self._settings).read(uri, offsets, sizes)
