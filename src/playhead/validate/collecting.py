"""All runs of a validation, read and found to be comparable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from playhead.errors import ConfigError, SourceNotFoundError
from playhead.validate.answer import said
from playhead.validate.reading import read_run, run_numbers
from playhead.validate.rows import log_path, state_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.validate.reading import Run
    from playhead.validate.rows import Phase

__all__ = ["Runs", "collect"]

_ONE_CONFIG = "Run all phases on one config, into an empty folder"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Runs:
    """The runs that are held against each other."""

    baselines: tuple[Run, ...]
    """The run that was not stopped, and the same once more, and again."""
    resumed: tuple[Run, ...]
    """Those that began with a state of the first baseline."""
    groundtruth: Run | None
    """All samples of a pass."""
    checkpoint_at: int | None
    """The batch of every rank, from 0, after which that state was saved; None if none was."""


def collect(
    folder: Path,
    *,
    checkpoint_at: int | None,
    determinism_runs: int,
    say: Callable[[str], None],
) -> Runs:
    """Read the logs of all phases in a folder.

    Parameters
    ----------
    folder
        Where all phases are.
    checkpoint_at
        The batch after which the baseline saved its state; below 0 if it did not; None takes it
        from what the baseline says of itself, or is 0 where it says nothing.
    determinism_runs
        How many runs of the baseline there have to be at least.
    say
        Told of each run that was read.

    Raises
    ------
    SourceNotFoundError
        If there is no such folder, or no baseline in it.
    ConfigError
        If logs are missing, damaged or not of one validation, or the state is missing.
    """
    if not folder.is_dir():
        raise SourceNotFoundError(
            "there is no such folder", where=str(folder), fix="Give the --output-dir of the phases"
        )
    baselines = _read(folder, "baseline", say)
    if not baselines or baselines[0].number != 0:
        raise SourceNotFoundError(
            "there is no baseline",
            where=str(log_path(folder, "baseline", 0, 0).parent),
            fix="Run the phase baseline first, and give its --output-dir",
        )
    if not len(baselines[0].samples):
        raise ConfigError(
            "no sample came in the baseline",
            where=str(baselines[0].logs[0].parent),
            fix="Look at what the dataset of the run gives",
        )
    if len(baselines) < determinism_runs:
        raise ConfigError(
            f"of {determinism_runs} runs of the baseline there"
            f" {'is' if len(baselines) == 1 else 'are'} {len(baselines)}",
            where=str(folder / "baseline"),
            fix=f"Run the phase baseline with every --run-idx from 0 to {determinism_runs - 1}",
        )
    resumed = _read(folder, "resumed", say)
    truths = _read(folder, "groundtruth", say)
    first = baselines[0]
    for other in (*baselines[1:], *resumed, *truths):
        _check_comparable(first, other)
    for twin in baselines[1:]:
        _check_twin(first, twin)
    return Runs(
        baselines=baselines,
        resumed=resumed,
        groundtruth=truths[0] if truths else None,
        checkpoint_at=_checkpoint(folder, first, checkpoint_at, is_needed=bool(resumed)),
    )


def _read(folder: Path, phase: Phase, say: Callable[[str], None]) -> tuple[Run, ...]:
    runs: list[Run] = []
    for number in run_numbers(folder, phase):
        run = read_run(folder, phase, number)
        say(
            f"{run.name}: {said(run.world_size, 'rank')},"
            f" {said(len(run.batches), 'batch', several='batches')},"
            f" {said(len(run.samples), 'sample')}"
        )
        runs.append(run)
    return tuple(runs)


def _check_comparable(first: Run, other: Run) -> None:
    own, theirs = first.meta, other.meta
    where = str(other.logs[0].parent)
    if own is None or theirs is None:
        if own is None and theirs is None:
            if other.phase == "resumed" and other.world_size != first.world_size:
                raise ConfigError(
                    f"the baseline had {said(first.world_size, 'rank')} and this run"
                    f" {other.world_size}, and the logs do not say to which optimizer steps their"
                    " batches belong",
                    where=where,
                    fix=f"Resume on {said(first.world_size, 'rank')}, or write the logs with"
                    " `playhead validate`",
                )
            return
        raise ConfigError(
            f"Playhead wrote only one of {first.name} and {other.name}",
            where=where,
            fix=_ONE_CONFIG,
        )
    differing = [
        f"{what} ({mine} and {its})"
        for what, mine, its in (
            ("config", own.config_digest[:12], theirs.config_digest[:12]),
            ("seed", own.seed, theirs.seed),
            ("mode", own.mode, theirs.mode),
        )
        # The ground truth makes no batches, whatever the mode is.
        if mine != its and (what != "mode" or other.phase != "groundtruth")
    ]
    if differing:
        raise ConfigError(
            f"{first.name} and {other.name} differ in their {' and '.join(differing)}",
            where=where,
            fix=_ONE_CONFIG,
        )


def _check_twin(first: Run, twin: Run) -> None:
    """Refuse a second baseline that was asked for something else."""
    own, theirs = first.meta, twin.meta
    pairs = [("world size", first.world_size, twin.world_size)]
    if own and theirs:
        pairs += [
            ("length in batches", own.steps, theirs.steps),
            ("micro_batches_per_step", own.micro_batches_per_step, theirs.micro_batches_per_step),
        ]
    for what, mine, its in pairs:
        if mine != its:
            raise ConfigError(
                f"the {what} of {first.name} is {mine}, and that of {twin.name} {its}",
                where=str(twin.logs[0].parent),
                fix="Run the baseline again as it was run first",
            )


def _checkpoint(folder: Path, baseline: Run, asked: int | None, *, is_needed: bool) -> int | None:
    """The batch after which the state was saved, if it was."""
    meta = baseline.meta
    where = str(baseline.logs[0].parent)
    told = None if meta is None else meta.checkpoint_at
    if asked is not None and asked < 0:
        return None
    at = asked
    if at is None:
        if meta is None and not is_needed:
            return None
        at = 0 if meta is None else told
    if at is None:
        return None
    per_step = 1 if meta is None else meta.micro_batches_per_step // meta.world_size
    # A state is a whole number of optimizer steps.
    end = at // per_step * per_step + per_step - 1
    if meta is not None and told != end:
        saved = "saved no state" if told is None else f"saved its state after batch {told}"
        raise ConfigError(
            f"--checkpoint-at is {at}, and the baseline {saved}",
            where=where,
            fix="Leave out --checkpoint-at, or run the baseline with it",
        )
    last = int(np.min(np.diff(baseline.bounds))) - 1
    if end >= last:
        raise ConfigError(
            f"--checkpoint-at is {at}, and the last batch of the baseline is {last}: none comes"
            " after it",
            where=where,
            fix="Give the --checkpoint-at that the baseline had, or run it with more --steps",
        )
    states = [state_path(folder, 0, rank) for rank in range(baseline.world_size)]
    if lost := [path for path in states if not path.is_file() or not path.stat().st_size]:
        raise ConfigError(
            f"of {said(len(states), 'state')} of the baseline {len(lost)}"
            f" {'is' if len(lost) == 1 else 'are'} missing or empty",
            where=str(lost[0]),
            fix="Run the baseline again with --checkpoint-at",
        )
    return end
