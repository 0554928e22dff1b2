"""What the steps cost, and how even that is over the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from playhead.report.page.canvas import plotted
from playhead.report.page.colours import GRID, SERIES
from playhead.report.page.numbers import number, ratio
from playhead.report.page.section import Fact, Section, facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from playhead.report.figures import PartFigures
    from playhead.report.page.markup import Markup

__all__ = ["costs"]


def costs(part: PartFigures, prefix: str, *, world_size: int) -> Section:
    """Return the section of what a blend's steps cost."""
    says = "With one rank nobody waits for another."
    if world_size > 1:
        everybody = "Both" if world_size == 2 else f"All {world_size:,}"
        says = (
            f"{everybody} ranks wait for the slowest in every step: it has"
            f" {ratio(part.imbalance)} times the mean to do, on average."
        )
    return Section(
        name=f"{prefix}costs",
        title="Cost of steps",
        says=says
        + " Cost is what the limit of the config counts. The plot shows the first window; 1 is the"
        " mean of its steps, the band reaches from the rank with the least to that with the most.",
        plots=(_plot(part, f"{prefix}plot-costs"),) if part.step_costs.number else (),
        numbers=(
            facts(
                [
                    Fact(
                        name="Slowest over mean rank",
                        shown=ratio(part.imbalance),
                        value=part.imbalance,
                        about="1 is even",
                    ),
                    Fact(
                        name="If cost is length",
                        shown=ratio(part.imbalance_linear),
                        value=part.imbalance_linear,
                    ),
                    Fact(
                        name="If cost is length squared",
                        shown=ratio(part.imbalance_quadratic),
                        value=part.imbalance_quadratic,
                    ),
                ]
            ),
        ),
    )


def _plot(part: PartFigures, name: str) -> Markup:
    steps = np.asarray(part.step_costs.number)
    mean, least, most = (
        np.asarray(values, dtype=np.float64)
        for values in (part.step_costs.mean, part.step_costs.least, part.step_costs.most)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        slowest = np.where(mean > 0, most / mean, 1.0)

    def draw(panels: Sequence[Axes]) -> None:
        cost, waits = panels
        marker = "o" if len(steps) < 3 else ""
        cost.fill_between(steps, least, most, color=SERIES[0], alpha=0.3, linewidth=0)
        cost.plot(steps, mean, color=SERIES[0], linewidth=1.4, marker=marker)
        cost.set_ylim(0, 1.15 * max(1.0, float(most.max())))
        cost.set_ylabel("cost of a rank")
        waits.plot(steps, slowest, color=SERIES[4], linewidth=1.4, marker=marker)
        waits.set_ylim(1, max(1.02, 1.1 * (float(slowest.max()) - 1) + 1))
        waits.set_ylabel("slowest / mean")
        waits.set_xlabel("step")
        for axes in panels:
            axes.grid(axis="y", color=GRID)
            axes.ticklabel_format(axis="y", style="plain", useOffset=False)
            axes.locator_params(axis="x", nbins=6, integer=True)
            axes.xaxis.set_major_formatter(lambda step, _: number(step))

    return plotted(
        draw,
        name=name,
        title="What a rank has to do in each step, and how much more the slowest has",
        description=f"Two lines over steps {int(steps[0]):,} to {int(steps[-1]):,}. The mean cost"
        f" is between {number(float(mean.min()))} and {number(float(mean.max()))}; the slowest rank"
        f" has at most {ratio(float(slowest.max()))} times the mean.",
        height=330,
        panels=2,
    )
