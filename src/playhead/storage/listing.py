"""The objects under a prefix, a page at a time."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final

from playhead.storage.obstore_library import obstore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["found_by_listing", "pages"]

PAGE: Final = 1000
# A folder may hold much more than what is looked for in it.
_MORE_PAGES: Final = 2


def pages(
    one: Callable[[Callable[[], list[Any]]], list[Any]],
    store: Any,
    prefix: str,
    after: str | None = None,
) -> Iterator[list[Any]]:
    """Give what the library says of the objects under a prefix, in the order of their names.

    Parameters
    ----------
    one
        Makes a request, again where that may help.
    store
        The library's store.
    prefix
        A folder; everything at any depth is given.
    after
        Begin after this name.
    """
    listing: list[Any] = []

    def next_page() -> list[Any]:
        # After a failure the rest is asked for anew.
        if not listing:
            listing.append(obstore().list(store, prefix or None, offset=after, chunk_size=PAGE))
        try:
            return list(next(listing[0], ()))
        except Exception:
            listing.clear()
            raise

    while page := one(next_page):
        yield page
        after = page[-1]["path"]


def found_by_listing(
    one: Callable[[Callable[[], list[Any]]], list[Any]],
    store: Any,
    folder: str,
    paths: Sequence[str],
) -> dict[str, Any]:
    """Look for objects of one folder in its listing, as long as that is not too long.

    Returns
    -------
    dict[str, Any]
        What the library says of each by its path; those that were not met are missing.
    """
    wanted = set(paths)
    found: dict[str, Any] = {}
    # Names are listed in order: what stands before the first is not needed.
    first = min(paths)
    most = _MORE_PAGES * ceil(len(wanted) / PAGE) + 1
    for number, page in enumerate(pages(one, store, folder, first[:-1] or None)):
        found |= {meta["path"]: meta for meta in page if meta["path"] in wanted}
        if len(found) == len(wanted) or number + 1 == most:
            break
    return found
