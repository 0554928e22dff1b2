"""The worst batches of training, tried before it begins, and smaller ones where they do not fit.

A profile is found with made-up batches, on one card, before the run. What a rehearsal tries is the
run itself: its data, its model with everything around it, its ranks.
"""

from __future__ import annotations

import gc
import random
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from playhead.errors import FitError
from playhead.fetch.bad import Holes
from playhead.fit.lowering import lowered_limit, lowered_size, options_of
from playhead.fit.probing.oom import judge
from playhead.fit.trials import Trials
from playhead.loader.fusion import FusedPlanning
from playhead.loader.ranks import greatest_of_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from playhead.fit.trials import Trial
    from playhead.loader import Loader
    from playhead.loader.run import Planning
    from playhead.plan import Batching, MicroBatch
    from playhead.plan.stats import Costly

__all__ = ["Rehearsal", "rehearse"]

# Tens of thousands of samples are one after half as many.
_MOST_ROUNDS = 40
_FITS, _OOM, _FAILED = range(3)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """What became of a rehearsal."""

    batches: int
    """How many batches were tried, those that did not fit among them."""
    lowered: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that were lowered, with their new values, as a config has them; with `multi_config`,
    by `part.option`. Empty where everything fitted."""
    untried: Sequence[str] = ()
    """Buckets without a sample in what comes next, as a config has them; with `multi_config`, with
    their part."""


def rehearse(loader: Loader, step: Callable[[Any], object]) -> Rehearsal:
    """Try the worst batch of every bucket before training; lower the sizes that do not fit.

    The batches are those of the window that comes next: of each bucket the one with the most of
    samples times length, filled up with its own samples where the window has no full one. Where
    batches have no fixed sizes, they are those of the most cost, of the longest samples and of the
    most samples. Where `step` runs out of memory, the size of the bucket, and with it those of
    longer ones that are larger, becomes a tenth less, and again, until
    all batches fit; without fixed sizes it is `batch_tokens`, `batch_duration` or `batch_size`.

    The loader then goes on as one with the lower options in its config would: a fresh start plans
    with them; in the middle of a window what is left is dealt out anew, every sample exactly once.
    A rehearsal itself moves nothing: it hands no sample out, and puts the random generators of
    Python, NumPy and torch back. What was lowered holds for this loader; a warning says what to
    write into the config, so that the next start has it.

    All ranks try the same batches, and a size is lowered on all of them if it fails on one.

    Parameters
    ----------
    loader
        A loader that is not inside a step: a fresh or a restored one, as a rule.
    step
        Takes a batch forward and backward, as training does, and leaves the weights alone: no
        optimizer step. It has to drop the gradients, also where it fails (``finally:
        optimizer.zero_grad()``): what it leaves would be added to training's first step. Under
        `DistributedDataParallel` it runs inside ``no_sync()``, so that no rank waits for one that
        ran out of memory. Running statistics, as of `BatchNorm`, do move. An optimizer has its
        state only after its first step, or once a checkpoint is loaded: a rehearsal after that
        counts it.

    Returns
    -------
    Rehearsal
        What was lowered.

    Raises
    ------
    FitError
        If not even a batch of one sample fits; the message names its bucket. If `step` failed on
        another rank for another reason.
    PositionError
        If the loader is inside a step.
    Exception
        Whatever `step` or the dataset raises, where memory is not the reason.

    Examples
    --------
    ::

        def step(batch):
            try:
                loss_of(batch).backward()
            finally:
                optimizer.zero_grad()

        playhead.fit.rehearse(loader, step)
    """
    asked = loader.planning
    parts = dict(asked.parts)
    times: Counter[tuple[str, int | None]] = Counter()
    fitting: dict[tuple[str, int | None], Costly] = {}
    tried = 0
    for _ in range(_MOST_ROUNDS):
        planning = _with_parts(asked, parts)
        trials = Trials(loader, planning)
        for trial in trials:
            kind, batching = (trial.part, trial.worst.bin), parts[trial.part].batching
            if _waits(trials, parts, trial) or _is_known(fitting.get(kind), trial):
                continue
            tried += 1
            reason = _tried(loader, step, trial)
            if reason is None:
                fitting[kind] = trial.worst
                continue
            smaller = _smaller(batching, trial, times[kind])
            if smaller is None:
                raise _does_not_fit(trial, batching, reason)
            times[kind] += 1
            parts[trial.part] = replace(parts[trial.part], batching=smaller)
        if parts == dict(planning.parts):
            lowered = _lowered(asked.parts, parts)
            if lowered:
                loader.rebatch(planning)
                _say(loader, lowered)
            return Rehearsal(batches=tried, lowered=lowered, untried=trials.untried)
    raise FitError(
        f"steps still run out of memory after {_MOST_ROUNDS} rounds of smaller batches",
        fix="Look for memory that steps keep",
    )


def _with_parts(asked: Any, parts: Mapping[str, Planning]) -> Any:
    if isinstance(asked, FusedPlanning):
        return replace(asked, parts=dict(parts))
    return parts[""]


def _waits(trials: Trials, parts: Mapping[str, Planning], trial: Trial) -> bool:
    """Whether a batch is not what it was in this round any more: the next one has it anew."""
    if trials.are_together:
        # The first part gives way: what the others take beside it is known only then.
        return parts != trials.parts
    now, planned = parts[trial.part].batching, trials.parts[trial.part].batching
    number = trial.worst.bin
    return now != planned if number is None else now.sizes[number] != planned.sizes[number]


def _is_known(fitting: Costly | None, trial: Trial) -> bool:
    """Whether a batch of the same bucket fitted that was no better."""
    fixed = trial.worst.bin is not None
    return fixed and fitting is not None and trial.worst.is_no_worse_than(fitting)


def _smaller(batching: Batching, trial: Trial, times: int) -> Batching | None:
    worst = trial.worst
    if worst.bin is None:
        return lowered_limit(batching, worst, times)
    return lowered_size(batching, worst.bin, worst.samples, times)


def _tried(loader: Loader, step: Callable[[Any], object], trial: Trial) -> str | None:
    """Why a batch did not fit, on any rank; None where it fitted on all of them."""
    outcome, reason, error = _FITS, "memory ran out on another rank", None
    try:
        with _generators_kept():
            batch = _read(loader, trial.candidates)
            if batch is not None:
                step(batch)
                # A GPU tells late of what went wrong; it is to be said of this batch.
                if torch.cuda.is_initialized():
                    torch.cuda.synchronize()
    except Exception as raised:  # noqa: BLE001 - judged, told to all ranks, and raised again
        if judge(raised) == "fault":
            outcome, error = _FAILED, raised
        else:
            # Its text alone: the error itself holds what filled the memory.
            outcome, reason = _OOM, " ".join(str(raised).split()) or type(raised).__name__
    batch = None
    if outcome == _OOM:
        _free()
    greatest = greatest_of_ranks(outcome)
    if error is not None:
        raise error
    if greatest == _FAILED:
        raise FitError(
            f"a batch of bucket {trial.bucket} failed in rehearsal on another rank",
            fix="See what that rank says",
        )
    return reason if greatest == _OOM else None


def _read(loader: Loader, candidates: Sequence[MicroBatch]) -> Any:
    """The batch of the first of which something can be read; None where nothing can."""
    for candidate in candidates:
        made = loader.fetch(candidate)
        if not isinstance(made, Holes):
            return made
        if not made.empty:
            return made.batch
    return None


@contextmanager
def _generators_kept() -> Generator[None]:
    """Put the random generators back afterwards: training draws what it would have drawn."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - models use the global one
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002 - as above


def _free() -> None:
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _does_not_fit(trial: Trial, batching: Batching, reason: str) -> FitError:
    limit = "max_tokens" if batching.in_tokens else "max_duration"
    part = f" of part {trial.part}" if trial.part else ""
    return FitError(
        f"not even one sample of bucket {trial.bucket}{part} fits: {reason}",
        fix=f"Lower {limit} below it, or free memory",
    )


def _lowered(before: Mapping[str, Planning], after: Mapping[str, Planning]) -> dict[str, Any]:
    return {
        f"{part}.{name}" if part else name: value
        for part, planning in after.items()
        for name, value in options_of(before[part].batching, planning.batching).items()
    }


def _say(loader: Loader, lowered: Mapping[str, Any]) -> None:
    if loader.rank:
        return
    options = ", ".join(f"{name}: {value}" for name, value in lowered.items())
    warnings.warn(
        f"batches ran out of memory in rehearsal and are smaller now: {options}. Write this into"
        " the config, so that the next start has it",
        stacklevel=3,
    )
