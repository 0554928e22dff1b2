"""What `playhead report` says in the terminal: a handful of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.report.page.numbers import counted, hours, number, ratio, share, span

if TYPE_CHECKING:
    from playhead.report.figures import Figures, PartFigures

__all__ = ["lines_of"]


def lines_of(figures: Figures) -> list[str]:
    """Return the lines of a summary, the notes at the end, where a reader's eye is.

    Parameters
    ----------
    figures
        What is said of.
    """
    leaves = [leaf for part in figures.parts for leaf in part.leaves]
    of = "" if figures.section is None else f", section {figures.section}"
    rows, accepted = sum(leaf.rows for leaf in leaves), sum(leaf.accepted for leaf in leaves)
    known = [leaf.accepted_hours for leaf in leaves if leaf.accepted_hours is not None]
    audio = f", {hours(sum(known))} of audio" if known else ""
    return [
        f"{figures.config}{of}: {counted(len(leaves), 'source')}, {counted(rows, 'row')}",
        f"  a pass: {counted(accepted, 'sample')}{audio}, {_steps(figures)}",
        f"  a step: {_step(figures)}",
        *map(_part, figures.parts),
        *_times(figures),
        *(f"  note: {note}" for note in figures.notes),
    ]


def _steps(figures: Figures) -> str:
    if figures.steps_per_pass is None:
        return "then again without end"
    return counted(figures.steps_per_pass, "step")


def _step(figures: Figures) -> str:
    said = [
        counted(figures.micro_batches_per_step, "micro-batch", "micro-batches")
        + f" on {counted(figures.world_size, 'rank')}"
    ]
    if figures.hours_per_step is not None:
        said.append(f"{hours(figures.hours_per_step)} of audio")
    if figures.tokens_per_step is not None:
        said.append(f"{number(figures.tokens_per_step)} tokens")
    return ", ".join(said)


def _part(part: PartFigures) -> str:
    name = f"{part.name}, {share(part.share)} of the steps, " if part.name else ""
    return (
        f"  {name}{part.limit}: padding {share(part.padding)}, {share(part.unused_budget)} of the"
        f" limit unused, slowest over mean rank {ratio(part.imbalance)}"
    )


def _times(figures: Figures) -> list[str]:
    time = figures.time
    if time is None:
        return []
    whole = "" if time.pass_seconds is None else f", of a pass {span(time.pass_seconds)}"
    speed = number(time.hours_per_hour)
    line = (
        f"  time of a step {span(time.seconds_per_step)}{whole}, where a GPU trains on {speed}"
        " hours of audio an hour"
    )
    return [line]
