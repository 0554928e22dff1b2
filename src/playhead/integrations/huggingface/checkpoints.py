"""Which checkpoint of a Trainer a killed job goes on from."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

__all__ = ["last_checkpoint"]

_FOLDER = re.compile(r"checkpoint-(\d+)")
_WRITTEN_LAST = "trainer_state.json"
_BEGUN = "checkpoint-is-incomplete.txt"


def last_checkpoint(output_dir: str | Path) -> str | None:
    """Return the newest checkpoint of a Trainer that was written to its end.

    A Trainer's own `resume_from_checkpoint=True` takes the newest, whole or not: a job that was
    killed while it saved could not start again.

    Parameters
    ----------
    output_dir
        The folder of the checkpoints.

    Returns
    -------
    str or None
        What `Trainer.train` takes as `resume_from_checkpoint`: None where there is none yet.
    """
    folder = Path(output_dir)
    found = [
        (int(named[1]), path)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (named := _FOLDER.fullmatch(path.name)) and _is_whole(path)
    ]
    return str(max(found)[1]) if found else None


def _is_whole(checkpoint: Path) -> bool:
    if (checkpoint / _BEGUN).exists():
        return False
    try:
        msgspec.json.decode((checkpoint / _WRITTEN_LAST).read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return True
