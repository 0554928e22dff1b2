"""Files of earlier runs, which would be taken for those of a later one in the same place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_all_runs", "remove_of_ranks"]

_OF_A_RANK = re.compile(
    r"(?:state_|throughput_|full_summary_)?rank_(\d{3,})\.(?:jsonl|json|pt)"
    # A loader does not number the first rank's.
    r"|bad_samples(?:-(\d+))?\.jsonl"
)
_RUN = re.compile(r"run\d+")
_PHASES = ("baseline", "resumed")


def remove_of_ranks(folder: Path, *, rank: int, world_size: int) -> None:
    """Remove what a rank left in the folder of a run, and rank 0 what ranks left that are no more.

    Parameters
    ----------
    folder
        The folder of the run.
    rank, world_size
        Who asks, out of how many.
    """
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        match = _OF_A_RANK.fullmatch(path.name)
        if match is None:
            continue
        number = int(match[1] or match[2] or 0)
        if number == rank or (rank == 0 and number >= world_size):
            path.unlink(missing_ok=True)


def remove_all_runs(folder: Path) -> None:
    """Remove what the runs of an earlier validation left; nothing else that lies there.

    Parameters
    ----------
    folder
        The folder of the validation.
    """
    runs = [
        run
        for phase in _PHASES
        if (folder / phase).is_dir()
        for run in (folder / phase).iterdir()
        if _RUN.fullmatch(run.name) and run.is_dir()
    ]
    for run in runs:
        remove_of_ranks(run, rank=0, world_size=0)
        (run / "meta.json").unlink(missing_ok=True)
        if not any(run.iterdir()):
            run.rmdir()
    for name in ("cuts.jsonl", "meta.json"):
        (folder / "groundtruth" / name).unlink(missing_ok=True)
