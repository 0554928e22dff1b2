"""AIStore, through its official client."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import DataError, SourceNotFoundError
from playhead.storage.ais_client import (
    ShortAnswerError,
    is_unreachable,
    missing_object,
    said,
    status_of,
    verdict,
)
from playhead.storage.ais_objects import AisObjects, Answer, Wanted, name_of
from playhead.storage.ais_spelling import Spelling
from playhead.storage.aistore_batch import Batches
from playhead.storage.base import ByteRange, Stat
from playhead.storage.calls import Call, Requests
from playhead.storage.limits import limits
from playhead.storage.near_ranges import near_together, of_distinct_sizes, taken_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MERGE_GAP", "AIStore"]

MERGE_GAP: Final = 64 << 10
"""Bytes between two ranges up to which one request is cheaper than two, each with a redirect."""


class AIStore:
    """A cluster of AIStore, where `AIS_ENDPOINT` says; a `Store`."""

    def __init__(self) -> None:
        self.objects = AisObjects()
        server = f"AIStore at {self.objects.endpoint}"
        self.requests = Requests(lambda _: server, verdict, said, is_unreachable)
        self.batches = Batches(self.objects, self.requests)
        self._spelling = Spelling()

    def stats(self, uris: Sequence[str]) -> list[Stat]:
        """See `Store.stats`."""
        return self._all([partial(self._stat, uri) for uri in uris], uris)

    def read(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """See `Store.read`."""
        blocks = near_together(ranges, MERGE_GAP)
        acts = [partial(self.objects.get, Wanted(one.uri, "", *one[1:])) for one, _ in blocks]
        return taken_apart(blocks, self._all(acts, [one.uri for one, _ in blocks]), ranges)

    def read_together(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Do as `read`, with one request for all ranges where the server has such.

        Raises
        ------
        SourceNotFoundError, DataError, StorageError
            As `Store.read`.
        """
        # Answers bear the name of the object alone, whichever of its ranges they are.
        blocks = of_distinct_sizes(near_together(ranges, MERGE_GAP))
        found: list[bytes] = []
        for (span, _), data in zip(
            blocks, self.batch([Wanted(one.uri, "", *one[1:]) for one, _ in blocks]), strict=True
        ):
            if data is None:
                raise missing_object(span.uri)
            found.append(data)
        return taken_apart(blocks, found, ranges)

    def get(self, wanted: Sequence[Wanted], call: Call | None = None) -> list[bytes | None]:
        """Read objects, members of archives and ranges, a request for each.

        A member that is not there is asked for once more, with `./` before its name or without.

        Parameters
        ----------
        wanted
            What to read.
        call
            The call that this is the rest of, if of one.

        Returns
        -------
        list[bytes | None]
            None for an object or a member that exists nowhere.

        Raises
        ------
        DataError, StorageError
            As `Store.read`.
        """
        acts = [partial(self._get, one) for one in wanted]
        places = [one.where for one in wanted]
        return self.requests.found(acts, places, call or Call(limits().deadline_seconds))

    def _get(self, wanted: Wanted, call: Call) -> bytes:
        try:
            return self.objects.get(wanted, call)
        except Exception as error:
            gone = isinstance(verdict(error, wanted.where), SourceNotFoundError)
            if not (gone and wanted.member):
                raise
            other = Spelling.other(wanted)
            data = self.objects.get(other, call)
            self._spelling.learn(other)
            return data

    def batch(self, wanted: Sequence[Wanted]) -> list[bytes | None]:
        """Read objects, members of archives and ranges with as few requests as the server allows.

        What a batch does not bring, for whatever reason, is asked for again: in a smaller batch,
        then by itself, which also fetches what the cluster does not have yet.

        Parameters
        ----------
        wanted
            What to read.

        Returns
        -------
        list[bytes | None]
            None for an object or a member that exists nowhere.

        Raises
        ------
        DataError, StorageError
            As `Store.read`.
        """
        call = Call(limits().deadline_seconds)
        asked = list(map(self._spelling.of, wanted))
        distinct = list(dict.fromkeys(asked))
        found: dict[Wanted, bytes | None] = {**self.batches.read(distinct, call)}
        rest = [one for one in distinct if one not in found]
        found.update(zip(rest, self.get(rest, call), strict=True))
        return [found[one] for one in asked]

    def read_files(self, uris: Sequence[str]) -> Sequence[bytes | None]:
        """Read whole objects, side by side."""
        return self.get([Wanted(uri) for uri in uris])

    def has_ranges(self, uri: str) -> bool:  # noqa: ARG002 - all servers have
        """Always: clusters give parts of objects."""
        return True

    def stream(self, uri: str, start: int = 0, block_bytes: int = 4 << 20) -> Iterator[bytes]:
        """See `Store.stream`; the deadline is each block's own."""
        stream = _Stream(self.objects, uri, start)
        try:
            while True:
                act = partial(stream.read, block_bytes)
                block = self._all([act], [uri])[0]
                if not block:
                    return
                stream.at += len(block)
                yield block
        finally:
            stream.close()

    def list(self, folder: str) -> list[str]:
        """See `Store.list`."""
        name = name_of(folder)
        bucket = self.objects.client.bucket(name.bucket, provider=name.provider)
        prefix = f"{name.key.rstrip('/')}/" if name.key.strip("/") else ""
        root = folder[: folder.index("://") + 3] + name.bucket

        def page(token: str, uuid: str, call: Call) -> Any:
            del call
            return bucket.list_objects(
                prefix=prefix, props="name", uuid=uuid, continuation_token=token
            )

        names: list[str] = []
        token = uuid = ""
        while True:
            found = self._all([partial(page, token, uuid)], [folder])[0]
            names += [f"{root}/{entry.name}" for entry in found.entries]
            token, uuid = found.continuation_token, found.uuid
            if not token:
                return sorted(names)

    def write(self, uri: str, data: bytes) -> None:
        """See `Store.write`."""

        def put(call: Call) -> None:
            del call
            self.objects.object(uri).get_writer().put_content(data)

        self._all([put], [uri])

    def _stat(self, uri: str, call: Call) -> Stat:
        del call
        props = self.objects.object(uri).props
        told = props.checksum_value or props.obj_version
        digest = blake2b(told.encode(), digest_size=8).digest() if told else bytes(8)
        return Stat(int(props.size), int.from_bytes(digest, "big") >> 1)

    def _all(self, acts: Sequence[Any], places: Sequence[str], call: Call | None = None) -> Any:
        return self.requests.all(acts, places, call or Call(limits().deadline_seconds))


class _Stream:
    """An object that is read from some byte on; opened again where an answer broke off."""

    def __init__(self, objects: AisObjects, uri: str, at: int) -> None:
        self.at = at
        self._objects = objects
        self._wanted = Wanted(uri)
        self._answer: Answer | None = None
        self._end: int | None = None
        self._version: str | None = None

    def read(self, count: int, call: Call) -> bytes:
        """Give the next block, or nothing at the end."""
        if self._end is not None and self.at >= self._end:
            return b""
        try:
            answer = self._answer or self._open()
            if answer is None:
                return b""
            with call.reading(answer.raw):
                data = answer.raw.read(count)
        except BaseException:
            self.close()
            raise
        if self._end is not None and len(data) < min(count, self._end - self.at):
            self.close()
            raise ShortAnswerError(f"the answer ends at byte {self.at + len(data)}")
        return data

    def close(self) -> None:
        """Let go of the answer."""
        if self._answer is not None:
            self._answer.raw.close()
            self._answer = None

    def _open(self) -> Answer | None:
        span = f"bytes={self.at}-" if self.at else ""
        try:
            answer = self._objects.ask(self._wanted, span)
        except Exception as error:
            if self._end is None and status_of(error) == 416:
                return None
            raise
        if self._version not in (None, answer.version):
            answer.raw.close()
            raise DataError(
                "the object changed while it was read",
                where=self._wanted.uri,
                fix="Write objects once, under a name of their own",
            )
        self._version = answer.version
        self._end = None if answer.size is None else self.at + answer.size
        self._answer = answer
        return answer
