"""How fast a rank was given its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Throughput", "write_throughput"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """The waits of a rank; the first batch, for which workers have to start, is not among them."""

    p50_ms: float | None
    """Half of the waits were no longer (ms); None where there was none."""
    p95_ms: float | None
    """Of 20 waits 19 were no longer (ms)."""
    mean_ms: float | None
    """Mean (ms)."""
    count: int
    """How many waits."""
    t_first_batch_ms: float | None
    """How long the first batch took (ms); None where there was none."""
    num_workers: int
    """Worker processes of the rank."""

    @classmethod
    def of(cls, waits_ms: Sequence[float], *, num_workers: int) -> Throughput:
        """Return the figures of waits.

        Parameters
        ----------
        waits_ms
            How long each batch was waited for, the first one among them (ms).
        num_workers
            Worker processes of the rank.

        Examples
        --------
        >>> Throughput.of([900.0, 2.0, 4.0, 3.0], num_workers=2).p50_ms
        3.0
        """
        later = sorted(waits_ms[1:])
        n = len(later)
        return cls(
            p50_ms=round(later[int(0.5 * (n - 1))], 3) if n else None,
            p95_ms=round(later[int(0.95 * (n - 1))], 3) if n else None,
            mean_ms=round(sum(later) / n, 3) if n else None,
            count=n,
            t_first_batch_ms=round(waits_ms[0], 3) if waits_ms else None,
            num_workers=num_workers,
        )


def write_throughput(path: Path, throughput: Throughput) -> None:
    """Write figures as JSON; the file is whole or not there."""
    with atomic_write(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(throughput), indent=2) + b"\n")
