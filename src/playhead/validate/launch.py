"""All phases of a validation on one machine, each in processes of its own, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead.errors import ConfigError
from playhead.local_ranks import run_ranks
from playhead.storage.held import hold
from playhead.validate.answer import said
from playhead.validate.consolidating import Verdict, consolidate
from playhead.validate.extent import check_resumed_ranks, choose_extent
from playhead.validate.leftovers import remove_all_runs
from playhead.validate.meta import read_meta
from playhead.validate.opening import open_truth
from playhead.validate.truth import tell_truth
from playhead.validate.whole_pass import why_no_pass

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playhead.loader.fusion import FusedPlanning
    from playhead.loader.run import Planning
    from playhead.storage.held import Held
    from playhead.validate.extent import Extent
    from playhead.validate.meta import RunMeta
    from playhead.validate.options import PhaseOptions
    from playhead.validate.rows import Phase

__all__ = ["Validation", "validate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """What is to be proved, and on how many ranks and workers."""

    options: PhaseOptions
    """What all phases are asked for; which phase it says is no matter."""
    arguments: tuple[str, ...]
    """The same as arguments of `playhead validate`, but for what differs between the phases."""
    ranks: int
    """Processes of the baseline."""
    resume_ranks: tuple[int, ...]
    """Processes of the resumed runs; the baseline's own are among them in any case."""
    resume_workers: tuple[int | None, ...] = (None,)
    """Worker processes of the resumed runs; None is what the baseline has."""
    steps: int | None = None
    """Batches of each rank of the baseline; None is a pass, at most 200."""
    whole_pass: bool = False
    """Whether a pass is gone through, however long it is."""
    checkpoint_at: int | None = None
    """The batch of each rank, from 0, after which the state is saved; None is three quarters."""
    deadline_seconds: float = 3600.0
    """After this a phase is given up."""

    @property
    def resumed_runs(self) -> list[tuple[int, int | None]]:
        """Ranks and workers of each resumed run; the first is on the ranks of the baseline."""
        asked = [
            (ranks, workers)
            for ranks in (self.ranks, *self.resume_ranks)
            for workers in self.resume_workers
        ]
        return list(dict.fromkeys([(self.ranks, None), *asked]))


def validate(validation: Validation, *, say: Callable[[str], None]) -> Verdict:
    """Run all phases, and judge what they wrote down.

    Parameters
    ----------
    validation
        What is to be proved.
    say
        Told how far it is, in a sentence.

    Raises
    ------
    ConfigError, PositionError
        If what is asked for cannot be done with these data; nothing has run.
    WorkerError
        If a process of a phase fails, or its deadline passes.
    PlayheadError
        What goes wrong while the config is opened.
    """
    return _Phases(validation, say).run()


class _Phases:
    """The phases of a validation in turn."""

    def __init__(self, validation: Validation, say: Callable[[str], None]) -> None:
        self._asked = validation
        self._say = say
        self._folder = validation.options.output_dir
        self._logs = self._folder / "processes"

    def run(self) -> Verdict:
        """Run them."""
        planning, extent = self._opened()
        self._logs.mkdir(parents=True, exist_ok=True)
        lock = _locked(self._logs / "lock")
        try:
            return self._run(planning, extent)
        finally:
            if lock is not None:
                lock.close()

    def _run(self, planning: Planning | FusedPlanning, extent: Extent) -> Verdict:
        asked = self._asked
        remove_all_runs(self._folder)
        baseline = [f"--steps={extent.steps}", f"--checkpoint-at={extent.checkpoint_at}"]
        for number in range(2):
            self._phase("baseline", number, asked.ranks, baseline)
        states = self._folder / "baseline" / "run0"
        for number, (ranks, workers) in enumerate(asked.resumed_runs):
            given = [f"--state-dir={states}", f"--resume-ranks={ranks}"]
            if workers is not None:
                given.append(f"--resume-workers={workers}")
            self._phase("resumed", number, ranks, given)
        why_none = why_no_pass(planning)
        if why_none is None:
            self._truth()
        else:
            self._say(f"no groundtruth: {why_none}")
        return consolidate(self._folder, determinism_runs=2)

    def _opened(self) -> tuple[Planning | FusedPlanning, Extent]:
        """Open the config, which builds what is missing, and choose how long runs are."""
        asked = self._asked
        opened = open_truth(asked.options, world_size=asked.ranks, say=self._say)
        planning = opened.planning
        seed = opened.options.seed
        assert isinstance(seed, int), "configs that draw their seed are read with another"
        check_resumed_ranks(asked.resume_ranks, opened.options.micro_batches_per_step)
        extent = choose_extent(
            planning,
            seed=seed,
            ranks=asked.ranks,
            steps=asked.steps,
            checkpoint_at=asked.checkpoint_at,
            whole_pass=asked.whole_pass,
        )
        rows = said(sum(leaf.num_rows for leaf in planning.leaves), "row")
        self._say(f"{asked.options.config}: {rows} of {said(len(planning.leaves), 'source')}")
        if planning.finite and not extent.is_whole_pass:
            self._say(
                f"a pass is longer than {said(extent.steps, 'batch', several='batches')} of a rank:"
                " whether every sample comes (Q2) is only seen with --whole-pass"
            )
        return planning, extent

    def _phase(self, phase: Phase, number: int, ranks: int, given: list[str]) -> None:
        asked = self._asked
        command = [
            *("-m", "playhead", "validate", *asked.arguments),
            *(f"--output-dir={self._folder}", f"--phase={phase}", f"--run-idx={number}", *given),
        ]
        seconds = run_ranks(
            f"{phase}-{number}",
            ranks,
            lambda _: command,
            self._logs,
            deadline_seconds=asked.deadline_seconds,
        )
        meta = read_meta(self._folder, phase, number)
        self._say(f"{_told(meta)} ({seconds:.1f} s)")

    def _truth(self) -> None:
        tell_truth(self._asked.options, say=lambda _: None)
        self._say("groundtruth: all samples of a pass, out of the columns")


def _locked(path: Path) -> Held | None:
    """Keep others out of a folder for as long as this process runs; None where files have no locks.

    Raises
    ------
    ConfigError
        If somebody is in it.
    """
    try:
        held = hold(path, create=True)
    except ConfigError:
        # That nobody else is there is then up to whoever starts it.
        return None
    if held is None:
        raise ConfigError(
            "another validation runs in this folder",
            where=str(path.parent.parent),
            fix="Wait for its end, or give another --output-dir",
        )
    return held


def _told(meta: RunMeta) -> str:
    ranks, workers = said(meta.world_size, "rank"), said(meta.num_workers, "worker")
    batches = said(meta.batches, "batch", several="batches")
    text = f"{meta.phase} {meta.run}: {ranks}, {workers} each: {batches} a rank"
    if meta.checkpoint_at is not None:
        text += f", state after batch {meta.checkpoint_at}"
    return text + (", the pass is over" if meta.is_exhausted else "")
