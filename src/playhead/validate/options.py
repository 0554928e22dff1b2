"""What a phase is asked for, read once and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError
from playhead.validate.rows import BAD_SAMPLES_NAME, log_path

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.validate.meta import Mode
    from playhead.validate.rows import Phase

__all__ = ["USUAL_STEPS", "PhaseOptions"]

USUAL_STEPS = 200
"""Batches that a rank is given where nobody says how many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseOptions:
    """One phase of a validation, as all its ranks run it."""

    config: str
    """Path of the config."""
    output_dir: Path
    """Where logs, states and figures go."""
    phase: Phase
    """What is run."""
    data_blend_dir: str | None = None
    """What `${data_blend_dir}` stands for."""
    section: str | None = None
    """Section of a training config; its training section if None."""
    input_cfg: str | None = None
    """Path of a YAML whose entries stand in for the section's own; None keeps these."""
    run: int = 0
    """Number of the run in its phase."""
    steps: int | None = None
    """Batches that every rank is given at most; None is 200, and of a resumed run as many as its
    baseline had after the state was saved."""
    checkpoint_at: int | None = None
    """The batch of every rank, from 0, after which the state is saved; None saves none."""
    state_dir: Path | None = None
    """Folder with the states that a resumed run begins with."""
    force_finite: bool = True
    """Whether passes end, whatever the config says."""
    metadata_only: bool = True
    """Whether no audio is read."""
    num_workers: int | None = None
    """Worker processes of a rank; None is what the config says."""
    skip_missing: bool | None = None
    """`skip_missing_manifest_entries` of the whole; None is what the config says."""
    mode: Mode = "fast"
    """`full` makes the tensors of all batches, and takes down a digest of them."""
    tokenizer: Any = None
    """What makes tokens of texts; None where nothing does."""
    dataset: Any = None
    """What makes the batches of `full`; None is a dataset of ours."""
    world_size: int | None = None
    """How many ranks there have to be; None takes as many as there are."""

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        ConfigError
            If something does not.
        """
        for name, value, least in (
            ("--run-idx", self.run, 0),
            ("--steps", self.steps, 1),
            ("--num-workers-override", self.num_workers, 0),
        ):
            if value is not None and value < least:
                raise ConfigError(f"{name} {value} is below {least}", fix=f"Use at least {least}")
        if self.phase == "resumed" and self.state_dir is None:
            raise ConfigError(
                "a resumed run needs a state to begin with",
                fix="Give --state-dir with the folder of the baseline, as DIR/baseline/run0",
            )
        if self.phase == "groundtruth" and not self.force_finite:
            raise ConfigError(
                "data without an end have no whole pass to tell the truth about",
                fix="Leave out --no-force-finite, or leave out the phase groundtruth",
            )
        if self.dataset is not None and self.mode == "fast":
            raise ConfigError(
                "a dataset makes no batches where only samples are compared",
                fix="Add --mode full, or leave out --dataset",
            )

    @property
    def overrides(self) -> dict[str, Any]:
        """Options of the config that are other ones while it is validated.

        A section that reads no audio ends after a pass, whether it says `force_finite` or not: one
        that is to be endless has to say that audio is read, and a dataset that reads none.
        """
        reads_none = self.metadata_only and self.mode == "fast"
        changed: dict[str, Any] = {
            "force_finite": self.force_finite,
            "metadata_only": reads_none and self.force_finite,
            # The file of the training itself is not to hear of it.
            "bad_samples": str(
                log_path(self.output_dir, self.phase, self.run, 0).with_name(BAD_SAMPLES_NAME)
            ),
        }
        if self.num_workers is not None:
            changed["num_workers"] = self.num_workers
        if self.skip_missing is not None:
            changed["skip_missing_manifest_entries"] = self.skip_missing
        if self.input_cfg is not None:
            from pathlib import Path  # noqa: PLC0415  (for this alone)

            changed["input_cfg"] = str(Path(self.input_cfg).absolute())
        return changed
