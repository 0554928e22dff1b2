"""Rules on the job around the loader: its checkpoints, its end, its processes."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from playhead.check.preflight.changes import diff
from playhead.check.preflight.rule import CannotRun, Seen, rule
from playhead.config import Spot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playhead.check.preflight.subject import Subject

__all__: list[str] = []

_LHOTSE = (1, 33)
_WORLDS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
_TRIGGERS = ("every_n_train_steps", "train_time_interval")


def _mapping(subject: Subject, *keys: str) -> dict[str, Any]:
    """A part of the whole training config.

    Raises
    ------
    CannotRun
        When the config has no such part.
    """
    node: Any = subject.content
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, dict) or subject.is_evaluation:
        raise CannotRun(f"the config has no {'.'.join(keys)}, or this is no training section")
    return node


@rule(
    "checkpoint-interval",
    "warning",
    "What was trained since the last checkpoint is lost with a job",
    44,
)
def checkpoint_interval(subject: Subject) -> Iterator[Seen]:
    """Checkpoints that are only saved at the end of an epoch, which may never come."""
    manager = _mapping(subject, "exp_manager")
    spot = Spot(subject.section.file, ("exp_manager",))
    given = manager.get("checkpoint_callback_params")
    given = given if isinstance(given, dict) else {}
    set_ = [name for name in _TRIGGERS if given.get(name)]
    below = spot.at("checkpoint_callback_params")
    if len(set_) > 1:
        yield Seen(
            f"{' and '.join(set_)} are both set, and Lightning takes one",
            str(below),
            diff(below, remove=(set_[1],)),
            severity="fail",
        )
    elif not set_ and manager.get("create_checkpoint_callback", True):
        yield Seen(
            "checkpoints are saved neither after a number of steps nor after a time",
            str(below),
            diff(below, add={"every_n_train_steps": 1000}),
            "Save well before the time limit of a job",
        )


@rule("resume-if-exists", "warning", "A job that starts again begins at step 0", 45)
def resume_if_exists(subject: Subject) -> Iterator[Seen]:
    """Jobs that do not look for a checkpoint."""
    manager = _mapping(subject, "exp_manager")
    spot = Spot(subject.section.file, ("exp_manager",))
    for name, why in (
        ("resume_if_exists", "a checkpoint is not looked for"),
        ("resume_ignore_no_checkpoint", "the first job fails, for it has none yet"),
    ):
        if manager.get(name) is not True:
            yield Seen(
                f"`{name}` is not true: {why}", str(spot.at(name)), diff(spot, add={name: True})
            )


@rule("endless-training", "fail", "An endless blend has no epochs that a trainer could count", 46)
def endless_training(subject: Subject) -> Iterator[Seen]:
    """Trainers without a number of steps, on blends without an end."""
    trainer = _mapping(subject, "trainer")
    endless = [name for name, _, blend, _ in subject.parts if not blend.finite]
    ends = [trainer.get(name) for name in ("max_steps", "max_time", "limit_train_batches")]
    # A text such as `${steps}` is somebody's number; a share of an endless epoch is endless.
    counted = any(
        isinstance(end, str) or (isinstance(end, int) and not isinstance(end, bool) and end > 0)
        for end in ends
    )
    if endless and not counted:
        spot = Spot(subject.section.file, ("trainer",))
        yield Seen(
            "the blend has no end, and the trainer has neither max_steps, max_time nor a whole"
            " number as limit_train_batches",
            str(spot),
            diff(spot, add={"max_steps": 100000}),
        )


@rule("world-size", "fail", "All ranks take the same number of micro-batches in a step")
def world_size(subject: Subject) -> Iterator[Seen]:
    """Steps that the ranks of this launcher cannot share."""
    named = next((name for name in _WORLDS if subject.environment.get(name, "").isdigit()), None)
    if named is None:
        return
    ranks = int(subject.environment[named])
    for _, options, _, spot in subject.parts:
        per_step = options.micro_batches_per_step
        if per_step is not None and ranks and per_step % ranks:
            yield Seen(
                f"`micro_batches_per_step` is {per_step}, and {named} is {ranks}",
                str(spot.at("micro_batches_per_step")),
                diff(spot, add={"micro_batches_per_step": -(-per_step // ranks) * ranks}),
                "Use a multiple of the number of ranks",
            )


@rule("lhotse-version", "fail", "Samples are made of Lhotse's cuts", 48)
def lhotse_version(subject: Subject) -> Iterator[Seen]:
    """A Lhotse that is too old, or none."""
    del subject
    try:
        found = version("lhotse")
    except PackageNotFoundError:
        yield Seen("Lhotse is not installed", advice="Run `pip install 'lhotse>=1.33'`")
        return
    numbers = [int(part) for part in found.split(".")[:2] if part.isdigit()]
    if tuple(numbers) < _LHOTSE:
        yield Seen(f"Lhotse {found} is installed", advice="Run `pip install 'lhotse>=1.33'`")
