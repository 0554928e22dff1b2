"""Batch requests to AIStore: many objects, members of archives and ranges in one answer."""

from __future__ import annotations

import tarfile
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from playhead.errors import StorageError
from playhead.storage.ais_batch_answer import BatchAnswer, answer_name
from playhead.storage.ais_client import status_of, verdict
from playhead.storage.calls import Call, pause_before

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.storage.ais_objects import AisObjects, Wanted
    from playhead.storage.calls import Requests

__all__ = ["Batches"]

_TRIES: Final = 3
"""Batches for what one call asks for, each of what the one before left out."""

_SHARE: Final = 0.5
"""Of the time of a call; the rest is for what no batch brought."""


class Batches:
    """Asks for batches, and learns what the server can do.

    Servers before 3.30 know no batches, those before 5.0 no ranges in them. The errors of a batch
    after its first byte are no errors of HTTP: the answer ends early, and that is all.

    Parameters
    ----------
    objects
        The client.
    requests
        What makes requests.

    Attributes
    ----------
    are_known
        Whether the server answers batches, as far as is known.
    know_ranges
        Whether it does with ranges; None before that was seen.
    """

    def __init__(self, objects: AisObjects, requests: Requests) -> None:
        self.are_known = True
        self.know_ranges: bool | None = None
        self._objects = objects
        self._requests = requests

    def read(self, wanted: Sequence[Wanted], call: Call) -> dict[Wanted, bytes]:
        """Read as much as batches bring; the rest is to be asked for one by one.

        Parameters
        ----------
        wanted
            What to read, nothing twice.
        call
            What this belongs to; at most half of its time is used.

        Raises
        ------
        StorageError
            If the server lets nobody in.
        """
        found: dict[Wanted, bytes] = {}
        time = Call(call.left * _SHARE)
        rest = list(wanted)
        for number in range(1, _TRIES + 1):
            rest = self._fit(rest)
            if len(rest) < 2:
                break
            answer = self._ask(rest, Call(time.left))
            found |= answer.found
            before, rest = rest, answer.rest
            if not rest:
                break
            if _is_range(rest[0]) and self.know_ranges is None:
                self._look_for_ranges(rest[0], Call(time.left))
            if len(rest) == len(before) and not time.pause(min(pause_before(number), time.left)):
                break
        return found

    def _fit(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """What can be asked for in one batch."""
        if not self.are_known:
            return []
        objects: dict[str, str] = {}
        return [
            one
            for one in wanted
            if (self.know_ranges is not False or not _is_range(one))
            and objects.setdefault(answer_name(one), one.uri) == one.uri
        ]

    def _ask(self, wanted: Sequence[Wanted], call: Call) -> BatchAnswer:
        """Ask once, and keep what came, however the answer ended."""
        answer = BatchAnswer(wanted)
        try:
            self._requests.all([partial(self._read, answer, wanted)], [wanted[0].where], call)
        except StorageError:
            if call.left:
                raise
        if any(_is_range(one) for one in answer.found):
            self.know_ranges = True
        return answer

    def _read(self, answer: BatchAnswer, wanted: Sequence[Wanted], call: Call) -> None:
        raw: Any = None
        try:
            raw = self._request(wanted)
            with call.reading(raw):
                answer.read(raw)
                raw.drain_conn()
        except tarfile.TarError:
            pass
        except Exception as error:
            status = status_of(error)
            refusal = verdict(error, wanted[0].where)
            if status in (404, 405, 501):
                self.are_known = False
            elif status in (0, 401, 403) and refusal is not None:
                raise refusal from error
            answer.broke_off = True
        finally:
            if raw is not None:
                raw.close()

    def _request(self, wanted: Sequence[Wanted]) -> Any:
        batch = self._objects.client.batch()
        # The client takes its time to make an object, and members share theirs.
        objects = {uri: self._objects.object(uri) for uri in {one.uri for one in wanted}}
        for one in wanted:
            span = {}
            if _is_range(one):
                span = {"start": one.offset, "length": -1 if one.size is None else one.size}
            batch.add(objects[one.uri], archpath=one.member or None, **span)
        return batch.get(raw=True)

    def _look_for_ranges(self, wanted: Wanted, call: Call) -> None:
        """Find out whether the answer ended because of a range."""
        answer = self._ask([wanted], call)
        if not answer.found and not answer.broke_off and call.left:
            self.know_ranges = False


def _is_range(wanted: Wanted) -> bool:
    return bool(wanted.offset) or wanted.size is not None
