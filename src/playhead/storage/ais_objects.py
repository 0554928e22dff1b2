"""Single objects of AIStore, members of them and ranges: one request, one checked answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import ConfigError, DataError, StorageError
from playhead.paths import scheme
from playhead.storage.ais_client import (
    ShortAnswerError,
    endpoint,
    is_unreachable,
    open_client,
    status_of,
)
from playhead.storage.get_batch import PROVIDERS

if TYPE_CHECKING:
    from playhead.storage.calls import Call

__all__ = ["AisObjects", "Answer", "Name", "Wanted", "cut_out", "name_of"]

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Name(NamedTuple):
    """An object as AIStore names it."""

    provider: str
    """Whose bucket."""
    bucket: str
    """The bucket."""
    key: str
    """The object in it."""


class Wanted(NamedTuple):
    """What is asked of one object."""

    uri: str
    """The object."""
    member: str = ""
    """The member of an archive; empty for the object itself."""
    offset: int = 0
    """First byte."""
    size: int | None = None
    """Bytes; None is all."""

    @property
    def where(self) -> str:
        """What errors call it."""
        return f"{self.uri}/{self.member}" if self.member else self.uri


class Answer(NamedTuple):
    """The beginning of an answer; its bytes are still to be read."""

    raw: Any
    """Where they are read from."""
    size: int | None
    """How many there are, where the server says it."""
    version: str
    """What changes when the object does."""


def name_of(uri: str) -> Name:
    """Take a URI apart.

    Raises
    ------
    ConfigError
        If it names no object of AIStore.

    Examples
    --------
    >>> name_of("s3://speech/2024/a#1.tar")
    Name(provider='aws', bucket='speech', key='2024/a#1.tar')
    """
    _, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    provider = PROVIDERS.get(scheme(uri))
    if provider is None or not bucket:
        raise ConfigError(
            "this is no object of AIStore", where=uri, fix="Write it as ais://bucket/object"
        )
    return Name(provider, bucket, key)


class AisObjects:
    """Asks AIStore for objects one by one."""

    def __init__(self) -> None:
        self.client = open_client()
        self.endpoint = endpoint()
        self._direct = True

    def object(self, uri: str) -> Any:
        """The client's object of a URI."""
        name = name_of(uri)
        return self.client.bucket(name.bucket, provider=name.provider).object(name.key)

    def get(self, wanted: Wanted, call: Call) -> bytes:
        """Read what is asked for, whole.

        Raises
        ------
        DataError
            If the object ends before the range.
        ShortAnswerError
            If the answer has another size.
        """
        first, size = wanted.offset, wanted.size
        if wanted.member and (first or size is not None):
            # Servers give ranges of members in batches only.
            data = self.get(Wanted(wanted.uri, wanted.member), call)
            return cut_out(data, wanted)
        whole = not first and size is None
        span = "" if whole else f"bytes={first}-" + ("" if size is None else str(first + size - 1))
        answer = self.ask(wanted, span)
        expected = answer.size if size is None else size
        try:
            with call.reading(answer.raw):
                data = answer.raw.read()
        except BaseException:
            answer.raw.close()
            raise
        # Read to its end, its connection can be used again.
        answer.raw.release_conn()
        if expected is not None and len(data) != expected:
            raise ShortAnswerError(f"{len(data)} bytes came and {expected} were asked for")
        return data

    def ask(self, wanted: Wanted, span: str) -> Answer:
        """Ask for an object, a member of it or a range.

        Parameters
        ----------
        wanted
            The object and the member.
        span
            The range as HTTP writes it; empty for everything.

        Returns
        -------
        Answer
            To be read and closed.
        """
        raw = self._begun(wanted, span)
        try:
            headers = raw.headers
            if span:
                _check_span(raw.status, headers.get("Content-Range", ""), span, wanted.where)
            length = headers.get("Content-Length")
            version = headers.get("ais-checksum-value") or headers.get("ais-version") or ""
            return Answer(raw, None if length is None else int(length), version)
        except BaseException:
            raw.close()
            raise

    def _begun(self, wanted: Wanted, span: str) -> Any:
        if not self._direct:
            return self._raw(wanted, span, direct=False)
        try:
            return self._raw(wanted, span, direct=True)
        except Exception as error:
            # The proxy knows addresses and rights of its targets that others may not know, and
            # finds them without libraries that fit the client.
            status = status_of(error)
            if status in (401, 403) or not (status or isinstance(error, OSError)):
                raw = self._raw(wanted, span, direct=False)
                self._direct = False
                return raw
            if is_unreachable(error):
                self._direct = False
            raise

    def _raw(self, wanted: Wanted, span: str, *, direct: bool) -> Any:
        from aistore.sdk.archive_config import ArchiveConfig  # noqa: PLC0415 - an extra

        archive = ArchiveConfig(archpath=wanted.member) if wanted.member else None
        reader = self.object(wanted.uri).get_reader(
            archive_config=archive, byte_range=span or None, direct=direct
        )
        return reader.raw()


def cut_out(data: bytes, wanted: Wanted) -> bytes:
    """Return the range that is asked for of a member.

    Raises
    ------
    DataError
        If the member ends before it does.
    """
    end = len(data) if wanted.size is None else wanted.offset + wanted.size
    if end > len(data):
        raise DataError(
            f"the member has {len(data)} bytes and byte {end} is asked for",
            where=wanted.where,
            fix="If the archive was rewritten, index it again; else restore it",
        )
    return data[wanted.offset : end]


def _check_span(status: int, told: str, span: str, where: str) -> None:
    """Compare what comes, `told` by the server, with what was asked for."""
    if status != 206:
        raise StorageError(
            "AIStore answers a range with the whole object",
            where=where,
            fix="Look whether something between here and AIStore drops the header Range",
        )
    came = _CONTENT_RANGE.fullmatch(told)
    first, _, last = span.removeprefix("bytes=").partition("-")
    if came is None or came[1] != first or (last and int(came[2]) > int(last)):
        raise ShortAnswerError(f"{told or 'an unknown range'} comes and {span} was asked for")
    if last and came[2] != last:
        if int(came[2]) + 1 == int(came[3]):
            raise DataError(
                f"the object has {came[3]} bytes and byte {last} is asked for",
                where=where,
                fix="If it was rewritten, index it again; else restore it",
            )
        raise ShortAnswerError(f"{told} comes and {span} was asked for")
