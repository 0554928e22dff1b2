"""Where the time of making batches goes."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Timings"]


@dataclass(kw_only=True, slots=True)
class Timings:
    """Sums over the batches that one process has made; seconds are wall time."""

    batches: int = 0
    """Batches made."""
    samples: int = 0
    """Samples in them."""
    requests: int = 0
    """Byte ranges asked for; those that lie near each other in a file are one read."""
    num_bytes: int = 0
    """Bytes asked for."""
    read_seconds: float = 0.0
    """Waiting for rows and members of archives."""
    parse_seconds: float = 0.0
    """Making samples of rows."""
    dataset_seconds: float = 0.0
    """In the dataset: decoding, augmenting, collating, and the reading of plain audio files."""
    slowest_object: str | None = None
    """The file that was waited for longest in one read."""
    slowest_seconds: float = 0.0
    """How long that was."""

    @contextmanager
    def reading(self, path: str, sizes: int, count: int) -> Generator[None]:
        """Count the body as one read of `count` ranges with `sizes` bytes in all."""
        begin = time.perf_counter()
        yield
        spent = time.perf_counter() - begin
        self.read_seconds += spent
        self.requests += count
        self.num_bytes += sizes
        if spent > self.slowest_seconds:
            self.slowest_object, self.slowest_seconds = path, spent
