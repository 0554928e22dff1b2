"""Objects of S3, Google, Azure and web servers."""

from __future__ import annotations

import threading
from collections import defaultdict
from functools import partial
from hashlib import blake2b
from posixpath import dirname
from typing import TYPE_CHECKING, Any, Final, TypeVar

from playhead.errors import DataError, NotSupportedError
from playhead.storage.base import NoRangesError, Stat
from playhead.storage.calls import Call, Requests
from playhead.storage.failures import (
    ShortAnswerError,
    ignores_ranges,
    is_behind_end,
    is_passing,
    is_unreachable,
    names_no_bucket,
    refuses_head,
    said,
    verdict,
    without_panic,
)
from playhead.storage.limits import limits
from playhead.storage.listing import found_by_listing, pages
from playhead.storage.near_ranges import near_together, taken_apart
from playhead.storage.object_places import object_of, open_store, place_of, server_of
from playhead.storage.object_stream import Part, streamed, streamed_at_once, version_of
from playhead.storage.obstore_library import obstore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.storage.base import ByteRange
    from playhead.storage.object_places import ObjectPlace

__all__ = ["MERGE_GAP", "ObjectStores"]

MERGE_GAP: Final = 64 * 1024
"""Bytes between two ranges up to which one request is cheaper than two."""

Result = TypeVar("Result")

# Where so many objects lie in one folder, a few pages of its listing say what all of them are.
_LISTED: Final = 200
# Stores that are open at once.
_STORES: Final = 256
# Objects that are looked at within one deadline.
_LOOKED_AT: Final = 4096


class ObjectStores:
    """All buckets, containers and web servers that this process asks.

    Parameters
    ----------
    gap
        Ranges with at most so many bytes between them are asked for together.

    Raises
    ------
    MissingExtraError
        If the library for them is not installed.
    """

    def __init__(self, gap: int = MERGE_GAP) -> None:
        self._library = obstore()
        self._gap = gap
        self._requests = Requests(server_of, verdict, said, is_unreachable)
        self._stores: dict[tuple[str, str, bool], Any] = {}
        self._lock = threading.Lock()
        # Which give parts of objects, as far as they were asked.
        self._ranges: dict[tuple[str, str], bool] = {}
        # Buckets that are there, as far as a missing object made one ask.
        self._buckets: set[tuple[str, str]] = set()

    def stats(self, uris: Sequence[str]) -> list[Stat]:
        """Look at objects, side by side; many of one folder by its listing.

        Raises
        ------
        SourceNotFoundError
            If one does not exist.
        StorageError
            If one cannot be looked at.
        """
        found = self._listed(uris)
        missing = [uri for uri in dict.fromkeys(uris) if uri not in found]
        for first in range(0, len(missing), _LOOKED_AT):
            some = missing[first : first + _LOOKED_AT]
            looked = self._all([partial(self._head, object_of(uri)) for uri in some], some)
            found.update(zip(some, looked, strict=True))
        return [_stat(found[uri]) for uri in uris]

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Read ranges of any objects, all at once, near ones of an object together.

        Returns
        -------
        list[bytes]
            One for each range, of exactly its size.

        Raises
        ------
        NoRangesError
            If the server gives whole objects only.
        SourceNotFoundError, DataError, StorageError
            If there is no such object, it ends before a range does, or it cannot be read.
        """
        blocks = near_together(ranges, self._gap)
        acts = [partial(self._block, block.span) for block in blocks]
        found = self._all(acts, [block.span.uri for block in blocks])
        return taken_apart(blocks, found, ranges)

    def read_files(self, uris: Sequence[str]) -> list[bytes | None]:
        """Read whole objects, all at once; None for one that does not exist.

        Raises
        ------
        StorageError
            If one cannot be read.
        """
        named = [uri for uri in uris if _is_object(uri)]
        calls = _calls([partial(self._whole, object_of(uri)) for uri in named], named)
        found = iter(self._requests.found(calls, named, Call(limits().deadline_seconds)))
        # What no object can be called is not there: a slip in one row is no error of all.
        return [next(found) if _is_object(uri) else None for uri in uris]

    def has_ranges(self, uri: str) -> bool:
        """Whether the server of an object gives parts of it; asked once for a server or bucket.

        Raises
        ------
        SourceNotFoundError, StorageError
            If the object does not exist, or the server cannot be asked.
        """
        place = object_of(uri)
        known = self._ranges.get(place.origin)
        return self._one(uri, partial(self._asked, place)) if known is None else known

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        """Give an object's bytes from `start` to its end, in blocks; the last may be shorter.

        Raises
        ------
        DataError
            If the object is replaced meanwhile.
        SourceNotFoundError, StorageError
            If it does not exist, or cannot be read.
        """
        place = object_of(uri)
        if self.has_ranges(uri):
            yield from streamed(uri, start, block_bytes, self._one, partial(self._part, place))
            return
        store = self._store(place, streams=True)
        ask = partial(self._library.get, store, place.path)
        yield from streamed_at_once(uri, start, block_bytes, self._one, ask)

    def list(self, folder: str) -> list[str]:
        """Name the objects under a folder, at any depth, sorted; none if there are none.

        Raises
        ------
        NotSupportedError
            If it is of a web server: those have no listings.
        StorageError
            If it cannot be listed.
        """
        place = place_of(folder)
        if place.scheme.startswith("http"):
            raise NotSupportedError(
                "a web server does not say which files it has",
                where=folder,
                fix="Name the files in the config, one by one or by a pattern such as {0..9}",
            )
        one = partial(self._one, folder)
        listing = pages(one, self._store(place), place.path.rstrip("/"))
        names = [meta["path"] for page in listing for meta in page]
        # Where people make folders by hand, they are objects too.
        return sorted(f"{place.store_uri}/{name}" for name in names if not name.endswith("/"))

    def write(self, uri: str, data: bytes) -> None:
        """Write an object, whole or not at all.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        place = object_of(uri)
        store = self._store(place, streams=True)
        # Web servers take a file in one piece only.
        parts = False if place.scheme.startswith("http") else None
        self._one(uri, lambda: self._library.put(store, place.path, data, use_multipart=parts))

    def _all(self, acts: Sequence[Callable[[], Result]], uris: Sequence[str]) -> list[Result]:
        """Make requests side by side, each again where that may help."""
        return self._requests.all(_calls(acts, uris), uris, Call(limits().deadline_seconds))

    def _one(self, uri: str, act: Callable[[], Result]) -> Result:
        return self._all([act], [uri])[0]

    def _store(self, place: ObjectPlace, *, streams: bool = False) -> Any:
        key = place.scheme, place.store, streams
        with self._lock:
            store = self._stores.get(key)
            if store is None:
                if len(self._stores) >= _STORES:
                    # Signed URLs are stores of their own, of which there is no end.
                    del self._stores[next(iter(self._stores))]
                store = self._stores[key] = open_store(place, streams=streams)
            return store

    def _head(self, place: ObjectPlace) -> Any:
        store = self._store(place)
        try:
            return self._library.head(store, place.path)
        except FileNotFoundError:
            self._check_bucket(place, store)
            raise
        except Exception as error:
            # A signed URL is good for one kind of request, and some servers know but one.
            if not (place.scheme.startswith("http") and refuses_head(error)):
                raise
        try:
            return self._library.get(store, place.path, options={"range": (0, 1)}).meta
        except Exception as error:
            if is_behind_end(error):
                return {"size": 0, "e_tag": None, "last_modified": None}
            if not ignores_ranges(error):
                raise
            return self._library.get(store, place.path).meta

    def _check_bucket(self, place: ObjectPlace, store: Any) -> None:
        """Raise what says that a bucket is missing: an answer without a body does not tell."""
        if place.scheme.startswith("http") or place.origin in self._buckets:
            return
        try:
            next(self._library.list(store, chunk_size=1), ())
        except Exception as error:
            if is_passing(error) or names_no_bucket(error):
                raise
            # Who may not list it is not told more.
        self._buckets.add(place.origin)

    def _listed(self, uris: Sequence[str]) -> dict[str, Any]:
        """What listings say of objects, where that is less work than asking for each."""
        folders: defaultdict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
        for uri in uris if len(uris) >= _LISTED else ():
            place = object_of(uri)
            if not place.scheme.startswith("http"):
                folders[place.scheme, place.store, dirname(place.path)][place.path] = uri
        found: dict[str, Any] = {}
        for (_, _, folder), names in folders.items():
            if len(names) >= _LISTED:
                uri = next(iter(names.values()))
                store = self._store(object_of(uri))
                metas = found_by_listing(partial(self._one, uri), store, folder, list(names))
                found |= {names[path]: meta for path, meta in metas.items()}
        return found

    def _block(self, span: ByteRange) -> bytes:
        """Bytes of an object, as many as were asked for."""
        uri, begin, count = span
        place = object_of(uri)
        if self._ranges.get(place.origin) is False:
            raise _no_ranges(uri)
        store = self._store(place)
        try:
            data = self._library.get_range(store, place.path, start=begin, length=count)
        except Exception as error:
            if not (is_behind_end(error) or ignores_ranges(error)):
                raise
            if is_behind_end(error) or self._ranges.get(place.origin) or self._asked(place):
                self._check_end(place, span)
                raise ShortAnswerError("another part of the object came") from None
            raise _no_ranges(uri) from None
        if len(data) == count:
            self._ranges[place.origin] = True
            return bytes(data)
        if len(data) < count:
            self._check_end(place, span)
        raise ShortAnswerError(f"{len(data)} bytes came where {count} were asked for")

    def _check_end(self, place: ObjectPlace, span: ByteRange) -> None:
        left = self._head(place)["size"] - span.offset
        if left < span.size:
            raise DataError(
                f"the object ends early: {span.size} bytes were expected and"
                f" {max(0, left)} are there",
                where=f"{span.uri}, byte {span.offset}",
                fix="If it was replaced, index it again; else restore it",
            )

    def _part(self, place: ObjectPlace, begin: int, count: int | None) -> Part:
        """At most so many bytes of an object, to its end if None; none behind its end."""
        how = {"offset": begin} if count is None else (begin, begin + count)
        store = self._store(place)
        try:
            answer = self._library.get(store, place.path, options={"range": how})
            data = bytes(answer.bytes())
        except Exception as error:
            # At the end of an object, or in an empty one, there is no range.
            if not (is_behind_end(error) or ignores_ranges(error)):
                raise
            meta = self._head(place)
            if begin < meta["size"]:
                if self._ranges.get(place.origin):
                    raise ShortAnswerError("another part of the object came") from None
                raise
            return Part(b"", meta["size"], version_of(meta))
        size = answer.meta["size"]
        wanted = size - begin if count is None else min(count, size - begin)
        if len(data) != wanted:
            raise ShortAnswerError(f"{len(data)} bytes came where {wanted} were asked for")
        return Part(data, size, version_of(answer.meta))

    def _whole(self, place: ObjectPlace) -> bytes:
        """An object; as a range, because such an answer says how long the object is."""
        if self._ranges.get(place.origin) is not False:
            try:
                return self._part(place, 0, None).data
            except Exception as error:
                if not ignores_ranges(error):
                    raise
        return bytes(self._library.get(self._store(place), place.path).bytes())

    def _asked(self, place: ObjectPlace) -> bool:
        """Whether a store gives parts of an object."""
        key = place.origin
        try:
            self._library.get_range(self._store(place), place.path, start=0, length=1)
        except Exception as error:
            if is_behind_end(error):
                return True
            if not ignores_ranges(error):
                raise
            if self._head(place)["size"] == 0:
                # An empty object is no sign of anything.
                return True
            self._ranges[key] = False
            return False
        self._ranges[key] = True
        return True


def _is_object(uri: str) -> bool:
    try:
        object_of(uri)
    except NotSupportedError:
        return False
    return True


def _calls(
    acts: Sequence[Callable[[], Result]], uris: Sequence[str]
) -> list[Callable[[Call], Result]]:
    return [
        lambda _, act=act, uri=uri: without_panic(act, uri)
        for act, uri in zip(acts, uris, strict=True)
    ]


def _no_ranges(uri: str) -> NoRangesError:
    return NoRangesError(
        "the server gives whole objects only, not parts of them",
        where=uri,
        fix="Copy the data to a disk, or to a server that answers requests with Range",
    )


def _stat(meta: Any) -> Stat:
    # Listings and answers differ in how they write the same ETag.
    version = version_of(meta).removeprefix("W/").strip('"')
    digest = blake2b(version.encode(), digest_size=8).digest()
    return Stat(meta["size"], int.from_bytes(digest, "little") >> 1 or 1)
