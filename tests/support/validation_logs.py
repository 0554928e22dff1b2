"""Logs of a validation, made up: what a run without a fault writes, and what is planted in it."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.validate.meta import RunMeta, meta_path
from playhead.validate.rows import log_path, state_path, throughput_path

if TYPE_CHECKING:
    from pathlib import Path

NEMO_KEYS = (
    "step",
    "rank",
    "world_size",
    "worker_id",
    "cut_ids",
    "batch_size",
    "t_total_ms",
    "t_first_batch_ms",
)


@dataclass
class MadeRun:
    """One run: the rows of each rank, and what it says of itself."""

    meta: RunMeta
    rows: list[list[dict[str, Any]]]

    def write(self, folder: Path) -> None:
        """Write its logs, and what it says of itself."""
        meta = self.meta
        for rank, rows in enumerate(self.rows):
            path = log_path(folder, meta.phase, meta.run, rank)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # Not as it is written for good: waiting for the disk is most of the time of a test.
        path = meta_path(folder, meta.phase, meta.run)
        path.write_bytes(msgspec.json.encode(meta))

    def tell(self, **changed: Any) -> None:
        """Have it say something else of itself."""
        self.meta = replace(self.meta, **changed)


@dataclass
class MadeValidation:
    """All runs of a validation."""

    runs: list[MadeRun]
    saved_by: int = 1
    """Ranks that left a state."""
    waits: list[dict[str, Any]] = field(default_factory=list)
    """What each rank says of its speed."""

    def run(self, phase: str, number: int = 0) -> MadeRun:
        """One of its runs."""
        return next(run for run in self.runs if run.meta.phase == phase and run.meta.run == number)

    def without(self, phase: str, number: int = 0) -> MadeValidation:
        """The same without one of its runs."""
        gone = self.run(phase, number)
        return replace(self, runs=[run for run in self.runs if run is not gone])

    def write(self, folder: Path) -> Path:
        """Write everything in place of what is there; return the folder."""
        shutil.rmtree(folder, ignore_errors=True)
        for run in self.runs:
            run.write(folder)
        for rank in range(self.saved_by):
            path = state_path(folder, 0, rank)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"state")
        for rank, waits in enumerate(self.waits):
            throughput_path(folder, rank).write_text(json.dumps(waits))
        return folder


def as_nemo_writes(made: MadeValidation, folder: Path) -> Path:
    """Write the same logs as NeMo's validator does: fewer columns, and nothing beside them."""
    plain = deepcopy(made)
    for run in plain.runs:
        run.rows = [[{key: row[key] for key in NEMO_KEYS} for row in rows] for rows in run.rows]
    plain.write(folder)
    for run in plain.runs:
        meta_path(folder, run.meta.phase, run.meta.run).unlink()
    return folder


def validation(
    *,
    slots: int = 4,
    ranks: int = 2,
    steps: int = 6,
    after: int = 2,
    size: int = 3,
    resumed: tuple[tuple[int, int], ...] = ((2, 1),),
    twins: int = 1,
    workers: int = 2,
    full: bool = False,
    finite: bool = True,
) -> MadeValidation:
    """A validation in which all is well.

    Parameters
    ----------
    slots
        Micro-batches of a step.
    ranks
        Ranks of the baseline; they divide `slots`.
    steps
        Optimizer steps of the pass.
    after
        Steps after which the state is saved.
    size
        Samples of a batch.
    resumed
        Ranks and workers of each resumed run.
    twins
        Further runs of the baseline.
    workers
        Workers of the baseline.
    full
        Whether batches have digests.
    finite
        Whether it is a whole pass.
    """
    common = {
        "slots": slots,
        "size": size,
        "full": full,
        "finite": finite,
        "last": steps,
        "steps": steps * slots // ranks,
    }
    own = {**common, "ranks": ranks, "workers": workers, "first": 0}
    checkpoint = after * slots // ranks - 1
    runs = [_run("baseline", number, checkpoint=checkpoint, **own) for number in range(twins + 1)]
    for number, (others, their_workers) in enumerate(resumed):
        theirs = {**common, "ranks": others, "workers": their_workers, "first": after}
        theirs["steps"] = (steps - after) * slots // others
        runs.append(_run("resumed", number, checkpoint=None, **theirs))
    if finite:
        runs.append(_truth(runs[0]))
    return MadeValidation(runs, saved_by=ranks)


def _run(
    phase: str,
    number: int,
    *,
    slots: int,
    ranks: int,
    workers: int,
    first: int,
    last: int,
    steps: int,
    size: int,
    full: bool,
    finite: bool,
    checkpoint: int | None,
) -> MadeRun:
    rows: list[list[dict[str, Any]]] = []
    for rank in range(ranks):
        places = [(step, slot) for step in range(first, last) for slot in range(rank, slots, ranks)]
        rows.append(
            [
                {
                    "step": turn,
                    "rank": rank,
                    "world_size": ranks,
                    "worker_id": turn % max(workers, 1),
                    "cut_ids": [f"leaf:0:{step}:{slot}:{n}" for n in range(size)],
                    "batch_size": size,
                    "t_total_ms": 1.0,
                    "t_first_batch_ms": None if turn else 9.0,
                    "of_step": step,
                    "slot": slot,
                    "repeated": 0,
                    "digest": f"{step}-{slot}" if full else None,
                }
                for turn, (step, slot) in enumerate(places)
            ]
        )
    meta = RunMeta(
        phase=phase,
        run=number,
        is_over=True,
        world_size=ranks,
        micro_batches_per_step=slots,
        num_workers=workers,
        mode="full" if full else "fast",
        config_digest="c0ffee",
        seed=7,
        is_finite=finite,
        steps=steps,
        batches=steps,
        is_exhausted=finite,
        first_step=first,
        checkpoint_at=checkpoint,
    )
    return MadeRun(meta, rows)


def _truth(baseline: MadeRun) -> MadeRun:
    rows = [row for rows in baseline.rows for row in rows]
    lines = [
        {
            **row,
            "step": number,
            "rank": 0,
            "world_size": 1,
            "of_step": 0,
            "slot": 0,
            "digest": None,
            "cut_ids": sorted(row["cut_ids"]),
        }
        for number, row in enumerate(sorted(rows, key=lambda row: row["cut_ids"]))
    ]
    meta = replace(
        baseline.meta,
        phase="groundtruth",
        run=0,
        world_size=1,
        num_workers=0,
        steps=len(lines),
        batches=len(lines),
        checkpoint_at=None,
    )
    return MadeRun(meta, [lines])
