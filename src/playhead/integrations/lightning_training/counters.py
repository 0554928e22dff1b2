"""Lightning's own counts of batches in a checkpoint, brought in line with the position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["Resume", "set_counters"]

_PROGRESS = "epoch_loop.batch_progress"
_STATE = "epoch_loop.state_dict"
_STEPPED = "_batches_that_stepped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """What is known of a checkpoint, and of the trainer that goes on from it."""

    batches: int
    """Batches of the running epoch that were trained on; 0 between epochs."""
    per_step_then: int
    """Batches of a rank in a step, when the checkpoint was saved."""
    per_step_now: int
    """Batches of a rank in a step now."""
    counts_steps: bool
    """Whether the trainer ends after a number of steps: then it always goes on inside an epoch."""
    knows_batch_ends: bool
    """Whether this Lightning tells a checkpoint of `on_train_batch_end` from others; those that do
    not would train on one batch too many."""


def set_counters(loops: MutableMapping[str, Any], resume: Resume) -> None:
    """Let Lightning go on at the batch at which the loader goes on.

    Lightning counts batches, and a position steps: inside an accumulated step, Lightning would go
    on in the middle of it, and on another number of ranks at another batch. Saved between two
    epochs, it would train on one more batch of an epoch that is over.

    Parameters
    ----------
    loops
        The state of the fit loop in a checkpoint; changed where it has to be.
    resume
        What is known besides.
    """
    progress, epochs = loops[_PROGRESS], loops["epoch_progress"]["current"]
    current = progress["current"]
    ends_epoch = progress["is_last_batch"] and current["ready"] == current["processed"]
    is_whole = epochs["processed"] == epochs["ready"] or epochs["started"] < epochs["ready"]
    if resume.batches:
        if is_whole:
            # Training was told to stop: on resume, the epoch goes on.
            _set_epochs(loops, epochs["ready"] - 1, begun=True)
        _set_batches(loops, resume.batches, resume)
    elif is_whole or ends_epoch:
        _begin_next_epoch(loops, resume)
    else:
        _set_batches(loops, 0, resume)


def _set_batches(loops: MutableMapping[str, Any], trained: int, resume: Resume) -> None:
    """Inside an epoch: let it go on after the last whole step of those batches."""
    current, state = loops[_PROGRESS]["current"], loops[_STATE]
    settled = trained % resume.per_step_then == 0
    settled &= current["ready"] == current["processed"] == trained
    if settled and resume.knows_batch_ends:
        _scale(loops, resume)
        return
    # What Lightning does once more when it resumes from a checkpoint of `on_train_batch_end`.
    pending = int(resume.knows_batch_ends)
    if settled:
        state[_STEPPED] += current["processed"] - current["completed"]
    else:
        # The last whole step may not be counted yet, where an exception came right after it.
        state[_STEPPED] += int(current["processed"] < trained) - pending
    loops[_PROGRESS]["is_last_batch"] = False
    _set_trackers(loops, trained, resume, pending)


def _scale(loops: MutableMapping[str, Any], resume: Resume) -> None:
    """Leave the counts as they are, but for the number of ranks and for epochs that were left."""
    current, total = loops[_PROGRESS]["current"], loops[_PROGRESS]["total"]
    # A batch of which on_train_batch_start says -1 is ready, and never started: Lightning would
    # take that for a checkpoint of another hook, long after.
    is_even = total["started"] == total["ready"]
    if resume.per_step_then != resume.per_step_now or not is_even:
        pending = current["processed"] - current["completed"]
        _set_trackers(loops, current["processed"], resume, pending)


def _begin_next_epoch(loops: MutableMapping[str, Any], resume: Resume) -> None:
    """Between epochs: begin the next one, whatever of the end of the last one was done."""
    progress, epochs, state = loops[_PROGRESS], loops["epoch_progress"], loops[_STATE]
    started, ended = epochs["current"]["started"], epochs["current"]["processed"]
    if ended < started:
        # Saved with the last batch, before Lightning counted it.
        state[_STEPPED] += 1
    pending = int(resume.knows_batch_ends and resume.counts_steps)
    state[_STEPPED] -= pending
    _set_trackers(loops, 0, resume, pending, ended=True)
    progress["is_last_batch"] = False
    _set_epochs(loops, started, begun=False)


def _set_trackers(
    loops: MutableMapping[str, Any],
    trained: int,
    resume: Resume,
    pending: int,
    *,
    ended: bool = False,
) -> None:
    progress = loops[_PROGRESS]
    current, total = progress["current"], progress["total"]
    earlier = total["processed"] - (0 if ended else current["processed"])
    then, now = resume.per_step_then, resume.per_step_now
    at = trained // then * now
    if then != now:
        earlier = earlier // then * now
    for tracker, batches in ((current, at), (total, earlier + at)):
        tracker.update(
            ready=batches, started=batches, processed=batches, completed=batches - pending
        )


def _set_epochs(loops: MutableMapping[str, Any], ended: int, *, begun: bool) -> None:
    epochs = loops["epoch_progress"]
    shift = epochs["total"]["ready"] - epochs["current"]["ready"]
    for tracker, number in ((epochs["current"], ended), (epochs["total"], ended + shift)):
        tracker.update(
            ready=number + begun, started=number + begun, processed=number, completed=number
        )
