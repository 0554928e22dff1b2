"""The micro-batches that take the most memory."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from playhead.report.page.bars import bar_plot
from playhead.report.page.markup import Markup, element, joined
from playhead.report.page.numbers import count, counted, length, precise, share
from playhead.report.page.section import Section
from playhead.report.page.tables import Column, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playhead.report.figures import Figures, PartFigures, WorstBatch

__all__ = ["memory"]

_MOST_NAMES: Final = 3


def memory(part: PartFigures, prefix: str, *, figures: Figures) -> Section:
    """Return the section of the micro-batches of a blend that take the most memory."""
    worst = part.worst
    says = Markup("There is nothing to see: no batch was planned.")
    if worst:
        what = (
            f"The micro-batches of {counted(part.steps, 'planned step')} that cost the most (of"
            " those with equally many samples the most costly one), and those with the most"
            " samples, the longest sample and the most seconds or tokens after padding. A model"
            " that can take these can take the others."
        )
        # Steps of one blend of several are not those of training.
        command = None if part.name else element("code", _command(figures, worst[0]))
        says = joined([what, None if command is None else " To see one: ", command])
    return Section(
        name=f"{prefix}memory",
        title="Most memory",
        says=says,
        plots=(_plot(part, f"{prefix}plot-memory"),) if worst else (),
        below=(_table(part),) if worst else (),
    )


def _command(figures: Figures, batch: WorstBatch) -> str:
    """What shows a batch, with all that the plan is a function of."""
    section = [] if figures.section is None else ["--section", figures.section]
    numbers = {
        "world-size": figures.world_size,
        "seed": figures.seed,
        "step": batch.step,
        "rank": batch.rank,
    }
    options = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
    return shlex.join(["playhead", "report", figures.config, *section, *options])


def _table(part: PartFigures) -> Markup:
    columns: list[Column[WorstBatch]] = [
        Column(title="Step", value=lambda one: one.step, shown=count),
        Column(title="Slot", value=lambda one: one.slot, shown=count),
        Column(title="Rank", value=lambda one: one.rank, shown=count),
        Column(title="Samples", value=lambda one: one.samples, shown=count),
        Column(title=f"Longest, {part.unit}", value=lambda one: one.longest, shown=precise),
        Column(
            title=f"Padded, {part.unit}",
            value=lambda one: one.total,
            shown=precise,
            about="Samples times the longest; the sum of all where batches are packed",
        ),
        Column(
            title="Tokens",
            value=lambda one: one.tokens,
            shown=count,
            about="Most tokens of a sample",
        ),
        Column(title="Of the limit", value=lambda one: one.cost, shown=share),
        Column(title="Sources", value=lambda one: _first(one.leaves), kind="name"),
    ]
    return table(columns, part.worst, about="The micro-batches that take the most memory")


def _first(leaves: Sequence[str]) -> str:
    left = len(leaves) - _MOST_NAMES
    return ", ".join(leaves[:_MOST_NAMES]) + (f" and {left:,} more" if left > 0 else "")


def _plot(part: PartFigures, name: str) -> Markup:
    names = [
        f"step {one.step:,}, slot {one.slot}: {one.samples:,} \N{MULTIPLICATION SIGN}"
        f" {length(one.longest, part.unit)}"
        for one in part.worst
    ]
    values = [one.total for one in part.worst]
    words = [length(value, part.unit) for value in values]
    return bar_plot(
        names,
        values,
        words,
        name=name,
        title="The micro-batches that take the most memory, by what they are padded to",
        axis=f"padded to, {part.unit}",
        order="those that cost the most first",
    )
