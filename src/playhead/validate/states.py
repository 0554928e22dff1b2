"""The states that ranks save in a baseline, and that resumed runs of any world size begin with."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

import torch

from playhead.errors import PositionError, SourceNotFoundError
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["load_state", "save_state"]

_NAME = re.compile(r"state_rank_(\d{3,})\.pt")


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state as a training framework does; the file is whole or not there."""
    with atomic_write(path) as file:
        torch.save(state, file)


def load_state(folder: Path, rank: int) -> Any:
    """Read the state of a rank: its own, or that of any where there were fewer ranks then.

    All ranks save one position, so that any of them will do.

    Parameters
    ----------
    folder
        Where the states are.
    rank
        Who asks. Rank 0 looks at all of them, to see that they are one.

    Raises
    ------
    SourceNotFoundError
        If there is no state.
    PositionError
        If one cannot be read, or they are not all of one position; its exit code is 2.
    """
    found = {
        int(match[1]): path for path in _files(folder) if (match := _NAME.fullmatch(path.name))
    }
    if not found:
        raise SourceNotFoundError(
            "there is no state_rank_NNN.pt",
            where=str(folder),
            fix="Run the phase baseline with --checkpoint-at, and give its folder, as"
            " DIR/baseline/run0",
        )
    own = rank if rank in found else min(found)
    state = _read(found[own])
    for other in sorted(found) if rank == 0 else ():
        if other != own and _read(found[other]) != state:
            raise _bad(
                f"the states of ranks {own} and {other} are of different positions",
                found[other],
            )
    return state


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(path: Path) -> Any:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
        raise _bad(f"this is no state: {reason}", path) from error
    if not isinstance(state, dict):
        raise _bad(f"this is no state but a {type(state).__name__}", path)
    return state


def _bad(what: str, path: Path) -> PositionError:
    error = PositionError(what, where=str(path), fix="Run the phase baseline again")
    error.exit_code = 2
    return error
