"""What became of a probe, read from what it said and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from playhead.fit.probing.messages import Answer, Ended

__all__ = ["Outcome", "host_ran_out", "outcome", "speaks_of_forks"]

# Lower case. What CUDA and autograd say in a fork of a process that had started them.
_OF_FORKS: Final = (
    "in forked subprocess",
    "fork-based multiprocessing",
    "cuda error: initialization error",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a probe."""

    status: Literal["ok", "oom", "doubt", "fault", "lost"]
    """It fitted; memory ran out, or may have; code failed; or there was no answer."""
    reason: str | None = None
    """Why, in one line."""
    where: str | None = None
    """The line of people's code at which it failed."""


def outcome(ended: Ended, log: Path, seconds: float) -> Outcome:
    """Judge a probe.

    Parameters
    ----------
    ended
        What a server saw of it.
    log
        Where people can read more.
    seconds
        How long nothing was allowed to happen.

    Raises
    ------
    PlayheadError
        If the probe was refused on purpose: no other will fare better.
    """
    if ended.answer is not None:
        return _answered(ended.answer)
    said = f": {ended.last_words}" if ended.last_words else ""
    if ended.is_late:
        return Outcome(
            status="lost", reason=f"nothing happened for {seconds:g} s, and it was killed ({log})"
        )
    fate = _fate(ended)
    if ended.spoke_of_memory:
        return Outcome(status="oom", reason=f"{fate}{said}")
    if ended.signal == "SIGKILL" and ended.host_kills != 0:
        # Nobody but the kernel kills so, as far as anyone can know where it keeps no count.
        return Outcome(
            status="oom",
            reason=f"{host_ran_out()}: the kernel killed the probe"
            + ("" if ended.host_kills else ", as far as one can tell"),
        )
    return Outcome(status="lost", reason=f"{fate}{said} ({log})")


def host_ran_out() -> str:
    """Return what people read where the kernel killed for want of memory."""
    return "the memory of the machine ran out, not that of the device"


def speaks_of_forks(reason: str | None) -> bool:
    """Say whether code failed because its process is a fork.

    Examples
    --------
    >>> speaks_of_forks("RuntimeError: Cannot re-initialize CUDA in forked subprocess.")
    True
    """
    return any(words in (reason or "").lower() for words in _OF_FORKS)


def _answered(answer: Answer) -> Outcome:
    if answer.refusal is not None:
        raise answer.refusal.error()
    if answer.status == "busy":
        return Outcome(status="lost", reason=answer.reason)
    assert answer.status != "refused"
    assert answer.status != "facts"
    return Outcome(status=answer.status, reason=answer.reason, where=answer.where)


def _fate(ended: Ended) -> str:
    if ended.signal is not None:
        return f"it was killed by {ended.signal}"
    return f"it ended with exit code {ended.code} without an answer"
