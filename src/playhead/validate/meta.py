"""What a run says of itself beside its logs: without it, two logs cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from playhead.errors import DataError, SourceNotFoundError
from playhead.storage.atomic import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.validate.rows import Phase

__all__ = ["Mode", "RunMeta", "meta_path", "read_meta", "read_meta_file", "write_meta"]

Mode = Literal["fast", "full"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMeta:
    """One run of a phase: the same on all its ranks, written by the first of them."""

    phase: Literal["baseline", "resumed", "groundtruth"]
    """The phase."""
    run: int
    """Number of the run in its phase."""
    is_over: bool
    """Whether it came to its end: the file is written when a run begins, and again at its end."""
    world_size: int
    """How many ranks shared each step."""
    micro_batches_per_step: int
    """Micro-batches of one optimizer step, over all ranks (G)."""
    num_workers: int
    """Worker processes of a rank; 0 where it makes its batches itself."""
    mode: Mode
    """`full` where the tensors of all batches have a digest."""
    config_digest: str
    """Digest of the data, the options and the code that the plan follows from, but for the world
    size and for how steps are cut: runs of different digests are of different data."""
    seed: int
    """What everything random follows from."""
    is_finite: bool
    """Whether a pass ends."""
    steps: int
    """Batches that every rank was asked for."""
    batches: int = 0
    """Batches that every rank was given; fewer than `steps` where the pass ended before."""
    is_exhausted: bool = False
    """Whether the pass was over after them: only then every sample must have come."""
    first_step: int = 0
    """The optimizer step of the first batch, counted since the start of training."""
    checkpoint_at: int | None = None
    """The batch of every rank, from 0, after which the state was saved: the last one of its
    optimizer step, where a batch inside the step was asked for; None where no state was saved."""
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    """Samples that the plan of these batches left out, by reason (`drop_last`, `max_duration`)."""


def meta_path(folder: Path, phase: Phase, run: int) -> Path:
    """Where a run says what it was."""
    if phase == "groundtruth":
        return folder / "groundtruth" / "meta.json"
    return folder / phase / f"run{run}" / "meta.json"


def write_meta(folder: Path, meta: RunMeta) -> None:
    """Write what a run says of itself; the file is whole or not there."""
    with atomic_write(meta_path(folder, meta.phase, meta.run)) as file:
        file.write(msgspec.json.format(msgspec.json.encode(meta), indent=2) + b"\n")


def read_meta(folder: Path, phase: Phase, run: int) -> RunMeta:
    """Read what a run said of itself.

    Raises
    ------
    SourceNotFoundError
        If it said nothing: there is no such run.
    DataError
        If the file is none of ours.
    """
    try:
        return read_meta_file(meta_path(folder, phase, run))
    except SourceNotFoundError as error:
        raise SourceNotFoundError(
            f"there is no run {run} of the phase {phase}", where=error.where, fix="Run it first"
        ) from None


def read_meta_file(path: Path) -> RunMeta:
    """Read what the run of a folder said of itself.

    Raises
    ------
    SourceNotFoundError
        If there is no such file.
    DataError
        If it is none of ours.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunMeta)
    except (FileNotFoundError, NotADirectoryError):
        raise SourceNotFoundError(
            "no run has been here", where=str(path), fix="Run the phase first"
        ) from None
    except msgspec.MsgspecError as error:
        raise DataError(
            f"this does not say what a run was: {error}", where=str(path), fix="Run it again"
        ) from None
