"""How many steps a pass takes, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead.report.page.bars import bar_plot
from playhead.report.page.numbers import count, counted, hours, number, span
from playhead.report.page.section import Fact, Section, facts

if TYPE_CHECKING:
    from playhead.report.figures import Figures, LeafFigures
    from playhead.report.page.markup import Markup

__all__ = ["passes", "time_facts"]

_MOST_BARS: Final = 10


def passes(figures: Figures) -> Section:
    """Return the section of steps and times."""
    leaves = [
        (leaf, leaf.steps_per_pass)
        for part in figures.parts
        for leaf in part.leaves
        if leaf.steps_per_pass is not None
    ]
    says = (
        f"A pass over everything takes {counted(figures.steps_per_pass, 'step')}."
        if figures.steps_per_pass is not None
        else "Training has no end by itself: each source begins its next pass when it is through."
    )
    if figures.time is None:
        says += " For times, say how fast a GPU is: --hours-per-hour X."
    shown = bool(leaves) and not figures.finite
    return Section(
        name="passes",
        title="Steps and times",
        says=says,
        plots=(_plot(leaves),) if shown else (),
        numbers=(facts([*_step_facts(figures), *time_facts(figures)]),),
    )


def _step_facts(figures: Figures) -> list[Fact]:
    made = [
        Fact(
            name="Micro-batches of a step",
            shown=count(figures.micro_batches_per_step),
            value=figures.micro_batches_per_step,
            about=f"on {counted(figures.world_size, 'rank')}",
        )
    ]
    if figures.steps_per_pass is not None:
        made.append(
            Fact(
                name="Steps of a pass",
                shown=count(figures.steps_per_pass),
                value=figures.steps_per_pass,
            )
        )
    if figures.hours_per_step is not None:
        made.append(
            Fact(
                name="Audio of a step",
                shown=hours(figures.hours_per_step),
                value=figures.hours_per_step,
            )
        )
    if figures.tokens_per_step is not None:
        made.append(
            Fact(
                name="Tokens of a step",
                shown=number(figures.tokens_per_step),
                value=figures.tokens_per_step,
            )
        )
    return made


def time_facts(figures: Figures) -> list[Fact]:
    """Return how long things take; nothing where no speed is given."""
    time = figures.time
    if time is None:
        return []
    speed = f"at {number(time.hours_per_hour)} hours of audio an hour and GPU"
    made = [
        Fact(
            name="Time of a step",
            shown=span(time.seconds_per_step),
            value=time.seconds_per_step,
            about=speed,
        )
    ]
    if time.pass_seconds is not None:
        made.append(
            Fact(
                name="Time of a pass",
                shown=span(time.pass_seconds),
                value=time.pass_seconds,
                about=f"on {counted(figures.world_size, 'GPU')}",
            )
        )
    return made


def _plot(leaves: list[tuple[LeafFigures, float]]) -> Markup:
    soonest = sorted(leaves, key=lambda one: one[1])[:_MOST_BARS]
    names, values = [leaf.name for leaf, _ in soonest], [steps for _, steps in soonest]
    words = [number(steps) for steps in values]
    which = "each source" if len(soonest) == len(leaves) else f"the {len(soonest)} soonest sources"
    return bar_plot(
        names,
        values,
        words,
        name="plot-passes",
        title=f"After how many steps each sample of {which} has come once",
        axis="steps of a pass",
        order="the soonest first",
    )
