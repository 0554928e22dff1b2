"""The verdict over the logs of all runs of a validation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.storage.atomic import atomic_write
from playhead.validate.collecting import collect
from playhead.validate.exact_resume import exact_resume
from playhead.validate.questions import (
    all_samples,
    no_sample_twice,
    ranks_disjoint,
    same_again,
)
from playhead.validate.repeats import find_repeats
from playhead.validate.speed import read_speed, speed_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from playhead.validate.answer import Answer

__all__ = ["REPORT_NAME", "Verdict", "consolidate"]

REPORT_NAME = "validation_report.json"
"""The file that a verdict is written to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a validation comes to."""

    answers: tuple[Answer, ...]
    """Q1 to Q5."""
    throughput: Mapping[str, Any]
    """How fast batches came; see `playhead.validate.speed.read_speed`."""

    @property
    def exit_code(self) -> int:
        """What a command ends with: 0; 1 if a question fails; 2 if none could be judged."""
        statuses = {answer.status for answer in self.answers}
        return 1 if "FAIL" in statuses else 2 if statuses <= {"SKIP"} else 0

    @property
    def lines(self) -> list[str]:
        """The report, as people read it."""
        return [
            f"=== validation report ({len(self.answers)} questions) ===",
            *map(str, self.answers),
            speed_line(self.throughput),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types, as it is written."""
        return {
            "questions": {answer.question: answer.to_json() for answer in self.answers},
            "throughput": dict(self.throughput),
        }


def consolidate(
    folder: Path,
    *,
    checkpoint_at: int | None = None,
    determinism_runs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Judge the logs in a folder, and write the verdict to `REPORT_NAME` in it.

    Parameters
    ----------
    folder
        Where all phases are.
    checkpoint_at
        The batch after which the baseline saved its state; below 0 if it did not; None takes it
        from what the baseline says of itself, or is 0 where it says nothing.
    determinism_runs
        How many runs of the baseline there have to be at least; all that there are, are compared.
    say
        Told of each run that was read.

    Raises
    ------
    SourceNotFoundError
        If there is no such folder, or no baseline in it.
    ConfigError
        If logs are missing, damaged or not of one validation, or the state is missing: its exit
        code is 2, and there is no verdict.
    """
    # A verdict of earlier logs must not be taken for one of these.
    if folder.is_dir():
        (folder / REPORT_NAME).unlink(missing_ok=True)
    runs = collect(folder, checkpoint_at=checkpoint_at, determinism_runs=determinism_runs, say=say)
    baseline = runs.baselines[0]
    again = find_repeats(baseline)
    verdict = Verdict(
        answers=(
            no_sample_twice(again),
            all_samples(baseline, runs.groundtruth),
            ranks_disjoint(again),
            exact_resume(baseline, runs.resumed, runs.checkpoint_at),
            same_again(runs.baselines),
        ),
        throughput=read_speed(folder, baseline.world_size),
    )
    with atomic_write(folder / REPORT_NAME) as file:
        file.write(json.dumps(verdict.to_json(), indent=2).encode() + b"\n")
    return verdict
