"""How long training waited for its data."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Waits"]


class Waits:
    """Wall time that the consumer of a loader spent waiting for batches.

    Attributes
    ----------
    batches
        How many batches were waited for.
    seconds
        Wall seconds spent waiting for them.
    longest
        The longest single wait in seconds.

    Examples
    --------
    >>> waits = Waits()
    >>> with waits.timed():
    ...     pass
    >>> waits.batches
    1
    >>> Waits()
    Waits(batches=0, seconds=0.000, longest=0.000, share=0.000)
    """

    def __init__(self) -> None:
        self.batches = 0
        self.seconds = 0.0
        self.longest = 0.0
        self._first: float | None = None

    def __repr__(self) -> str:
        return (
            f"Waits(batches={self.batches}, seconds={self.seconds:.3f},"
            f" longest={self.longest:.3f}, share={self.share:.3f})"
        )

    @property
    def share(self) -> float:
        """Share of the time since the first wait that was spent waiting, 0 to 1."""
        return self.seconds / max(self.elapsed, 1e-9)

    @property
    def elapsed(self) -> float:
        """Wall seconds since the first wait began; 0 before it."""
        return 0.0 if self._first is None else time.perf_counter() - self._first

    @contextmanager
    def timed(self) -> Generator[None]:
        """Count the body as one wait."""
        begin = time.perf_counter()
        if self._first is None:
            self._first = begin
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            self.batches += 1
            self.seconds += spent
            self.longest = max(self.longest, spent)
