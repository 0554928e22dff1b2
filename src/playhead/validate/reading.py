"""The logs of a run, read as columns; whatever is damaged or missing in them is an error.

A sample is known by a hash of 64 bits of its identity, and a batch by one of all of its identities
in order, so that a long run fits into memory: 8 bytes a sample and some 40 a batch. Two different
samples of a run of n have the same hash with a probability of n² / 2⁶⁵, which is 1 in 100,000 for
20 million. The names are read again where somebody is to see them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from playhead.errors import ConfigError, PlayheadError
from playhead.validate.answer import said
from playhead.validate.log_columns import (
    RUN_AGAIN,
    LogColumns,
    LogRow,
    as_array,
    decoded,
    opened,
)
from playhead.validate.meta import RunMeta, meta_path, read_meta
from playhead.validate.rows import log_path

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from playhead.validate.rows import Phase

__all__ = ["Run", "read_run", "run_numbers"]

_LOG_NAME = re.compile(r"rank_(\d+)\.jsonl")
_RUN_NAME = re.compile(r"run(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Run:
    """The batches of all ranks of one run, rank by rank, each in the order in which they came."""

    phase: Phase
    """What it was for."""
    number: int
    """Its number in that phase."""
    logs: tuple[Path, ...]
    """The log of each rank."""
    meta: RunMeta | None
    """What it says of itself; None where NeMo's validator wrote the logs."""
    bounds: NDArray[np.int64]
    """Where the batches of each rank begin, and the end; shape (ranks + 1,)."""
    worker: NDArray[np.int64]
    """The worker of each batch; shape (batches,)."""
    sizes: NDArray[np.int64]
    """How many samples belong to it, but for repeated ones; shape (batches,)."""
    batches: NDArray[np.int64]
    """A hash of these samples in order, of which could not be read, and of how many are repeated;
    shape (batches,)."""
    digests: NDArray[np.int64] | None
    """A hash of all its tensors and texts; shape (batches,). None where they were not made."""
    samples: NDArray[np.int64]
    """A hash of each sample, batch by batch; shape (samples,)."""
    left_out: int
    """How many of them could not be read."""
    out_of_turn: NDArray[np.int64]
    """Batches that say of themselves that they belong elsewhere; ascending."""

    @property
    def name(self) -> str:
        """The folder of its logs, seen from the folder of all phases."""
        return self.phase if self.phase == "groundtruth" else f"{self.phase}/run{self.number}"

    @property
    def world_size(self) -> int:
        """How many ranks it had."""
        return len(self.logs)

    @property
    def rank(self) -> NDArray[np.int64]:
        """The rank of each batch; shape (batches,)."""
        return np.repeat(np.arange(self.world_size), np.diff(self.bounds))

    @property
    def step(self) -> NDArray[np.int64]:
        """How many batches its rank was given before each; shape (batches,)."""
        return np.arange(len(self.batches)) - np.repeat(self.bounds[:-1], np.diff(self.bounds))

    @property
    def batch_of_sample(self) -> NDArray[np.int64]:
        """Which batch each sample is in; shape (samples,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def place_of(self, batch: int) -> dict[str, int]:
        """Rank and step of a batch, by name."""
        rank = int(np.searchsorted(self.bounds, batch, side="right")) - 1
        return {"rank": rank, "step": batch - int(self.bounds[rank])}

    def names_in(self, batch: int) -> tuple[str, ...]:
        """Read the samples that belong to a batch again, for people to see."""
        place = self.place_of(batch)
        log = self.logs[place["rank"]]
        with opened(log) as lines:
            line = next(islice(lines, place["step"], None), b"")
        row = decoded(line, log, place["step"] + 1, msgspec.json.Decoder(LogRow))
        return row.cut_ids + row.left_out

    def names(self, samples: NDArray[np.int64]) -> list[str]:
        """Read the names of some samples of the run again, for people to see.

        Parameters
        ----------
        samples
            Their hashes.
        """
        batches = self.batch_of_sample
        found: list[str] = []
        for sample in samples.tolist():
            batch = int(batches[int(np.argmax(self.samples == sample))])
            found += [name for name in dict.fromkeys(self.names_in(batch)) if hash(name) == sample]
        return found


def run_numbers(folder: Path, phase: Phase) -> list[int]:
    """The runs of a phase that left a folder, ascending."""
    if phase == "groundtruth":
        there = log_path(folder, phase, 0, 0).parent.is_dir()
        return [0] if there else []
    names = [path.name for path in (folder / phase).glob("run*") if path.is_dir()]
    return sorted(int(match[1]) for match in map(_RUN_NAME.fullmatch, names) if match)


def read_run(folder: Path, phase: Phase, number: int) -> Run:
    """Read all logs of a run.

    Parameters
    ----------
    folder
        Where all phases are.
    phase, number
        Which run.

    Raises
    ------
    ConfigError
        If a log is missing, damaged or empty, if steps are missing or out of order, if ranks do not
        agree on how many they are, or if the run did not come to its end.
    """
    meta = _meta(folder, phase, number)
    logs = _logs(folder, phase, number)
    columns = LogColumns()
    for rank, log in enumerate(logs):
        columns.read(log, rank, len(logs))
    if columns.are_ours and meta is None:
        raise ConfigError(
            "the run does not say what it was",
            where=str(meta_path(folder, phase, number)),
            fix=RUN_AGAIN,
        )
    out_of_turn = np.empty(0, np.int64)
    if meta is not None:
        columns.check(meta, logs)
        out_of_turn = columns.out_of_turn(meta)
    return Run(
        phase=phase,
        number=number,
        logs=logs,
        meta=meta,
        bounds=np.array(columns.bounds, np.int64),
        worker=as_array(columns.worker),
        sizes=as_array(columns.sizes),
        batches=as_array(columns.batches),
        digests=as_array(columns.digests) if columns.have_digests else None,
        samples=as_array(columns.samples),
        left_out=columns.left_out,
        out_of_turn=out_of_turn,
    )


def _meta(folder: Path, phase: Phase, number: int) -> RunMeta | None:
    path = meta_path(folder, phase, number)
    if not path.exists():
        return None
    try:
        meta = read_meta(folder, phase, number)
    except PlayheadError as error:
        # 1 is kept for what was judged and fails.
        error.exit_code = 2
        raise
    if not meta.is_over:
        raise ConfigError("the run did not come to its end", where=str(path), fix=RUN_AGAIN)
    return meta


def _logs(folder: Path, phase: Phase, number: int) -> tuple[Path, ...]:
    """The log of each rank, in the order of ranks.

    Raises
    ------
    ConfigError
        If one is missing or too many.
    """
    first = log_path(folder, phase, number, 0)
    if phase == "groundtruth":
        found = {0: first} if first.exists() else {}
    else:
        names = [(path, _LOG_NAME.fullmatch(path.name)) for path in first.parent.glob("rank_*")]
        found = {int(match[1]): path for path, match in names if match}
    if not found:
        raise ConfigError("the run has no logs", where=str(first.parent), fix=RUN_AGAIN)
    world_size = _world_size(found[min(found)])
    if missing := [rank for rank in range(world_size) if rank not in found]:
        ranks = ", ".join(map(str, missing[:8])) + (" …" if len(missing) > 8 else "")
        raise ConfigError(
            f"there were {said(world_size, 'rank')}, and the logs of these are missing: {ranks}",
            where=str(first.parent),
            fix="Gather the logs of all nodes in this folder, or run this phase again",
        )
    if (last := max(found)) >= world_size:
        raise ConfigError(
            f"there {'was' if world_size == 1 else 'were'} {said(world_size, 'rank')}, and here is"
            f" a log of rank {last}",
            where=str(found[last]),
            fix="Remove what another run left, or run this phase again into an empty folder",
        )
    return tuple(found[rank] for rank in range(world_size))


def _world_size(log: Path) -> int:
    with opened(log) as file:
        line = file.readline()
    return decoded(line, log, 1, msgspec.json.Decoder(LogRow)).world_size
