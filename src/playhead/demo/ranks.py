"""The training processes of the demo, and when they are killed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.local_ranks import run_ranks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Stage", "run_stage"]

_DEADLINE_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """Some processes that train together until they are done, or killed."""

    name: str
    """What their logs are called."""
    ranks: int
    """How many processes."""
    workers: int
    """Worker processes of each of their loaders."""
    kill_at: int | None
    """Step during which all of them are killed; None lets them finish."""


def run_stage(
    stage: Stage,
    command: list[str],
    logs: Path,
    steps_in: Callable[[Path], int],
) -> float:
    """Run a stage to its end and return its wall seconds.

    Parameters
    ----------
    stage
        What to run.
    command
        The training command without what differs from rank to rank.
    logs
        Folder of the logs of ranks, `<stage>.<rank>.jsonl`.
    steps_in
        Counts the steps in a log, to know when to kill.

    Raises
    ------
    WorkerError
        When a process fails, or the deadline passes; its last words are in the message.
    """
    kill_at = stage.kill_at

    def of_rank(rank: int) -> list[str]:
        log = logs / f"{stage.name}.{rank}.jsonl"
        return [*command, f"--workers={stage.workers}", f"--log={log}"]

    def is_reached() -> bool:
        return kill_at is not None and steps_in(logs / f"{stage.name}.0.jsonl") >= kill_at

    return run_ranks(
        stage.name,
        stage.ranks,
        of_rank,
        logs,
        deadline_seconds=_DEADLINE_SECONDS,
        is_time_to_kill=is_reached,
    )
