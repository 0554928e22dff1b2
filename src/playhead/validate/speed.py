"""How fast batches came in the first baseline, over all ranks."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.errors import ConfigError
from playhead.validate.answer import said
from playhead.validate.rows import throughput_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["read_speed", "speed_line"]


class _Waits(msgspec.Struct, frozen=True):
    p50_ms: float | None = None
    p95_ms: float | None = None
    mean_ms: float | None = None
    t_first_batch_ms: float | None = None
    num_workers: int | None = None


def read_speed(folder: Path, world_size: int) -> dict[str, Any]:
    """Put together what the ranks say of their waits.

    Nothing is done with the batches of a validation: a step on the GPU that takes as long as a
    batch is waited for on average, on the slowest rank, hides loading altogether.

    Parameters
    ----------
    folder
        Where all phases are.
    world_size
        Ranks of the baseline.

    Returns
    -------
    dict
        ``available``; where it is true, ``num_workers``, ``num_ranks``, ``p50_ms_median``,
        ``p95_ms_max``, ``batches_per_s_per_rank``, ``t_first_batch_ms_max`` and
        ``t_gpu_min_for_overlap_ms``, each None where nobody measured it.

    Raises
    ------
    ConfigError
        If what a rank says cannot be read.
    """
    ranks = [
        waits
        for rank in range(world_size)
        if (waits := _read(throughput_path(folder, rank))) is not None
    ]
    if not any(waits.p50_ms is not None for waits in ranks):
        return {"available": False}
    means = _known(waits.mean_ms for waits in ranks)
    return {
        "available": True,
        "num_workers": ranks[0].num_workers,
        "num_ranks": len(ranks),
        "p50_ms_median": statistics.median(_known(waits.p50_ms for waits in ranks)),
        "p95_ms_max": max(_known(waits.p95_ms for waits in ranks), default=None),
        # Workers give their batches in bursts: the mean says how many come, the median does not.
        "batches_per_s_per_rank": 1000 / slowest if (slowest := max(means, default=0)) else None,
        "t_first_batch_ms_max": max(
            _known(waits.t_first_batch_ms for waits in ranks), default=None
        ),
        "t_gpu_min_for_overlap_ms": max(means, default=None),
    }


def speed_line(speed: Mapping[str, Any]) -> str:
    """The line of a report.

    Examples
    --------
    >>> speed_line({"available": False})
    'throughput: not measured'
    """
    if not speed["available"]:
        return "throughput: not measured"
    figures = [
        f"{name} {speed[key]:.1f} {unit}"
        for name, key, unit in (
            ("p50", "p50_ms_median", "ms"),
            ("p95", "p95_ms_max", "ms"),
            ("=>", "batches_per_s_per_rank", "batches/s/rank"),
            ("first batch", "t_first_batch_ms_max", "ms"),
            ("hidden behind GPU steps of", "t_gpu_min_for_overlap_ms", "ms"),
        )
        if speed[key] is not None
    ]
    workers = speed["num_workers"]
    made = "" if workers is None else f" ({said(workers, 'worker')} a rank)"
    return f"throughput: {', '.join(figures)}{made}"


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _read(path: Path) -> _Waits | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Waits)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(
            f"these are no waits of a rank: {error}",
            where=str(path),
            fix="Run the baseline again, or remove the file",
        ) from None
