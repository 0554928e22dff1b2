"""The iterator of a loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Batches"]


class Batches(Iterator[Any]):
    """An iterator of a loader; it ends when the loader has a newer one.

    Parameters
    ----------
    is_live
        Whether an iterator is the loader's newest.
    fetch
        Gives the next batch.
    """

    def __init__(self, is_live: Callable[[Iterator[Any]], bool], fetch: Callable[[], Any]) -> None:
        self._is_live = is_live
        self._fetch = fetch

    def __next__(self) -> Any:
        if not self._is_live(self):
            raise StopIteration
        return self._fetch()
