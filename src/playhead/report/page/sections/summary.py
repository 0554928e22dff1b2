"""The summary of a report: what matters most, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.report.page.markup import Markup, element
from playhead.report.page.numbers import count, counted, hours, number, ratio, share
from playhead.report.page.section import Fact, Section, facts
from playhead.report.page.sections.passes import time_facts
from playhead.report.page.tables import Column, table

if TYPE_CHECKING:
    from playhead.report.figures import Figures, PartFigures

__all__ = ["summary"]


def summary(figures: Figures) -> Section:
    """Return the section at the top."""
    parts = figures.parts
    several = len(parts) > 1
    says = (
        f"{figures.config}{_section(figures)}, on {counted(figures.world_size, 'rank')},"
        f" {counted(figures.micro_batches_per_step, 'micro-batch', 'micro-batches')} a step,"
        f" seed {figures.seed}."
    )
    return Section(
        name="summary",
        title="Summary",
        says=says,
        below=(
            *_notes(figures),
            facts(
                [*_amounts(figures), *([] if several else _quality(parts)), *time_facts(figures)],
                most=6,
            ),
            *((_blends(parts),) if several else ()),
        ),
    )


def _hours_of(part: PartFigures) -> float | None:
    """Hours of audio of a pass over a blend; None where nothing is audio."""
    known = [leaf.accepted_hours for leaf in part.leaves if leaf.accepted_hours is not None]
    return sum(known) if known else None


def _section(figures: Figures) -> str:
    return "" if figures.section is None else f", section {figures.section}"


def _notes(figures: Figures) -> tuple[Markup, ...]:
    if not figures.notes:
        return ()
    return (
        element(
            "ul",
            *(element("li", note) for note in figures.notes),
            attributes={"class": "notes", "aria-label": "Notes, the gravest first"},
        ),
    )


def _amounts(figures: Figures) -> list[Fact]:
    leaves = [leaf for part in figures.parts for leaf in part.leaves]
    known = [one for one in map(_hours_of, figures.parts) if one is not None]
    rows, accepted = sum(leaf.rows for leaf in leaves), sum(leaf.accepted for leaf in leaves)
    made = [
        Fact(name="Sources", shown=count(len(leaves)), value=len(leaves)),
        Fact(name="Rows", shown=count(rows), value=rows),
        Fact(name="Samples of a pass", shown=count(accepted), value=accepted),
    ]
    if known:
        made.append(Fact(name="Audio of a pass", shown=hours(sum(known)), value=sum(known)))
    if figures.steps_per_pass is not None:
        steps = figures.steps_per_pass
        made.append(Fact(name="Steps of a pass", shown=count(steps), value=steps))
    else:
        made.append(Fact(name="Steps of a pass", shown="no end", about="sources repeat"))
    if figures.hours_per_step is not None:
        value = figures.hours_per_step
        made.append(Fact(name="Audio of a step", shown=hours(value), value=value))
    if figures.tokens_per_step is not None:
        value = figures.tokens_per_step
        made.append(Fact(name="Tokens of a step", shown=number(value), value=value))
    return made


def _quality(parts: tuple[PartFigures, ...]) -> list[Fact]:
    return [
        fact
        for part in parts
        for fact in (
            Fact(name="Padding", shown=share(part.padding), value=part.padding),
            Fact(
                name="Slowest over mean rank",
                shown=ratio(part.imbalance),
                value=part.imbalance,
                about="1 is even",
            ),
        )
    ]


def _blends(parts: tuple[PartFigures, ...]) -> Markup:
    columns: list[Column[PartFigures]] = [
        Column(title="Blend", value=lambda part: part.name, kind="name"),
        Column(title="Share of the steps", value=lambda part: part.share, shown=share),
        Column(title="Sources", value=lambda part: len(part.leaves), shown=count),
        Column(title="Audio of a pass", value=_hours_of, shown=hours),
        Column(title="Limit", value=lambda part: part.limit),
        Column(title="Padding", value=lambda part: part.padding, shown=share),
        Column(title="Limit unused", value=lambda part: part.unused_budget, shown=share),
        Column(title="Slowest over mean", value=lambda part: part.imbalance, shown=ratio),
    ]
    return table(columns, parts, about="Blends")
