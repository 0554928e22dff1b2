"""Validations in this process: rank after rank, without a process group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from playhead.loader.ranks import Topology
from playhead.validate.consolidating import Verdict, consolidate
from playhead.validate.options import PhaseOptions
from playhead.validate.phases import run_phase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["failed", "run_ranks_of", "validated"]


def run_ranks_of(world: int, **options: Any) -> None:
    """Run all ranks of a phase."""
    asked = PhaseOptions(**options)
    for rank in range(world):
        run_phase(asked, Topology(rank=rank, world_size=world), say=lambda _: None)


def validated(
    folder: Path,
    config: dict[str, Any],
    *,
    ranks: int = 2,
    resume: Sequence[tuple[int, int]] = ((2, 0), (1, 0)),
    checkpoint_at: int = 0,
    **options: Any,
) -> Verdict:
    """Run all phases of a config, the resumed ones on these ranks and workers, and judge them."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    common = {"config": str(path), "output_dir": folder / "out", **options}
    for number in range(2):
        run_ranks_of(ranks, phase="baseline", run=number, checkpoint_at=checkpoint_at, **common)
    common.pop("steps", None)
    states = folder / "out" / "baseline" / "run0"
    for number, (world, workers) in enumerate(resume):
        given = {"phase": "resumed", "run": number, "state_dir": states, "num_workers": workers}
        run_ranks_of(world, **{**common, **given})
    if common.get("force_finite", True):
        run_ranks_of(1, phase="groundtruth", **common)
    return consolidate(folder / "out", determinism_runs=2)


def failed(verdict: Verdict) -> list[str]:
    """The questions that fail."""
    return [answer.question for answer in verdict.answers if answer.status == "FAIL"]
