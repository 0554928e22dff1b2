"""How long indexing will take, from what it has taken so far."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from playhead.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from playhead.index.source import Stamp

__all__ = ["PATIENCE_SECONDS", "Pace", "Progress", "part_cost"]

PATIENCE_SECONDS: Final = 120.0
"""Longer than this nobody waits for a training loader without being asked."""

_MANIFEST_BYTES_PER_SECOND = 200e6
_TAR_BYTES_PER_SECOND = 4e9
_PART_SECONDS = 1e-4
_WARM_UP_SECONDS = 2.0


class Progress(Protocol):
    """What is told of the work while it goes on."""

    def __call__(self, what: str, done: float, total: float) -> None:
        """Hear that `what` is read, and that `done` of `total` estimated seconds are over."""
        ...


def part_cost(stamps: Sequence[Stamp]) -> float:
    """Seconds that a manifest (the first) and its archives take, as a first guess."""
    tar_bytes = sum(stamp.size for stamp in stamps[1:])
    return (
        _PART_SECONDS
        + stamps[0].size / _MANIFEST_BYTES_PER_SECOND
        + tar_bytes / _TAR_BYTES_PER_SECOND
    )


class Pace:
    """Work in estimated seconds: how much there is, how much is done, how fast it really goes.

    Parameters
    ----------
    limit
        Seconds above which the work is refused; None for no limit.
    command
        What to run instead.
    progress
        Told about each step.
    """

    def __init__(self, limit: float | None, command: str, progress: Progress | None = None) -> None:
        self.total = 0.0
        self.done = 0.0
        self._limit = limit
        self._command = command
        self._progress = progress
        self._spent = 0.0
        self._since: float | None = None

    @contextmanager
    def working(self) -> Generator[None]:
        """Count the time inside as work; waiting for others is none."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._spent += time.monotonic() - self._since
            self._since = None

    def add(self, cost: float) -> None:
        """Announce work."""
        self.total += cost

    def skip(self, cost: float) -> None:
        """Take back work that need not be done."""
        self.total -= cost

    def advance(self, what: str, cost: float) -> None:
        """Count work that is done.

        Raises
        ------
        BuildError
            If all of it will take longer than the limit.
        """
        self.done += cost
        if self._progress is not None:
            self._progress(what, self.done, self.total)
        elapsed = self._spent + (time.monotonic() - self._since if self._since else 0.0)
        if self._limit is None or elapsed < min(_WARM_UP_SECONDS, self._limit / 10):
            return
        if self.done > 0 and (estimate := elapsed * self.total / self.done) > self._limit:
            raise BuildError(
                f"indexing would take about {_spoken(estimate)}, which is more than "
                f"{_spoken(self._limit)}",
                where=what,
                fix=f"Run `{self._command}` once, or set auto_index=True",
            )


def _spoken(seconds: float) -> str:
    """Write seconds as people say them.

    Examples
    --------
    >>> _spoken(90), _spoken(600), _spoken(8000)
    ('90 s', '10 min', '2.2 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
