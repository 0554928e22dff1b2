"""The phases of a validation: the run itself, the run that was resumed, and the truth."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from playhead.errors import ConfigError, PositionError, SourceNotFoundError
from playhead.loader.ranks import Topology, has_process_group
from playhead.validate.answer import said
from playhead.validate.batch_rows import BatchRows
from playhead.validate.full import FullSummary
from playhead.validate.leftovers import remove_of_ranks
from playhead.validate.meta import RunMeta, read_meta_file, write_meta
from playhead.validate.opening import config_digest, open_phase
from playhead.validate.options import USUAL_STEPS
from playhead.validate.row_log import RowLog
from playhead.validate.rows import log_path, state_path, throughput_path
from playhead.validate.states import load_state, save_state
from playhead.validate.throughput import Throughput, write_throughput
from playhead.validate.truth import tell_truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.loader import Loader
    from playhead.plan import MicroBatch
    from playhead.validate.options import PhaseOptions

__all__ = ["run_phase"]


def run_phase(
    options: PhaseOptions,
    topology: Topology,
    *,
    say: Callable[[str], None],
    tell: Callable[[int, int], None] | None = None,
) -> RunMeta:
    """Run one rank's share of a phase, and write down what it was given.

    Parameters
    ----------
    options
        What is asked for.
    topology
        Which rank this is, of how many.
    say
        Told what people should know, in a sentence.
    tell
        Told after every batch how many there were, and how many were asked for; None tells nobody.

    Returns
    -------
    RunMeta
        What is written beside the logs by rank 0.

    Raises
    ------
    ConfigError
        If the phase cannot be run so.
    PositionError
        If the state to begin with cannot be used; its exit code is 2.
    PlayheadError, Exception
        What goes wrong while the config is opened or a batch is made.
    """
    wanted = options.world_size
    if wanted is not None and wanted != topology.world_size:
        raise ConfigError(
            f"--resume-world-size is {wanted}, and the launcher started"
            f" {said(topology.world_size, 'rank')}",
            fix=f"Start {wanted}, as torchrun --nproc-per-node {wanted}",
        )
    if options.phase == "groundtruth":
        if topology.world_size != 1:
            raise ConfigError(
                f"the truth is told by one rank, and the launcher started {topology.world_size}",
                fix="Run the phase groundtruth without torchrun, or with --nproc-per-node 1",
            )
        return tell_truth(options, say=say)
    return _Phase(options, topology, say).run(tell)


class _Phase:
    """One rank's share of a run that hands out batches."""

    def __init__(
        self, options: PhaseOptions, topology: Topology, say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._topology = topology
        self._say = say
        self._log = log_path(options.output_dir, options.phase, options.run, topology.rank)
        self._waits_ms: list[float] = []
        self._full = FullSummary() if options.mode == "full" else None

    def run(self, tell: Callable[[int, int], None] | None) -> RunMeta:
        """Run it."""
        options = self._options
        loader, num_workers = open_phase(options, self._topology, say=self._say)
        digest = config_digest(loader.planning)
        steps = USUAL_STEPS if options.steps is None else options.steps
        checkpoint = None
        if options.phase == "resumed":
            steps = self._resume(loader)
        elif options.checkpoint_at is not None:
            checkpoint = self._checkpoint(loader, options.checkpoint_at, steps)
        meta = RunMeta(
            phase=options.phase,
            run=options.run,
            is_over=False,
            world_size=loader.world_size,
            micro_batches_per_step=loader.micro_batches_per_step,
            num_workers=num_workers,
            mode=options.mode,
            config_digest=digest,
            seed=loader.next_position().latest_seed,
            is_finite=loader.finite,
            steps=steps,
            checkpoint_at=checkpoint,
        )
        remove_of_ranks(
            self._log.parent, rank=self._topology.rank, world_size=self._topology.world_size
        )
        if self._topology.rank == 0:
            write_meta(options.output_dir, meta)
        first_step = self._hand_out(loader, steps, checkpoint, tell)
        meta = replace(
            meta,
            is_over=True,
            batches=len(self._waits_ms),
            first_step=first_step,
            is_exhausted=_is_exhausted(loader, len(self._waits_ms)),
            dropped=loader.report().run.dropped,
        )
        loader.close()
        self._write_figures(meta.num_workers)
        if has_process_group():
            dist.barrier()
        if self._topology.rank == 0:
            write_meta(options.output_dir, meta)
        return meta

    def _hand_out(
        self,
        loader: Loader,
        steps: int,
        checkpoint: int | None,
        tell: Callable[[int, int], None] | None,
    ) -> int:
        """Hand out batches and write each down; return the optimizer step of the first."""
        rows = BatchRows(loader.planning, self._topology)
        start = loader.next_position()
        first_step = 0
        with RowLog(self._log) as log:
            begin = time.perf_counter()
            for step, batch in enumerate(islice(loader, steps)):
                wait_ms = 1000 * (time.perf_counter() - begin)
                self._waits_ms.append(wait_ms)
                stood_for = _stood_for(loader, start, step, batch)
                row = rows.of(batch, step=step, wait_ms=wait_ms, stood_for=stood_for)
                if self._full is not None:
                    row = replace(row, digest=self._full.add(batch["batch"], row.batch_size))
                log.write(row)
                if step == 0:
                    first_step = row.of_step
                if step == checkpoint:
                    path = state_path(
                        self._options.output_dir, self._options.run, self._topology.rank
                    )
                    save_state(path, loader.state_dict())
                if tell is not None:
                    tell(step + 1, steps)
                # What is done with a batch here is no waiting for the next one.
                begin = time.perf_counter()
        return first_step

    def _checkpoint(self, loader: Loader, asked: int, steps: int) -> int:
        """The batch after which the state is saved: the last of the step of the one asked for."""
        per_step = loader.batches_per_step
        end = asked // per_step * per_step + per_step - 1
        if end != asked and self._topology.rank == 0:
            self._say(
                f"batch {asked} lies inside an optimizer step, which takes {per_step} batches of"
                f" each rank: a state is of a whole number of steps, and is saved after batch {end}"
            )
        has = min(steps, _count(loader, end + 2)) if loader.finite else steps
        if end + 1 >= has:
            raise ConfigError(
                f"a rank has {said(has, 'batch', several='batches')}, and after batch {end},"
                " counted from 0, no batch is left that a resumed run could be compared with",
                fix="Use a lower --checkpoint-at, more --steps, or more data",
            )
        return end

    def _resume(self, loader: Loader) -> int:
        """Begin with a state; return how many batches to ask for."""
        options = self._options
        assert options.state_dir is not None
        state = load_state(options.state_dir, self._topology.rank)
        try:
            loader.load_state_dict(state)
        except PositionError as error:
            # What was saved for other data, or by something else, is wrong input.
            error.exit_code = 2
            raise
        if options.steps is not None:
            return options.steps
        try:
            baseline = read_meta_file(options.state_dir / "meta.json")
        except SourceNotFoundError:
            return USUAL_STEPS
        if baseline.is_exhausted:
            return len(loader)
        left = baseline.batches - (baseline.checkpoint_at or 0) - 1
        return max(1, left * baseline.world_size // self._topology.world_size)

    def _write_figures(self, num_workers: int) -> None:
        options, rank = self._options, self._topology.rank
        if options.phase == "baseline" and options.run == 0:
            figures = Throughput.of(self._waits_ms, num_workers=num_workers)
            write_throughput(throughput_path(options.output_dir, rank), figures)
        if self._full is not None:
            self._full.write(self._log.with_name(f"full_summary_rank_{rank:03d}.json"))


def _count(loader: Loader, most: int) -> int:
    """How many batches a fresh loader has; `most` where it has more."""
    run = loader.planning.run(loader.next_position(), _topology_of(loader))
    try:
        # To count a pass is to plan all of it.
        return run.count() if next(run.batches(most), None) is None else most
    finally:
        run.close()


def _stood_for(loader: Loader, start: Any, step: int, batch: Any) -> MicroBatch | None:
    """The samples of a batch that another stands in for; None where it is itself.

    Parameters
    ----------
    loader
        The loader.
    start
        Where it began.
    step
        Batches that it handed out before.
    batch
        The batch.
    """
    if batch["origin"].samples.slot == batch["playhead"].slot:
        return None
    run = loader.planning.run(start, _topology_of(loader))
    try:
        return next(run.batches(step))
    finally:
        run.close()


def _is_exhausted(loader: Loader, batches: int) -> bool:
    """Whether the pass of which so many batches were handed out is over."""
    if not loader.finite or batches % loader.batches_per_step:
        return False
    position: Any = loader.position_after(batches)
    run = loader.planning.run(position, _topology_of(loader))
    try:
        return next(run.batches(), None) is None
    finally:
        run.close()


def _topology_of(loader: Loader) -> Topology:
    return Topology(rank=loader.rank, world_size=loader.world_size)
