"""Requests to a server: side by side, tried again where that may help, over by a deadline."""

from __future__ import annotations

import logging
import random
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from playhead.errors import PlayheadError, SourceNotFoundError, StorageError
from playhead.storage.at_exit import call_at_exit
from playhead.storage.limits import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

__all__ = ["Call", "Requests", "pause_before"]

_log = logging.getLogger("playhead")

# Seconds of waiting that are no news, if something failed meanwhile and if nothing came at all.
_PATIENCE: Final = 5.0
_PATIENCE_IN_SILENCE: Final = 10.0
# Seconds between two lines about one server.
_QUIET: Final = 10.0
_HOW_LONG: Final = "PLAYHEAD_STORAGE_DEADLINE_SECONDS and PLAYHEAD_STORAGE_TRIES say how long"
_HOW_LONG_UNREACHED: Final = "PLAYHEAD_STORAGE_UNREACHED_SECONDS says how long"
_PAUSES: Final = (0.1, 0.4, 1.6, 6.4, 12.8)
# Not the one that everybody shares: what datasets draw must not depend on what failed.
_random = random.Random()  # noqa: S311 - no secret

Result = TypeVar("Result")


class Call:
    """One call of a store: when it has to be over, and which answers it has open.

    Parameters
    ----------
    seconds
        How long it may take.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.failure: tuple[str, int] | None = None
        """What the last try that failed said, and which try of its request it was."""
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._open: set[Any] = set()
        self._over = threading.Event()

    @property
    def left(self) -> float:
        """Seconds until it has to be over; never negative."""
        return max(0.0, self._begin + self.seconds - time.monotonic())

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._begin

    @contextmanager
    def reading(self, answer: Any) -> Generator[None]:
        """Read an answer, so that `abandon` can end it.

        Raises
        ------
        TimeoutError
            If the call is over.
        """
        with self._lock:
            if self._over.is_set():
                raise TimeoutError
            self._open.add(answer)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(answer)

    def pause(self, seconds: float) -> bool:
        """Wait; false if the call was given up meanwhile."""
        return not self._over.wait(seconds)

    def abandon(self) -> None:
        """End the answers that are still being read: nobody waits for them any more."""
        with self._lock:
            self._over.set()
            for answer in self._open:
                # What reads it holds its lock: it can be shut down then, and not closed.
                with suppress(Exception):
                    answer.shutdown()


class Requests:
    """Makes the requests of one store.

    Parameters
    ----------
    server_of
        What to call the server of a place in errors.
    verdict
        What an error at a place means for good; None for what may pass by itself.
    said
        What an error says, in one line.
    is_unreachable
        Whether an error says that there was no connection at all.
    """

    def __init__(
        self,
        server_of: Callable[[str], str],
        verdict: Callable[[Exception, str], PlayheadError | None],
        said: Callable[[Exception], str],
        is_unreachable: Callable[[Exception], bool],
    ) -> None:
        self._server_of = server_of
        self._verdict = verdict
        self._said = said
        self._is_unreachable = is_unreachable
        # When each was given up without a connection, and when it was last said to be waited for.
        self._unreached: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(limits().concurrency, "playhead-store")
        self._counter = count()
        self._calls: dict[int, Call] = {}
        self._is_ending = False
        call_at_exit(self._abandon)

    def all(
        self, acts: Sequence[Callable[[Call], Result]], places: Sequence[str], call: Call
    ) -> list[Result]:
        """Do everything side by side, each again after a pause where its error may pass.

        Parameters
        ----------
        acts
            What to do: one try each.
        places
            What each is about, for errors.
        call
            What it belongs to.

        Raises
        ------
        StorageError
            If one went on failing, or is not over by the deadline.
        PlayheadError
            What the verdict is on one of them.
        """
        if not acts:
            return []
        number = next(self._counter)
        self._calls[number] = call
        futures: list[Future[Result]] = []
        whole = False
        try:
            for act, place in zip(acts, places, strict=True):
                futures.append(self._pool.submit(self._tried, act, place, call))
            done, waiting = self._wait(futures, places, call)
            failed = [future for future in futures if future in done and future.exception()]
            whole = not (failed or waiting)
        finally:
            del self._calls[number]
            if not whole:
                for future in futures:
                    future.cancel()
                call.abandon()
        if failed:
            _raise(failed[0])
        if waiting:
            place = next(
                place for place, future in zip(places, futures, strict=True) if future in waiting
            )
            last = "" if call.failure is None else f"; before, {call.failure[0]}"
            raise self._failed(f"did not answer within {call.seconds:g} s{last}", place)
        return [future.result() for future in futures]

    def found(
        self, acts: Sequence[Callable[[Call], Result]], places: Sequence[str], call: Call
    ) -> list[Result | None]:
        """Do the same as `all`, with None where the verdict is that nothing is there.

        Parameters
        ----------
        acts, places, call
            As for `all`.

        Raises
        ------
        StorageError, PlayheadError
            As `all`.
        """
        found = [partial(self._if_there, act, at) for act, at in zip(acts, places, strict=True)]
        return self.all(found, places, call)

    def _if_there(self, act: Callable[[Call], Result], place: str, call: Call) -> Result | None:
        try:
            return act(call)
        except Exception as error:
            if isinstance(self._verdict(error, place), SourceNotFoundError):
                return None
            raise

    def _wait(
        self, futures: Sequence[Future[Any]], places: Sequence[str], call: Call
    ) -> tuple[set[Future[Any]], set[Future[Any]]]:
        """Wait for all, the first error or the deadline; say so where it takes long."""
        num_done, moved = 0, 0.0
        while True:
            seconds = min(call.left, _PATIENCE)
            done, waiting = wait(futures, timeout=seconds, return_when=FIRST_EXCEPTION)
            is_over = not waiting or not call.left
            if is_over or any(future.exception() for future in done):
                return done, waiting
            if len(done) > num_done:
                # Many take their time, one after another.
                num_done, moved = len(done), call.spent
            if call.failure is not None or call.spent - moved >= _PATIENCE_IN_SILENCE:
                place = next(
                    place for place, one in zip(places, futures, strict=True) if one in waiting
                )
                self._tell(place, call)

    def _tell(self, place: str, call: Call) -> None:
        server, now = self._server_of(place), time.monotonic()
        with self._lock:
            if now - self._told.get(server, -_QUIET) < _QUIET:
                return
            self._told[server] = now
        what = "no answer is complete yet"
        if call.failure is not None:
            said, number = call.failure
            what = f"{said}, try {number} of {limits().tries}"
        _log.warning(
            "waiting for %s (%s): %s, %.0f s of %g s", server, place, what, call.spent, call.seconds
        )

    def _tried(self, act: Callable[[Call], Result], place: str, call: Call) -> Result:
        was_unreached = self._was_unreached(place)
        is_unreached, begin = True, call.spent
        for number in count(1):
            try:
                result = act(call)
            except PlayheadError:  # noqa: PERF203 - tries are what the loop is for
                raise
            except Exception as error:  # noqa: BLE001 - the verdict says what it is
                # Causes are left out: libraries show all of their insides, and the message says it.
                verdict = self._verdict(error, place)
                if verdict is not None:
                    raise verdict from None
                said = self._said(error)
                call.failure = said, number
                is_unreached = is_unreached and self._is_unreachable(error)
                pause = pause_before(number)
                is_long = is_unreached and _is_too_long(call.spent + pause - begin)
                is_last = is_long or number >= limits().tries or call.left <= pause
                if is_unreached and (is_last or was_unreached):
                    self._unreached[self._server_of(place)] = time.monotonic()
                if is_unreached and was_unreached:
                    what = f"failed: {said}; it could not be reached a moment ago either"
                    raise self._failed(what, place, _HOW_LONG_UNREACHED) from None
                if is_last or self._is_ending or not call.pause(pause):
                    times = "time" if number == 1 else "times"
                    what = f"failed {number} {times} in {call.spent:.1f} s: {said}"
                    how_long = _HOW_LONG_UNREACHED if is_long else _HOW_LONG
                    raise self._failed(what, place, how_long) from None
            else:
                if self._unreached:
                    self._unreached.pop(self._server_of(place), None)
                return result
        raise AssertionError

    def _was_unreached(self, place: str) -> bool:
        """Whether a call has just tried for as long as it may, and never got a connection."""
        if not self._unreached:
            return False
        since = self._unreached.get(self._server_of(place))
        return since is not None and time.monotonic() - since < limits().unreached_seconds

    def _abandon(self) -> None:
        """Try nothing again: the process ends, and waits for what is under way."""
        self._is_ending = True
        for call in list(self._calls.values()):
            call.abandon()

    def _failed(self, what: str, place: str, how_long: str = _HOW_LONG) -> StorageError:
        return StorageError(
            f"{self._server_of(place)} {what}",
            where=place,
            fix=f"See whether it is well; {how_long} it is tried",
        )


def _is_too_long(seconds: float) -> bool:
    """Whether nobody waits for so long for a server that cannot be reached."""
    return 0 < limits().unreached_seconds < seconds


def pause_before(number: int) -> float:
    """Seconds to wait after a number of tries: anything up to a bound that grows with them.

    Many that failed at once do not come back at once.

    Examples
    --------
    >>> 0 <= pause_before(1) <= 0.1
    True
    """
    return _random.uniform(0.0, _PAUSES[min(number, len(_PAUSES)) - 1])


def _raise(future: Future[Any]) -> None:
    error = future.exception()
    assert error is not None
    # The same error must not collect the lines of every place that it is raised from.
    raise error.with_traceback(None)
