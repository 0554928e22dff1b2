"""What a validation run writes down: a line for every batch, and where the files are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BAD_SAMPLES_NAME", "BatchRow", "Phase", "log_path", "state_path", "throughput_path"]

Phase = Literal["baseline", "resumed", "groundtruth"]

BAD_SAMPLES_NAME = "bad_samples.jsonl"
"""The file beside the logs that names samples which cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRow:
    """One batch that one rank was given: a line of a log."""

    step: int
    """Batches that this rank was given before it in this phase."""
    rank: int
    """The rank."""
    world_size: int
    """How many ranks there were."""
    worker_id: int
    """The worker process that made it; 0 where the rank makes its batches itself."""
    cut_ids: tuple[str, ...]
    """What is in it, in order: the place of every sample in the data, which no two share. A
    sample that a finite pass repeats to fill its last step is not among them."""
    batch_size: int
    """Samples, repeated ones among them."""
    t_total_ms: float
    """How long the rank waited for it (ms)."""
    t_first_batch_ms: float | None = None
    """How long the first batch took from when the loader was asked for it (ms); of step 0."""
    semantic_cut_ids: tuple[str, ...] = ()
    """What people call the samples; not unique in real data."""
    source_ids: tuple[str, ...] = ()
    """The leaf of each sample, by name."""
    declared_duration_seconds: float | None = None
    """Lengths of all samples as declared (s)."""
    sampled_num_tokens: int | None = None
    """Tokens of all samples, where they are counted."""
    of_step: int
    """The optimizer step that it belongs to, counted since the start of training."""
    slot: int
    """Its place in that step, 0 ≤ slot < micro-batches per step."""
    repeated: int = 0
    """How many of its samples are repeated ones."""
    left_out: tuple[str, ...] = ()
    """The places of samples that belong to it and whose audio cannot be read."""
    digest: str | None = None
    """SHA-256 of all its tensors and texts, where they are compared (`--mode full`)."""


def log_path(folder: Path, phase: Phase, run: int, rank: int) -> Path:
    """The log of a rank."""
    if phase == "groundtruth":
        return folder / "groundtruth" / "cuts.jsonl"
    return folder / phase / f"run{run}" / f"rank_{rank:03d}.jsonl"


def state_path(folder: Path, run: int, rank: int) -> Path:
    """The state that a rank saved in the baseline."""
    return folder / "baseline" / f"run{run}" / f"state_rank_{rank:03d}.pt"


def throughput_path(folder: Path, rank: int) -> Path:
    """What the first baseline run of a rank says of its speed."""
    return folder / "baseline" / "run0" / f"throughput_rank_{rank:03d}.json"
