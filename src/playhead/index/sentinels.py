"""Whether `.idx` files belong to the data as they are now, by size alone: for very many of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from playhead.errors import IndexFileError, PlayheadError, SourceNotFoundError, StaleIndexError
from playhead.index.sidecars import ends_right
from playhead.storage import access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.index.sidecars import Sidecar

__all__ = ["SidecarSize", "check_sentinels"]

_ENTRY_BYTES = 8
_CHECKERS = 16


class SidecarSize(NamedTuple):
    """What is known of an `.idx` without reading all of it."""

    records: int | None
    """Its records; None where there is no `.idx`."""
    error: PlayheadError | None
    """Why it does not belong to its data; None if it does."""


def check_sentinels(sidecars: Sequence[Sidecar]) -> list[SidecarSize]:
    """Compare the last entry of every `.idx` with the present size of its data.

    Parameters
    ----------
    sidecars
        The data files, local or remote, with the place of the `.idx` of each, if it exists.

    Returns
    -------
    list
        What was found for each, in order.

    Raises
    ------
    StorageError, OSError
        If a store fails.
    """
    with ThreadPoolExecutor(_CHECKERS) as pool:
        return list(pool.map(_check, sidecars))


def _check(sidecar: Sidecar) -> SidecarSize:
    try:
        size = access.size(sidecar.idx)
    except FileNotFoundError:
        return SidecarSize(None, None)
    if size < _ENTRY_BYTES or size % _ENTRY_BYTES:
        return SidecarSize(None, _stale(sidecar, f"the index has {size} bytes, no whole entries"))
    records = size // _ENTRY_BYTES - 1
    (last,) = access.read_ranges(sidecar.idx, [size - _ENTRY_BYTES], [_ENTRY_BYTES])
    sentinel = int.from_bytes(last, "little")
    try:
        now = access.size(sidecar.path)
    except SourceNotFoundError as error:
        return SidecarSize(records, error)
    if ends_right(sidecar, sentinel, now):
        return SidecarSize(records, None)
    what = f"the index was made for {sentinel:,} bytes of {sidecar.path}, which has {now:,}"
    return SidecarSize(records, _stale(sidecar, what))


def _stale(sidecar: Sidecar, what: str) -> IndexFileError:
    return StaleIndexError(
        what, where=sidecar.idx, fix="Build it again with `playhead index --force`"
    )
